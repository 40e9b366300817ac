/**
 * A reply as a dialect reads it, and those who receive its parts.
 */

import type { Block } from "../../Block.ts"
import type * as BlockParser from "../../BlockParser.ts"
import type { HostedCall } from "../../Call.ts"
import type { Content } from "../../Content.ts"
import type { LimitExceeded } from "../../KernelError.ts"
import type { Finish, ReportedUsage, StreamPart, ToolCall } from "../../StreamPart.ts"

/**
 * A whole reply.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reply {
  /**
   * The text of the assistant message. If the reply has over 1,000 blocks more than `Limits.blocksPerReply`, the text
   * ends with the last block that was read.
   */
  readonly text: string
  readonly blocks: ReadonlyArray<Block>
  /** The block in which the reply ended. Never act on it. */
  readonly unclosed: Block | undefined
  readonly calls: ReadonlyArray<ToolCall>
  /** The calls that the vendor ran itself. */
  readonly hosted: ReadonlyArray<HostedCall>
  /**
   * The contents of the assistant message in the order of the reply: thinking, texts, media and native calls. The
   * sources that the reply names come last.
   */
  readonly content: ReadonlyArray<Content>
  /** Undefined when the stream was cut. */
  readonly finish: Finish | undefined
  /** The usage that was reported before the end. */
  readonly reported: ReportedUsage | undefined
  /** The limit that was exceeded. The rest of the reply was not read. */
  readonly failure: LimitExceeded | undefined
}

/**
 * Reads one reply.
 *
 * @category models
 * @since 0.1.0
 */
export interface Reader {
  /** Reads parts that arrived together. Returns the limit that was exceeded, if any. */
  readonly push: (parts: ReadonlyArray<StreamPart>) => LimitExceeded | undefined
  /** Returns the whole reply. Further calls return the same one. */
  readonly end: () => Reply
  /**
   * Emits everything emitted so far to another listener, in larger pieces: thinking, text with its blocks, whole native
   * calls, and the inputs that are being written.
   */
  readonly repeat: (listener: Listener) => void
}

/**
 * Receives the parts of a reply as they become certain.
 *
 * @category models
 * @since 0.1.0
 */
export interface Listener {
  /** A piece of text outside blocks, or of the content of a block. */
  readonly text: (type: "text_chunk" | "block_content", text: string) => void
  /** The start or end of a block, or a block that was never closed. */
  readonly block: (part: Exclude<BlockParser.Part, { readonly text: string }>) => void
  /** Any other part, except `finish`. */
  readonly part: (part: StreamPart) => void
}
