/**
 * The bounds a host may want to set, in one place.
 *
 * Plain numbers in bytes, milliseconds or counts. Whoever reads something from
 * outside, waits or repeats for a run takes its bound from here, so that one layer
 * changes them all. What only keeps a format sane, such as the tasks of one plan,
 * is a constant beside what it bounds. Bytes of text that streams in, and of
 * descriptions, are counted as UTF-16 units, which are there without encoding it;
 * those of results, memories and files are UTF-8.
 *
 * `Layer.succeed(Limits.Limits, { ...Limits.defaults, skillMs: 5_000 })` sets one.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"

/**
 * The bounds, each with its unit.
 *
 * @category models
 * @since 0.1.0
 */
export interface Limits {
  /**
   * UTF-16 units of one model reply: its text, its thinking with what its vendor wants to see again, its calls. Of the
   * body it comes in, 64 times as many bytes are read.
   */
  readonly replyBytes: number
  /** Bytes of one SSE event, NDJSON line or stdio message. */
  readonly frameBytes: number
  /** UTF-16 units of one opening tag. */
  readonly tagBytes: number
  /**
   * Milliseconds until an MCP server's legacy SSE stream says where to post, until it takes an answer to a question of its
   * own, and until an authorization server has answered. The connection of a model call is part of `headersMs`.
   */
  readonly connectMs: number
  /**
   * Milliseconds until the headers of a response are there. Ollama, wherever it runs, and other servers that may load a
   * model first (`startsSlowly`) get 300,000 at least.
   */
  readonly headersMs: number
  /** Milliseconds without a byte before a stream counts as dead, and until a body that comes as a whole is there. */
  readonly idleMs: number
  /** Milliseconds one call of a skill or a protocol may take, unless it says so itself (`timeLimit`). */
  readonly skillMs: number
  /** Milliseconds one task of a workflow may take, from its own start. */
  readonly taskMs: number
  /** Milliseconds an interrupted skill or process gets to clean up. */
  readonly cleanUpMs: number
  /** Milliseconds a store may take for one commit, before it is sent again or the run fails. */
  readonly commitMs: number
  /** Requests an adapter makes for one model call before giving up; `Resilience` multiplies them. */
  readonly modelAttempts: number
  /** The longest wait in milliseconds obeyed from Retry-After. */
  readonly retryAfterMs: number
  /** Empty replies in a row that are asked for again; one more, and the run fails. */
  readonly emptyReplies: number
  /** Bytes of one fetched or decompressed body, and of a medium, a script or a config that is read from a file. */
  readonly fetchedBytes: number
  /** How much larger than its compressed form a body may be. */
  readonly decompressionRatio: number
  /** Bytes of one skill result told to the model (AC-14), and of something to be remembered. */
  readonly resultBytes: number
  /** Blocks dispatched from one reply; of those beyond, 1,000 are answered with an error, and the others passed over. */
  readonly blocksPerReply: number
  /** How deep blocks may nest in a reply (BP-26), and contents in each other (CP-6). */
  readonly blockDepth: number
  /** How deep any other JSON may nest. */
  readonly jsonDepth: number
  /** Objects and lists one JSON value may hold. */
  readonly jsonNodes: number
  /** Events buffered for one slow consumer before stream parts are dropped; phase events never are. */
  readonly liveEvents: number
  /** Bytes of media kept for one root run, at most half of them for what was said before it. */
  readonly mediaBytes: number
  /** Nodes of a YAML document with its aliases expanded (S-3). */
  readonly yamlNodes: number
  /** Bytes of a description a foreign server gives (S-8). */
  readonly descriptionBytes: number
  /** Bytes of the front matter of a skill pack (AC-17). */
  readonly frontMatterBytes: number
  /** Bytes of a skill pack's body or file (AC-16). */
  readonly skillFileBytes: number
}

/**
 * The bounds that hold where no layer sets others.
 *
 * @category models
 * @since 0.1.0
 */
export const defaults: Limits = {
  replyBytes: 8 * 1024 * 1024,
  frameBytes: 10 * 1024 * 1024,
  tagBytes: 4 * 1024,
  connectMs: 10_000,
  headersMs: 60_000,
  idleMs: 60_000,
  skillMs: 300_000,
  taskMs: 3_600_000,
  cleanUpMs: 5_000,
  commitMs: 10_000,
  modelAttempts: 3,
  retryAfterMs: 60_000,
  emptyReplies: 2,
  fetchedBytes: 20 * 1024 * 1024,
  decompressionRatio: 100,
  resultBytes: 200_000,
  blocksPerReply: 256,
  blockDepth: 32,
  jsonDepth: 100,
  jsonNodes: 1_000_000,
  liveEvents: 1024,
  mediaBytes: 256 * 1024 * 1024,
  yamlNodes: 10_000,
  descriptionBytes: 4 * 1024,
  frontMatterBytes: 50_000,
  skillFileBytes: 200_000
}

/**
 * The limits in force.
 *
 * @category references
 * @since 0.1.0
 */
export const Limits: Context.Reference<Limits> = Context.Reference<Limits>("kernai/Limits", {
  defaultValue: () => defaults
})
