/**
 * The bounds a host may want to set, in one place.
 *
 * Reads from outside, waits and retries of a run take their bounds from here, so
 * one layer changes them all: `Limits.layer({ skillTimeout: "5 seconds" })`.
 *
 * A time is a `Duration`, a name in `…Bytes` counts UTF-8 bytes, a name in
 * `…Length` counts UTF-16 units, as the `length` of a string does. Bounds that only
 * keep a format sane, such as the depth of JSON, are constants.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import { timeSpan } from "./internal/base/timeSpan.ts"

/**
 * The bounds in force.
 *
 * @category models
 * @since 0.1.0
 */
export interface Limits {
  /**
   * Length of one model reply: its text, its thinking with its signature, its calls. Of the body it comes in, 64 times as
   * many bytes are read.
   */
  readonly replyLength: number
  /**
   * Time until an MCP server's legacy SSE stream names its endpoint, until it accepts an answer to a request of its own,
   * and until an authorization server has answered. The connection of a model call is part of `headersTimeout`.
   */
  readonly connectTimeout: Duration.Duration
  /**
   * Time until the headers of a response arrive. Ollama, wherever it runs, and other servers that may load a model first
   * (`startsSlowly`) get at least five minutes.
   */
  readonly headersTimeout: Duration.Duration
  /** Time without a byte before a stream counts as dead, and until a body that is read as a whole has arrived. */
  readonly idleTimeout: Duration.Duration
  /** Time one call of a skill or a protocol may take, unless it has its own `timeout`. */
  readonly skillTimeout: Duration.Duration
  /** Time one task of a workflow may take, from its own start. */
  readonly taskTimeout: Duration.Duration
  /** Time an interrupted skill or process gets to clean up. */
  readonly cleanUpTimeout: Duration.Duration
  /** Time a store may take for one append, before the append is retried or the run fails. */
  readonly appendTimeout: Duration.Duration
  /** Requests an adapter makes for one model call before giving up; `Resilience` multiplies them. */
  readonly modelAttempts: number
  /** The longest wait obeyed from Retry-After. */
  readonly maxRetryAfter: Duration.Duration
  /** Empty replies in a row that are requested again; one more, and the run fails. */
  readonly emptyReplies: number
  /** Bytes of one fetched or decompressed body, and of a medium, a script or a config that is read from a file. */
  readonly fetchedBytes: number
  /** Bytes of one skill result shown to the model, and of a memory. */
  readonly resultBytes: number
  /** Blocks dispatched from one reply; of the rest, 1,000 are answered with an error, and the others ignored. */
  readonly blocksPerReply: number
  /** Events buffered for one slow consumer before stream parts are dropped; phase events never are. */
  readonly liveEvents: number
  /** Bytes of media kept for one root run, at most half of them for the history before it. */
  readonly mediaBytes: number
  /** Length of a description from a foreign server. */
  readonly descriptionLength: number
}

/**
 * The bounds that hold where no layer sets others.
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
  emptyReplies: 2,
  fetchedBytes: 20 * 1024 * 1024,
  resultBytes: 200_000,
  blocksPerReply: 256,
  liveEvents: 1024,
  mediaBytes: 256 * 1024 * 1024,
  descriptionLength: 4 * 1024
}

/**
 * The service that holds the bounds in force: `defaults`, unless a layer sets others.
 *
 * @category references
 * @since 0.1.0
 */
export const Limits: Context.Reference<Limits> = Context.Reference<Limits>("kernai/Limits", {
  defaultValue: () => defaults
})

/**
 * The bounds to set; an absent one keeps its default.
 *
 * @category models
 * @since 0.1.0
 */
export type Options = {
  readonly [Name in keyof Limits]?: (Limits[Name] extends Duration.Duration ? Duration.Input : number) | undefined
}

/**
 * Creates bounds from the defaults and those given.
 *
 * Throws a `RangeError` that names the first bound without a meaning: a negative or fractional count, a timeout of
 * zero, an endless number of attempts.
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
  emptyReplies: count(options, "emptyReplies", { isFinite: true }),
  fetchedBytes: count(options, "fetchedBytes"),
  resultBytes: count(options, "resultBytes"),
  blocksPerReply: count(options, "blocksPerReply"),
  liveEvents: count(options, "liveEvents", { minimum: 1 }),
  mediaBytes: count(options, "mediaBytes"),
  descriptionLength: count(options, "descriptionLength")
})

/**
 * Sets bounds for everything below it, and keeps the defaults of those not given. Throws as `make` does.
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
