/**
 * Runs foreign code within its time.
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { begin } from "../base/foreignCode.ts"
import { emit } from "./publish.ts"
import type { LiveEvent } from "./drafts.ts"
import { TimedOut } from "../skill/failureText.ts"
import type { Run } from "./run.ts"

/** The time that foreign code may take, and the event when it does not stop after that. */
export interface Limit {
  readonly timeout: Duration.Duration
  readonly leaked: LiveEvent
}

/**
 * Runs foreign code in a fiber of its own, so that neither its time nor its refusal to stop is the run's. Code that has
 * not stopped within the clean-up limit is reported and left behind.
 */
export const withinTimeout = <A, E>(
  run: Run,
  limit: Limit | undefined,
  code: Effect.Effect<A, E>
): Effect.Effect<Exit.Exit<A, E | TimedOut>> => {
  if (limit === undefined) return Effect.exit(code)
  return Effect.uninterruptibleMask((restore) =>
    begin(code, (fiber): Effect.Effect<Exit.Exit<A, E | TimedOut>> => {
      const done = fiber.pollUnsafe()
      if (done !== undefined) return Effect.succeed(done)
      const stop = stopped(run, fiber, limit.leaked)
      const waited = restore(Effect.timeoutOption(Fiber.await(fiber), limit.timeout))
      return Effect.flatMap(
        Effect.onError(waited, () => stop),
        Option.match({
          onNone: () => Effect.as(stop, Exit.fail(new TimedOut(limit.timeout))),
          onSome: (exit): Effect.Effect<Exit.Exit<A, E | TimedOut>> => Effect.succeed(exit)
        })
      )
    })
  )
}

const stopped = (run: Run, fiber: Fiber.Fiber<unknown, unknown>, leaked: LiveEvent): Effect.Effect<void> =>
  Effect.flatMap(Effect.timeoutOption(Fiber.interrupt(fiber), run.limits.cleanUpTimeout), (ended) =>
    Option.isSome(ended) ? Effect.void : Effect.sync(() => emit(run, leaked))
  )
