/**
 * Limits the time of a server, not counting the time in which it waits for its host. A server that reports progress gets
 * its time anew.
 */

import { McpClientError, TimeoutError } from "effect/ai/McpClientError"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/** The time that a server waited for its host during one call. */
export interface HostTime {
  /** Counts the time of an effect. Overlapping effects count once. */
  readonly during: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E>
  /** Gives the server its time anew, because it reported progress. */
  readonly renew: Effect.Effect<void>
  /** Fails if the server itself took longer than `limit` since its last report, or longer than `longest` in total. */
  readonly within: <A, E, R>(
    effect: Effect.Effect<A, E, R>,
    operation: string,
    limit: Duration.Duration,
    longest: Duration.Duration
  ) => Effect.Effect<A, E | McpClientError, R>
}

export const make = (): HostTime => {
  let open = 0
  let since = 0
  let waited = 0
  let reportedAt = 0
  let waitedBefore = 0
  const inHost = (now: number) => waited + (open > 0 ? now - since : 0)
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
  const renew = Effect.map(Clock.currentTimeMillis, (now) => {
    reportedAt = now
    waitedBefore = inHost(now)
  })
  return {
    during,
    renew,
    within: (effect, operation, limit, longest) =>
      Effect.raceFirst(
        effect,
        Effect.gen(function* () {
          yield* renew
          const startedAt = reportedAt
          for (;;) {
            const now = yield* Clock.currentTimeMillis
            const left = Math.min(
              Duration.toMillis(limit) - (now - reportedAt - (inHost(now) - waitedBefore)),
              Duration.toMillis(longest) - (now - startedAt - inHost(now))
            )
            if (left <= 0) return yield* new McpClientError({ reason: new TimeoutError({ operation }) })
            yield* Effect.sleep(left)
          }
        })
      )
  }
}
