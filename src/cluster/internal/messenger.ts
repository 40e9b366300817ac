/**
 * Sends messages to the runs of a cluster.
 */

import type { Sharding } from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { StoreError } from "../../KernelError.ts"
import { logIgnored } from "../../kit/foreignCode.ts"
import { flat } from "../../kit/text.ts"
import type { Source } from "../../store-kit/Follow.ts"
import { type Drive, type Driven, idOf, RunEntity } from "../RunEntity.ts"
import { decodeLive } from "./wire.ts"

/** The messages of a process. */
export interface Messenger {
  /** Stores a message for a run. The owner of the run receives it, now or later. */
  readonly send: (message: Drive) => Effect.Effect<void, StoreError>
  /** Sends a new run to its runner, without waiting. A lost message is found by polling. */
  readonly begin: (message: Drive) => Effect.Effect<void>
  /** Sends a message, and retries until it is stored. */
  readonly later: (message: Drive) => Effect.Effect<void>
  /** Sends a message, and waits until the run is at rest. */
  readonly ask: (message: Drive) => Effect.Effect<typeof Driven.Type, StoreError>
  /** Emits the live events of a run from its runner. */
  readonly live: Source
}

export const make: Effect.Effect<Messenger, never, Sharding | Scope.Scope> = Effect.gen(function* () {
  const client = yield* RunEntity.client
  const scope = yield* Effect.scope
  const ask: Messenger["ask"] = (message) => Effect.mapError(client(idOf(message.runId)).Drive(message), unreachable)
  const send: Messenger["send"] = (message) =>
    Effect.mapError(client(idOf(message.runId)).Drive(message, { discard: true }), unreachable)
  return {
    send,
    later: (message) =>
      send(message).pipe(
        Effect.tapError((error) => Effect.logWarning(`a message for run ${flat(message.runId)} was not stored`, error)),
        Effect.retry(Schedule.spaced("5 seconds")),
        Effect.orDie
      ),
    ask,
    // A request that waits for its reply goes directly to the runner. The runner would read an announced one from the
    // database.
    begin: (message) =>
      Effect.catchCause(ask(message), logIgnored(`run ${flat(message.runId)} was not sent to the cluster`)).pipe(
        Effect.forkIn(scope, { startImmediately: true }),
        Effect.asVoid
      ),
    live: (rootRunId, runId, after) =>
      client(idOf(rootRunId))
        .Follow({ runId, after })
        .pipe(
          Stream.retry(Schedule.spaced("1 second")),
          Stream.catchCause((cause) =>
            Stream.fromEffectDrain(Effect.logDebug(`run ${flat(runId)} has no live events here`, cause))
          ),
          Stream.map(decodeLive),
          Stream.filter(Option.isSome),
          Stream.map(({ value }) => value)
        )
  }
})

/** Creates the error of a message that was not stored. */
const unreachable = (error: { readonly _tag: string }): StoreError =>
  new StoreError({ operation: "send to the cluster", reason: "unavailable", detail: error._tag })
