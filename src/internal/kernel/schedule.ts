/**
 * Submits runs at the times of a cron expression.
 */

import * as Clock from "effect/Clock"
import * as Cron from "effect/Cron"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import { ConfigInvalid } from "../../KernelError.ts"
import { flat } from "../base/text.ts"

/** When runs start. */
export interface Times {
  readonly name: string
  readonly cron: string
  readonly timeZone?: string | undefined
  readonly late?: Duration.Input | undefined
}

/**
 * Calls `submit` at each time, with an id that is the same in every process: a store takes one run of an id. A store that
 * fails is tried again, until the time is late.
 */
export const schedule = <E extends { readonly _tag: string; readonly message: string }, R>(
  times: Times,
  submit: (runId: string) => Effect.Effect<unknown, E, R>
): Effect.Effect<never, E | ConfigInvalid, R> =>
  Effect.gen(function* () {
    const parsed = Cron.parse(times.cron, times.timeZone)
    if (Result.isFailure(parsed)) return yield* new ConfigInvalid({ path: "cron", reason: parsed.failure.message })
    const late = Duration.toMillis(times.late ?? "1 minute")
    let after = (yield* Clock.currentTimeMillis) - late
    for (;;) {
      const at = Cron.next(parsed.success, new Date(after)).getTime()
      yield* until(at)
      const runId = `${times.name}@${new Date(at).toISOString()}`
      yield* submit(runId).pipe(
        Effect.tapError((error) =>
          error._tag === "StoreError"
            ? Effect.logWarning(`run ${flat(runId)} was not submitted`, error.message)
            : Effect.void
        ),
        Effect.retry({
          while: ({ _tag }) => _tag === "StoreError",
          schedule: Schedule.upTo(Schedule.spaced("5 seconds"), { duration: late })
        }),
        // Another process submitted it, or it is too late for it.
        Effect.catchIf(
          ({ _tag }) => _tag === "RunExists" || _tag === "StoreError",
          () => Effect.void
        )
      )
      after = Math.max(at, (yield* Clock.currentTimeMillis) - late)
    }
  })

/** Waits until an instant of the clock, which may be set meanwhile. */
const until = (at: number): Effect.Effect<void> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    now >= at ? Effect.void : Effect.andThen(Effect.sleep(Math.min(at - now, hour)), until(at))
  )

const hour = 3_600_000
