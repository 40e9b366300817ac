/**
 * Runs effects of other code: with captured services, within a time limit, or as mere observers.
 */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import * as KernelError from "../../KernelError.ts"
import { ExtensionFailed, MiddlewareTermination } from "../../KernelError.ts"
import { attempt, causeText, field, hasTag, messageOf, reasonIn } from "./foreignValue.ts"

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
  const merged = new WeakMap<Context.Context<never>, Context.Context<R>>()
  const merge = (current: Context.Context<never>): Context.Context<R> => {
    const known = merged.get(current)
    if (known !== undefined) return known
    const fresh = Context.merge(captured, current)
    merged.set(current, fresh)
    return fresh
  }
  return <A, E>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E> => Effect.updateContext(effect, merge)
}

// ---------------------------------------------------------------- time

/** Starts work at once in a detached fiber and passes it to `next`. Most work is done by then. */
export const begin = <A, E, B, E2>(
  work: Effect.Effect<A, E>,
  next: (fiber: Fiber.Fiber<A, E>) => Effect.Effect<B, E2>
): Effect.Effect<B, E2> => Effect.withFiber((parent) => next(Effect.runForkWith(parent.context)(work)))

/**
 * Runs work for at most `limit`, then `orElse`.
 *
 * The work has its own fiber and is interruptible even in an uninterruptible region. Work that ignores the
 * interruption is left behind.
 */
export const inTime = <A, E, B, E2>(
  work: Effect.Effect<A, E>,
  limit: Duration.Input,
  orElse: () => Effect.Effect<B, E2>
): Effect.Effect<A | B, E | E2> =>
  Effect.uninterruptibleMask((restore) =>
    begin(work, (fiber): Effect.Effect<A | B, E | E2> => {
      // Most work is done by now and needs no timer.
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

/** Runs work whose interruption is not waited for. */
export const leavable = <A, E>(work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.uninterruptibleMask((restore) =>
    begin(work, (fiber) =>
      Effect.onInterrupt(restore(Fiber.join(fiber)), () => Effect.sync(() => fiber.interruptUnsafe()))
    )
  )

// ---------------------------------------------------------------- failures

/** Logs, whatever the loggers of a host do. */
export const logged = (log: Effect.Effect<void>): Effect.Effect<void> => Effect.catchCause(log, () => Effect.void)

/** Logs the cause of a failure that changes nothing as a warning, without what looks like a key. */
export const passedOver =
  (what: string) =>
  (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
    logged(Effect.logWarning(what, causeText(cause)))

/** Runs an observer. If it fails or throws, that is logged and otherwise ignored. */
export const observed = (name: string, tell: () => Effect.Effect<unknown, unknown>): Effect.Effect<unknown> =>
  Effect.catchCause(Effect.suspend(tell), passedOver(`${name} failed`))

/**
 * Runs code of a host. Whatever it fails or dies with, or throws, becomes an error by `error`; an interruption stays one.
 * The cause of a defect is logged, and `error` is called with `isDefect`.
 */
export const guarded = <A, E, R, E2>(
  name: string,
  code: () => Effect.Effect<A, E, R>,
  error: (reason: unknown, isDefect: boolean) => E2
): Effect.Effect<A, E2, R> => Effect.catchCause(Effect.suspend(code), (cause) => refused(name, cause, error))

/** `guarded` for a stream. */
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

/** Wraps the failure of a hook or middleware, unless it ends the run on purpose. */
export const extensionError = (extension: string, error: unknown): ExtensionFailed | MiddlewareTermination => {
  if (hasTag(error, "MiddlewareTermination")) {
    return new MiddlewareTermination({ reason: messageOf(field(error, "reason")) })
  }
  return isSound(error) && error._tag === "ExtensionFailed"
    ? error
    : new ExtensionFailed({ extension, detail: messageOf(error) })
}

/** Is this an error of the kernel that can be read and stored? */
export const isSound = (error: unknown): error is KernelError.KernelError =>
  attempt(
    () => KernelError.isKernelError(error) && typeof error.message === "string" && Exit.isSuccess(encoded(error)),
    false
  )

const encoded = Schema.encodeUnknownExit(KernelError.KernelError)
