/**
 * Runs effects of other code: with captured services, within a time limit, or as mere observers.
 */

import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { ExtensionFailed, type MiddlewareTermination } from "../../KernelError.ts"
import { redact } from "./redact.ts"

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

// ---------------------------------------------------------------- failures

/** Logs the cause of a failure that changes nothing as a warning, without what looks like a key. */
export const passedOver =
  (what: string) =>
  (cause: Cause.Cause<unknown>): Effect.Effect<void> =>
    Effect.logWarning(what, redact(Cause.pretty(cause)))

/** Runs an observer. If it fails or throws, that is logged and otherwise ignored. */
export const observed = (name: string, tell: () => Effect.Effect<unknown, unknown>): Effect.Effect<unknown> =>
  Effect.catchCause(Effect.suspend(tell), passedOver(`${name} failed`))

/** Wraps the failure of a hook or middleware, unless it ends the run on purpose. */
export const extensionError = (extension: string, error: unknown): ExtensionFailed | MiddlewareTermination =>
  isTermination(error) || error instanceof ExtensionFailed
    ? error
    : new ExtensionFailed({ extension, detail: redact(error instanceof Error ? error.message : String(error)) })

const isTermination = (error: unknown): error is MiddlewareTermination =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "MiddlewareTermination"
