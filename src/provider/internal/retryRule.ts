/** Decides when a failed model call is retried. */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ProviderError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { ModelStream, ReplyFailure } from "../../Middleware.ts"
import type { RetryOptions } from "../Resilience.ts"

/** The errors of a reply. */
export type Failure = Stream.Error<ModelStream>

/** Returns true if the same call may succeed a little later. */
export const isPassing = (error: ProviderError): boolean => error.isRetryable

/** Starts a reply, and retries failures that may pass. A failure that stops the run on purpose is never retried. */
export const again = (
  opened: Effect.Effect<ModelStream, Failure, Scope.Scope>,
  options: RetryOptions
): Effect.Effect<ModelStream, ProviderError, Scope.Scope> =>
  Effect.suspend(() => {
    const attempts = options.attempts ?? 3
    const mayPass = options.while ?? isPassing
    let made = 0
    return Effect.catchIf(
      opened,
      (error) => error._tag !== "ProviderError",
      (error) => Effect.succeed<ModelStream>(Stream.fail(error))
    ).pipe(
      Effect.retry({
        schedule: options.schedule ?? pauses,
        while: (error) => (++made < attempts && mayPass(error) ? patience(error) : Effect.succeed(false))
      })
    )
  })

const pauses = Schedule.exponential("500 millis").pipe(Schedule.jittered)

/** Decides whether to restart a reply that broke off, and waits before the next attempt. */
export const restart =
  (options: RetryOptions) =>
  ({ attempt, error }: ReplyFailure): Effect.Effect<boolean> =>
    Effect.gen(function* () {
      if (attempt >= (options.attempts ?? 3) || !(options.while ?? isPassing)(error)) return false
      const pause = yield* pauseBefore(attempt, options.schedule ?? pauses, error)
      if (pause === undefined || !(yield* patience(error))) return false
      yield* Effect.sleep(pause)
      return true
    })

/** Returns the pause of a schedule before its nth repetition, or undefined if the schedule has ended by then. */
const pauseBefore = Effect.fnUntraced(function* (
  nth: number,
  schedule: Schedule.Schedule<unknown, ProviderError>,
  error: ProviderError
) {
  const step = yield* Schedule.toStep(schedule)
  const now = yield* Clock.currentTimeMillis
  let pause: Duration.Duration | undefined
  for (let done = 0; done < nth; done++) {
    pause = yield* Pull.matchEffect(step(now, error), {
      onSuccess: ([, delay]) => Effect.succeed<Duration.Duration | undefined>(delay),
      onFailure: () => Effect.undefined,
      onDone: () => Effect.undefined
    })
    if (pause === undefined) return undefined
  }
  return pause
})

/** Waits as long as the vendor asked. Returns false if that is too long. */
const patience = Effect.fnUntraced(function* (error: ProviderError) {
  if (error.retryAt === undefined) return true
  const limits = yield* Limits
  const wait = error.retryAt - (yield* Clock.currentTimeMillis)
  if (wait > Duration.toMillis(limits.maxRetryAfter)) return false
  if (wait > 0) yield* Effect.sleep(wait)
  return true
})
