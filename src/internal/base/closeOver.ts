/**
 * Giving an effect the services of the place it was defined in.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** The services a function of an effect needs. */
export type Needs<F> = F extends (...args: never) => Effect.Effect<infer _A, infer _E, infer R> ? R : never

/**
 * Provides captured services; what the running fiber has itself wins, so spans,
 * clock, loggers and references stay the run's.
 */
export const closeOver = <R>(captured: Context.Context<R>) => {
  // Merging copies both maps; a run's context is the same object from call to call.
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
