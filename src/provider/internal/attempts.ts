/** Retries a model call as long as nothing of its reply has been delivered. */

import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Pull from "effect/Pull"
import * as Random from "effect/Random"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { FailedAttempt, ProviderError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { StreamPart } from "../../StreamPart.ts"
import { failedAttempt, type Fault, isPassing, toError } from "./providerFault.ts"
import { isSubstance } from "./replyParts.ts"

/** Starts a reply, and retries failures that may pass. `begin` succeeds at the first part with content. */
export const patiently = Effect.fnUntraced(function* (
  provider: string,
  secrets: ReadonlyArray<string>,
  begin: Effect.Effect<Stream.Stream<StreamPart, Fault>, Fault, Scope.Scope>
): Effect.fn.Return<Stream.Stream<StreamPart, ProviderError>, ProviderError, Scope.Scope> {
  const limits = yield* Limits
  const scope = yield* Effect.scope
  const history: Array<FailedAttempt> = []
  for (let attempt = 1; ; attempt++) {
    const asError = (fault: Fault) => toError(provider, fault, secrets, attempt, history)
    const own = yield* Scope.fork(scope)
    const begun = yield* Effect.result(Scope.provide(begin, own))
    if (Result.isSuccess(begun)) return Stream.mapError(begun.success, asError)
    const fault = begun.failure
    yield* Scope.close(own, Exit.fail(fault))
    const now = yield* Clock.currentTimeMillis
    const patience = fault.retryAt === undefined ? 0 : fault.retryAt - now
    if (attempt >= limits.modelAttempts || !isPassing(fault)) return yield* asError(fault)
    // A response that names a time to retry is a rate limit, whatever its status.
    if (patience > Duration.toMillis(limits.maxRetryAfter)) {
      return yield* asError({ ...fault, reason: "rate_limited" })
    }
    history.push(failedAttempt(provider, fault, secrets, now))
    const pause = Math.min(8_000, 500 * 2 ** (attempt - 1)) * (0.75 + 0.25 * (yield* Random.next))
    yield* Effect.sleep(Math.max(patience, pause))
  }
})

/** Starts a reply. Succeeds with the whole reply when its first part with content has arrived. */
export const open = Effect.fnUntraced(function* <E>(
  stream: Stream.Stream<StreamPart, E>
): Effect.fn.Return<Stream.Stream<StreamPart, E>, E, Scope.Scope> {
  type Parts = Arr.NonEmptyReadonlyArray<StreamPart>
  const own = yield* Scope.fork(yield* Effect.scope)
  const pull = yield* Scope.provide(Stream.toPull(stream), own)
  const next = Effect.onError(
    Pull.catchDone(pull, (): Effect.Effect<Parts | undefined> => Effect.undefined),
    (cause) => Scope.close(own, Exit.failCause(cause))
  )
  let held: Parts | undefined = yield* next
  while (held !== undefined && !held.some(isSubstance)) {
    const more: Parts | undefined = yield* next
    if (more === undefined) return Stream.fromIterable(held)
    held = Arr.appendAll(held, more)
  }
  if (held === undefined) return Stream.empty
  return Stream.concat(Stream.fromArray(held), Stream.fromPull(Effect.succeed(pull)))
})
