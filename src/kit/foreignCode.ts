/**
 * Runs foreign code: with captured services, within a time limit, or as an observer. Also reads the values that it
 * throws, fails or dies with.
 *
 * Such a value may be anything: an error whose message throws, a revoked proxy, a cycle, megabytes of text. Reading it
 * never throws, and texts are redacted and no longer than `Bounds.failureBytes`.
 */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Bounds from "./bounds.ts"
import { plain } from "./json.ts"
import { redact } from "./redact.ts"
import { clip, ends, logText } from "./text.ts"
import { perObject } from "./perObject.ts"

// ---------------------------------------------------------------- values

/** Returns the result of `read`, or `otherwise` if it throws. */
export const attempt = <A, B>(read: () => A, otherwise: B): A | B => {
  try {
    return read()
  } catch {
    return otherwise
  }
}

/** Returns a field of a value. Undefined if it is missing or cannot be read. */
export const field = (value: unknown, key: string): unknown =>
  isObject(value) ? attempt((): unknown => Reflect.get(value, key), undefined) : undefined

/** Returns whether a value is an instance of a class. False if the check throws. */
export const isA = <A>(value: unknown, type: abstract new (...args: never) => A): value is A =>
  attempt(() => value instanceof type, false)

/** Returns whether a value has this `_tag`. */
export const hasTag = (value: unknown, tag: string): boolean => field(value, "_tag") === tag

/** Names a failure: its `_tag`, the name of an error, or `Error`. At most 200 characters. */
export const tagOf = (error: unknown): string => {
  const tag = field(error, "_tag")
  if (typeof tag === "string") return word(tag)
  const name = isA(error, Error) ? field(error, "name") : undefined
  return typeof name === "string" ? word(name) : "Error"
}

/** Returns the text of a failure: its message, its string form, or else its name. `clean` removes secrets. */
export const messageOf = (error: unknown, clean = redact, bytes = Bounds.failureBytes): string => {
  const message = typeof error === "string" ? error : field(error, "message")
  if (typeof message === "string") {
    // A tagged error without its own message has an empty one, so its tag says more.
    const tag = message.trim() === "" && isObject(error) ? tagOf(error) : "Error"
    return tag === "Error" ? bounded(message, clean, bytes) : clean(tag)
  }
  return bounded(ownText(error) ?? plainText(error) ?? tagOf(error), clean, bytes)
}

/** Returns a whole cause for a log, with its stacks. */
export const causeText = (cause: Cause.Cause<unknown>, clean = redact): string => {
  const text = attempt(() => Cause.pretty(cause), undefined)
  return text === undefined
    ? logText(cause.reasons.map((reason) => reasonText(reason, clean)).join("\n"))
    : logText(bounded(text, clean, Bounds.failureBytes))
}

/** Returns the first typed failure of a cause. */
export const failureIn = (cause: Cause.Cause<unknown>): unknown => cause.reasons.find(Cause.isFailReason)?.error

/** Returns the first failure of a cause, or else its first defect. */
export const reasonIn = (cause: Cause.Cause<unknown>): unknown => {
  const failure = cause.reasons.find(Cause.isFailReason)
  return failure === undefined ? cause.reasons.find(Cause.isDieReason)?.defect : failure.error
}

/** Redacts a text, and keeps only head and tail if it is too long. Of a huge text, only these are processed. */
export const bounded = (text: string, clean: (text: string) => string, bytes: number): string =>
  attempt(() => {
    const window = Math.max(bytes, margin) + margin
    if (text.length <= 2 * window) return clip(clean(text), bytes)
    // A secret that is cut in two is not recognized, so the text next to the cut is dropped.
    const head = clean(text.slice(0, window)).slice(0, -margin)
    const tail = clean(text.slice(-window)).slice(margin)
    return ends(head, tail, bytes, text.length)
  }, "unreadable")

/** Longer than any secret, in UTF-16 units. */
const margin = 8_192

const isObject = (value: unknown): value is object =>
  (typeof value === "object" && value !== null) || typeof value === "function"

const word = (text: string): string => text.slice(0, 200)

/** Returns the string form of a value that defines one. */
const ownText = (value: unknown): string | undefined => {
  if (!isObject(value)) return value === undefined || value === null ? undefined : String(value)
  const write = field(value, "toString")
  if (typeof write !== "function" || write === Object.prototype.toString || typeof value === "function") {
    return undefined
  }
  const text = attempt((): unknown => Reflect.apply(write, value, []), undefined)
  return typeof text === "string" && text !== "" ? text : undefined
}

/** Returns an object without a tag as JSON. */
const plainText = (value: unknown): string | undefined => {
  if (!isObject(value) || typeof value === "function" || field(value, "_tag") !== undefined) return undefined
  const text = attempt(() => JSON.stringify(plain(value)), "{}")
  return text === "{}" ? undefined : text
}

const reasonText = (reason: Cause.Reason<unknown>, clean: (text: string) => string): string => {
  switch (reason._tag) {
    case "Fail":
      return named(reason.error, clean)
    case "Die":
      return named(reason.defect, clean)
    case "Interrupt":
      return "interrupted"
  }
}

const named = (error: unknown, clean: (text: string) => string): string =>
  `${clean(tagOf(error))}: ${messageOf(error, clean)}`

// ---------------------------------------------------------------- services

/** The services that the effect returned by a function needs. */
export type Needs<F> = F extends (...args: never) => Effect.Effect<infer _A, infer _E, infer R> ? R : never

/**
 * Provides captured services to effects.
 *
 * Services of the running fiber take precedence, so spans, clock, loggers and references stay those of the run.
 */
export const closeOver = <R>(captured: Context.Context<R>) => {
  // Merging copies both maps, and a run's context is the same object from call to call.
  const merge = perObject((current: Context.Context<never>) => Context.merge(captured, current))
  return <A, E>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E> => Effect.updateContext(effect, merge)
}

/** Returns a service of the running fiber, or else of the layer. */
export const serviceOf = <I, S>(
  built: Context.Context<never>,
  current: Context.Context<never>,
  key: Context.Key<I, S>
): S | undefined => Context.getOrUndefined(current, key) ?? Context.getOrUndefined(built, key)

/** Returns a reference of the running fiber, or else of the layer. */
export const referenceOf = <A>(
  built: Context.Context<never>,
  current: Context.Context<never>,
  key: Context.Reference<A>
): A => Context.get(current.mapUnsafe.has(key.key) ? current : built, key)

// ---------------------------------------------------------------- time

/** Starts work immediately in a detached fiber and passes the fiber to `next`. Most work is done by then. */
export const forkNow = <A, E, B, E2>(
  work: Effect.Effect<A, E>,
  next: (fiber: Fiber.Fiber<A, E>) => Effect.Effect<B, E2>
): Effect.Effect<B, E2> => Effect.withFiber((parent) => next(Effect.runForkWith(parent.context)(work)))

/**
 * Runs work for at most `limit`, then `orElse`.
 *
 * The work has its own fiber and is interruptible even in an uninterruptible region. Work that ignores the interruption
 * is abandoned.
 */
export const inTime = <A, E, B, E2>(
  work: Effect.Effect<A, E>,
  limit: Duration.Input,
  orElse: () => Effect.Effect<B, E2>
): Effect.Effect<A | B, E | E2> =>
  Effect.uninterruptibleMask((restore) =>
    forkNow(work, (fiber): Effect.Effect<A | B, E | E2> => {
      // Most work is already done and needs no timer.
      const exit = fiber.pollUnsafe()
      if (exit !== undefined) return exit
      const leave = Effect.sync(() => fiber.interruptUnsafe())
      const timed = Effect.timeoutOrElse(Fiber.join(fiber), {
        duration: limit,
        orElse: () => Effect.andThen(leave, orElse())
      })
      return Effect.onInterrupt(restore(timed), () => leave)
    })
  )

/** Runs work in its own fiber. An interruption does not wait for the work to stop. */
export const leavable = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.uninterruptibleMask((restore) =>
    forkNow(work, (fiber) =>
      Effect.onInterrupt(restore(Fiber.join(fiber)), () => Effect.sync(() => fiber.interruptUnsafe()))
    )
  )

// ---------------------------------------------------------------- failures

/** Runs a log effect. Failures of a host's loggers are ignored. */
export const logged = (log: Effect.Effect<void>): Effect.Effect<void> => Effect.catchCause(log, () => Effect.void)

/** Logs the cause of an ignored failure as a warning, redacted. */
export const logIgnored =
  (what: string) =>
  (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
    logged(Effect.logWarning(what, causeText(cause)))

/** Runs an observer. Failures and exceptions are logged and ignored. */
export const observed = (name: string, tell: () => Effect.Effect<unknown, unknown>): Effect.Effect<unknown> =>
  Effect.catchCause(Effect.suspend(tell), logIgnored(`${name} failed`))

/**
 * Runs code of a host. `error` converts failures, defects and exceptions; interruptions pass through. For a defect, the
 * cause is logged and `isDefect` is true.
 */
export const guarded = <A, E, R, E2>(
  name: string,
  code: () => Effect.Effect<A, E, R>,
  error: (reason: unknown, isDefect: boolean) => E2
): Effect.Effect<A, E2, R> => Effect.catchCause(Effect.suspend(code), (cause) => refused(name, cause, error))

/** Like `guarded`, for a stream. */
export const guardedStream = <A, E, R, E2>(
  name: string,
  code: () => Stream.Stream<A, E, R>,
  error: (reason: unknown, isDefect: boolean) => E2
): Stream.Stream<A, E2, R> =>
  Stream.catchCause(Stream.suspend(code), (cause) => Stream.fromEffect(refused(name, cause, error)))

const refused = <E2>(
  name: string,
  cause: Cause.Cause<unknown>,
  error: (reason: unknown, isDefect: boolean) => E2
): Effect.Effect<never, E2> => {
  if (cause.reasons.some(Cause.isFailReason)) return Effect.fail(error(reasonIn(cause), false))
  if (!Cause.hasDies(cause)) return Effect.failCause(Cause.fromReasons(cause.reasons.filter(Cause.isInterruptReason)))
  return Effect.andThen(
    logged(Effect.logError(`${name} failed unexpectedly`, causeText(cause))),
    Effect.suspend(() => Effect.fail(error(reasonIn(cause), true)))
  )
}
