/**
 * Foreign code within its time.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { type Live, tell } from "./commit.ts"
import { begin } from "../base/inTime.ts"
import type { Run } from "./run.ts"

/** It took longer than it may. */
export class TimedOut {
  readonly _tag = "TimedOut"
  readonly message: string
  constructor(limit: Duration.Duration) {
    this.message = `took longer than ${Duration.toMillis(limit)} ms`
  }
}

/**
 * Runs foreign code in a fiber of its own, so that neither its time nor its
 * refusal to stop is the run's: what has not stopped within the clean-up limit
 * is told as `leaked` and left behind.
 */
export const limited = <A, E>(
  run: Run,
  leaked: Live,
  limit: Duration.Duration,
  effect: Effect.Effect<A, E>
): Effect.Effect<Exit.Exit<A, E | TimedOut>> =>
  Effect.uninterruptibleMask((restore) =>
    begin(effect, (fiber) => {
      const done = fiber.pollUnsafe()
      if (done !== undefined) return Effect.succeed(done)
      const stop = Effect.flatMap(
        Effect.timeoutOption(Fiber.interrupt(fiber), run.limits.cleanUpTimeout),
        Option.match({
          onNone: () => Effect.sync(() => tell(run, leaked)),
          onSome: () => Effect.void
        })
      )
      return restore(Effect.timeoutOption(Fiber.await(fiber), limit)).pipe(
        Effect.onInterrupt(() => stop),
        Effect.flatMap(
          Option.match({
            onNone: () => Effect.as(stop, Exit.fail(new TimedOut(limit))),
            onSome: (exit): Effect.Effect<Exit.Exit<A, E | TimedOut>> => Effect.succeed(exit)
          })
        )
      )
    })
  )
