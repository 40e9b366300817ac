/**
 * A store that sends offered runs to the cluster.
 *
 * A submitted or answered run is offered with an expired lease. Otherwise the store is unchanged: the offer is stored
 * first, and a message that does not reach the cluster is found missing by polling.
 */

import type { MessageStorage } from "effect/cluster/MessageStorage"
import type { Sharding } from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { logIgnored } from "../../kit/foreignCode.ts"
import { flat } from "../../kit/text.ts"
import { connectLive, shareLive } from "../../store-kit/Follow.ts"
import { isOffer } from "../../store-kit/StoreRules.ts"
import type { RunStoreShape } from "../../RunStore.ts"
import { Drive } from "../RunEntity.ts"
import { addressOf } from "./runAddress.ts"
import type { Messenger } from "./messenger.ts"

/** Sends an offered run to the cluster. A message that is not stored is found missing by polling. */
const offered = ({ send }: Messenger, { head }: RunStoreShape, runId: string): Effect.Effect<void> =>
  Effect.catchCause(
    Effect.flatMap(head(runId), (found) =>
      Option.match(found, {
        onNone: () => Effect.void,
        onSome: ({ revision, rootRunId }) => (rootRunId === runId ? send(new Drive({ runId, revision })) : Effect.void)
      })
    ),
    logIgnored(`run ${flat(runId)} was not sent to the cluster`)
  )

/** Wraps a store. */
export const make = (
  store: RunStoreShape,
  messenger: Messenger,
  forget: (runIds: ReadonlyArray<string>) => Effect.Effect<void>
): RunStoreShape => {
  const shared: RunStoreShape = {
    ...store,
    acquire: (runId, claim) =>
      isOffer(claim)
        ? Effect.andThen(store.acquire(runId, claim), offered(messenger, store, runId))
        : store.acquire(runId, claim),
    remove: (runIds) => Effect.andThen(store.remove(runIds), forget(runIds))
  }
  shareLive(shared, store)
  connectLive(shared, messenger.live)
  return shared
}

/** Deletes the stored messages and replies of removed runs. */
export const forgetter =
  (sharding: Sharding["Service"], storage: MessageStorage["Service"]) =>
  (runIds: ReadonlyArray<string>): Effect.Effect<void> =>
    Effect.forEach(
      runIds,
      (runId) =>
        Effect.catchCause(
          storage.clearAddress(addressOf(sharding, runId)),
          logIgnored(`the messages of run ${flat(runId)} stay stored`)
        ),
      { discard: true, concurrency: 4 }
    )
