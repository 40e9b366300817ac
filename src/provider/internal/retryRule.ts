/**
 * When a failed model call is retried, and after how long.
 */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { ProviderError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { ModelStream } from "../../Middleware.ts"
import type { RetryOptions } from "../Resilience.ts"

/** How a reply may fail. */
export type Failure = Stream.Error<ModelStream>

/** Tells whether the same call may succeed a little later. */
export const isPassing = (error: ProviderError): boolean => error.isRetryable

/** Opens a reply again as long as that may help; what stops a run on purpose is never repeated. */
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

/** Waits as long as the vendor asked. Returns false if that is too long. */
const patience = Effect.fnUntraced(function* (error: ProviderError) {
  if (error.retryAt === undefined) return true
  const limits = yield* Limits
  const wait = error.retryAt - (yield* Clock.currentTimeMillis)
  if (wait > Duration.toMillis(limits.maxRetryAfter)) return false
  if (wait > 0) yield* Effect.sleep(wait)
  return true
})
