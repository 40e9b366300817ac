/** Limits the time of a server, not counting the time in which it waits for its host. */

import { McpClientError, TimeoutError } from "effect/ai/McpClientError"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** The time that a server waited for its host during one call. */
export interface HostTime {
  /** Counts the time of an effect. Overlapping effects count once. */
  readonly during: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Fails if the server itself took longer. */
  readonly within: <A, E, R>(
    effect: Effect.Effect<A, E, R>,
    operation: string,
    limit: Duration.Duration
  ) => Effect.Effect<A, E | McpClientError, R>
}

export const make = (): HostTime => {
  let open = 0
  let since = 0
  let waited = 0
  const during: HostTime["during"] = (effect) =>
    Effect.acquireUseRelease(
      Effect.map(Clock.currentTimeMillis, (now) => {
        if (open++ === 0) since = now
      }),
      () => effect,
      () =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          if (--open === 0) waited += now - since
        })
    )
  return {
    during,
    within: (effect, operation, limit) =>
      Effect.raceFirst(
        effect,
        Effect.gen(function* () {
          const startedAt = yield* Clock.currentTimeMillis
          let left = Duration.toMillis(limit)
          while (left > 0) {
            yield* Effect.sleep(left)
            const now = yield* Clock.currentTimeMillis
            const inHost = waited + (open > 0 ? now - since : 0)
            left = Duration.toMillis(limit) - (now - startedAt - inHost)
          }
          return yield* new McpClientError({ reason: new TimeoutError({ operation }) })
        })
      )
  }
}
