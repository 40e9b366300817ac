/**
 * Bounds on time, size and number. A host sets them in one layer: `Limits.layer({ skillTimeout: "5 seconds" })`.
 *
 * A time is a `Duration`. Fields named `…Bytes` count UTF-8 bytes; fields named `…Length` count UTF-16 units, like the
 * `length` of a string. Bounds that only protect a format, such as the depth of JSON, are constants.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { timeSpan } from "./kit/time.ts"

/**
 * The bounds of a run and its connections.
 *
 * @category models
 * @since 0.1.0
 */
export interface Limits {
  /**
   * Length of one model reply: its text, its thinking with its signature, its calls. A longer reply fails the model
   * call with `ProviderError` of reason `limit_exceeded`. At most 64 times as many bytes of its HTTP body are read.
   * Default: 8 Mi.
   */
  readonly replyLength: number
  /**
   * Time until an MCP server's legacy SSE stream names its endpoint, until the server accepts a reply to one of its own
   * requests, and until an authorization server responds. Connecting to a model is part of `headersTimeout`. Default:
   * 10 seconds.
   */
  readonly connectTimeout: Duration.Duration
  /**
   * Time until the headers of a response arrive; after that the request is retried or fails with reason `timeout`.
   * Ollama and other servers that may first have to load a model (`startsSlowly`) get at least five minutes. Default: 1
   * minute.
   */
  readonly headersTimeout: Duration.Duration
  /**
   * Time without a byte after which a stream fails with reason `timeout`. Also the time until a body that is read as a
   * whole has arrived. Default: 1 minute.
   */
  readonly idleTimeout: Duration.Duration
  /**
   * Time for one call of a skill or protocol, unless it has its own `timeout`. The call is then interrupted, and the
   * model is sent a `Timeout` error as its result. Default: 5 minutes.
   */
  readonly skillTimeout: Duration.Duration
  /**
   * Time for one task of a workflow, from its own start. The task is then interrupted, and its result is an error.
   * Default: 1 hour.
   */
  readonly taskTimeout: Duration.Duration
  /**
   * Time for an interrupted skill or process to clean up. After that it is reported and abandoned. Default: 5 seconds.
   */
  readonly cleanUpTimeout: Duration.Duration
  /**
   * Time for one append of a store. The append is then retried, and in the end the run fails with `StoreError`. A
   * `write` call waits as long for a store that is away before its model learns that it was not started. Default: 10
   * seconds.
   */
  readonly appendTimeout: Duration.Duration
  /**
   * Requests that an adapter makes for one model call before it fails; `Resilience.retry` multiplies them. Default: 3.
   */
  readonly modelAttempts: number
  /**
   * The longest Retry-After that is obeyed. A longer one fails the model call with reason `rate_limited`. Default: 1
   * minute.
   */
  readonly maxRetryAfter: Duration.Duration
  /**
   * Number of times in a turn that a request is repaired, after the vendor refused it for a content that it names or for
   * its length. The content is left out, or the conversation is shortened, and `repair` of `model_restarted` says so. 0
   * fails the run with the refusal. Default: 1.
   */
  readonly requestRepairs: number
  /**
   * Number of consecutive empty replies after which the model is asked again. One more fails the run with
   * `EmptyReplies`; resuming it asks once more. Default: 2.
   */
  readonly emptyReplies: number
  /**
   * Number of consecutive replies that ended too early, such as at the maximum length, after which the model is asked
   * again. One more fails the run with `CutReplies`, which has the text of the last one; resuming it asks once more.
   * Default: 2.
   */
  readonly cutReplies: number
  /**
   * Maximum bytes of one fetched or decompressed body, and of a medium, script or config read from a file. Reading a
   * larger one fails. Default: 20 MiB.
   */
  readonly fetchedBytes: number
  /**
   * Bytes of one skill result that are sent to the model; the full text is kept among the media of the run (see
   * `LongResult`). Also the largest size of a memory. Default: 200,000.
   */
  readonly resultBytes: number
  /**
   * Maximum number of blocks in one reply, of any type. The next 1,000 calls get an error as their result. A reply with
   * still more blocks is cut there, and the model receives a corrective. Default: 256.
   */
  readonly blocksPerReply: number
  /**
   * Events buffered for one slow consumer. Beyond that the oldest stream parts are dropped, but never phase events.
   * Default: 1,024.
   */
  readonly liveEvents: number
  /**
   * Bytes of media kept for one root run, at most half of them for its history. More media fail with `LimitExceeded`.
   * Default: 256 MiB.
   */
  readonly mediaBytes: number
  /** Length of a description from a foreign server. Longer ones are cut. Default: 4,096. */
  readonly descriptionLength: number
  /**
   * Estimated tokens up to which the listing of skills is part of the prompt of an agent whose dialect is `auto`. The
   * skills of a longer listing are searched by words with `/skills`. Default: 1,500.
   */
  readonly listedTokens: number
  /**
   * Maximum number of skills sent to a model as native tools. With more, the model is sent a tool that searches them,
   * and the skills it found. Default: 64.
   */
  readonly nativeSkills: number
  /**
   * Number of runs of one caller that may wait for a worker. One more is not stored: `Kernel.submit` fails with
   * `QueueFull`, and a request over HTTP with status 429. Runs without a caller are not counted. The runs are counted in
   * the store now and then, so each further process that admits runs of the caller may exceed the bound by an eighth.
   * Default: 1,000.
   */
  readonly waitingRuns: number
}

/**
 * The default bounds.
 *
 * @category models
 * @since 0.1.0
 */
export const defaults: Limits = {
  replyLength: 8 * 1024 * 1024,
  connectTimeout: Duration.seconds(10),
  headersTimeout: Duration.minutes(1),
  idleTimeout: Duration.minutes(1),
  skillTimeout: Duration.minutes(5),
  taskTimeout: Duration.hours(1),
  cleanUpTimeout: Duration.seconds(5),
  appendTimeout: Duration.seconds(10),
  modelAttempts: 3,
  maxRetryAfter: Duration.minutes(1),
  requestRepairs: 1,
  emptyReplies: 2,
  cutReplies: 2,
  fetchedBytes: 20 * 1024 * 1024,
  resultBytes: 200_000,
  blocksPerReply: 256,
  liveEvents: 1024,
  mediaBytes: 256 * 1024 * 1024,
  descriptionLength: 4 * 1024,
  listedTokens: 1_500,
  nativeSkills: 64,
  waitingRuns: 1_000
}

/**
 * The bounds that apply: `defaults`, unless a layer sets others.
 *
 * @category references
 * @since 0.1.0
 */
export const Limits: Context.Reference<Limits> = Context.Reference<Limits>("kernai/Limits", {
  defaultValue: () => defaults
})

/**
 * The bounds to set. Omitted ones keep their defaults.
 *
 * @category models
 * @since 0.1.0
 */
export type Options = {
  readonly [Name in keyof Limits]?: (Limits[Name] extends Duration.Duration ? Duration.Input : number) | undefined
}

/**
 * Creates bounds from the given ones and the defaults.
 *
 * Throws a `RangeError` that names the first invalid bound: a negative or fractional count, a timeout of zero, or an
 * infinite number of attempts.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = (options: Options): Limits => ({
  replyLength: count(options, "replyLength"),
  connectTimeout: time(options, "connectTimeout"),
  headersTimeout: time(options, "headersTimeout"),
  idleTimeout: time(options, "idleTimeout"),
  skillTimeout: time(options, "skillTimeout"),
  taskTimeout: time(options, "taskTimeout"),
  cleanUpTimeout: time(options, "cleanUpTimeout", { mayBeZero: true, isFinite: true }),
  appendTimeout: time(options, "appendTimeout", { isFinite: true }),
  modelAttempts: count(options, "modelAttempts", { minimum: 1, isFinite: true }),
  maxRetryAfter: time(options, "maxRetryAfter", { mayBeZero: true }),
  requestRepairs: count(options, "requestRepairs", { isFinite: true }),
  emptyReplies: count(options, "emptyReplies", { isFinite: true }),
  cutReplies: count(options, "cutReplies", { isFinite: true }),
  fetchedBytes: count(options, "fetchedBytes"),
  resultBytes: count(options, "resultBytes"),
  blocksPerReply: count(options, "blocksPerReply"),
  liveEvents: count(options, "liveEvents", { minimum: 1 }),
  mediaBytes: count(options, "mediaBytes"),
  descriptionLength: count(options, "descriptionLength"),
  listedTokens: count(options, "listedTokens"),
  nativeSkills: count(options, "nativeSkills", { minimum: 1 }),
  waitingRuns: count(options, "waitingRuns")
})

/**
 * Sets bounds for everything below the layer. Omitted ones keep their defaults. Throws like `make`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<never> => Layer.succeed(Limits, make(options))

type TimeName = { readonly [Name in keyof Limits]: Limits[Name] extends Duration.Duration ? Name : never }[keyof Limits]

const time = (
  options: Options,
  name: TimeName,
  rule: { readonly mayBeZero?: boolean; readonly isFinite?: boolean } = {}
): Duration.Duration => {
  const given = options[name]
  if (given === undefined) return defaults[name]
  const { isFinite = false, mayBeZero = false } = rule
  const isAllowed = (value: Duration.Duration) =>
    (mayBeZero || !Duration.isZero(value)) && (!isFinite || Duration.isFinite(value))
  return Option.getOrThrowWith(
    Option.filter(timeSpan(given), isAllowed),
    () =>
      new RangeError(
        `Limits.${name}: expected a ${isFinite ? "finite " : ""}duration ${mayBeZero ? "of zero or more" : "above zero"}, got ${String(given)}`
      )
  )
}

const count = (
  options: Options,
  name: Exclude<keyof Limits, TimeName>,
  rule: { readonly minimum?: number; readonly isFinite?: boolean } = {}
): number => {
  const value = options[name]
  if (value === undefined) return defaults[name]
  const { isFinite = false, minimum = 0 } = rule
  if (value >= minimum && (Number.isSafeInteger(value) || (value === Infinity && !isFinite))) return value
  throw new RangeError(
    `Limits.${name}: expected a ${isFinite ? "finite " : ""}whole number of at least ${minimum}, got ${value}`
  )
}
