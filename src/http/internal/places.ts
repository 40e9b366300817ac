/** Limits the followers of each caller, and of all callers together. */

import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type HttpProblem, TooMany } from "../HttpProblem.ts"

/** Takes a place for a caller until the scope closes. */
export type Places = (callerId: string) => Effect.Effect<void, HttpProblem, Scope.Scope>

/** Creates places within limits. `detail` says what a refused caller can do. */
export const places = (
  limits: { readonly followers: number; readonly connections: number },
  detail = "close another stream first"
): Places => {
  const taken = new Map<string, number>()
  let all = 0
  const give = (callerId: string) => {
    const own = (taken.get(callerId) ?? 0) - 1
    if (own > 0) taken.set(callerId, own)
    else taken.delete(callerId)
    all--
  }
  return (callerId) =>
    Effect.asVoid(
      Effect.acquireRelease(
        Effect.suspend(() => {
          const own = taken.get(callerId) ?? 0
          if (own >= limits.followers || all >= limits.connections) {
            return Effect.fail(new TooMany({ detail }))
          }
          taken.set(callerId, own + 1)
          all++
          return Effect.void
        }),
        () => Effect.sync(() => give(callerId))
      )
    )
}
