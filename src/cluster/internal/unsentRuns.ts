/**
 * Finds runs without a message: those of processes outside the cluster, those whose message was lost, and those whose
 * agent no runner had.
 */

import type { MessageStorage } from "effect/cluster/MessageStorage"
import type { Sharding } from "effect/cluster/Sharding"
import * as Singleton from "effect/cluster/Singleton"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as PrimaryKey from "effect/PrimaryKey"
import type { RunHead, RunStoreShape } from "../../RunStore.ts"
import * as Pages from "../../store-kit/RunPages.ts"
import { Drive } from "../RunEntity.ts"
import { addressOf } from "./runAddress.ts"
import type { Messenger } from "./messenger.ts"

/** What is polled, and whether a runner has the agent of a run. */
export interface Polled {
  readonly store: RunStoreShape
  readonly messenger: Messenger
  readonly sharding: Sharding["Service"]
  readonly messages: MessageStorage["Service"]
  readonly isPlaced: (head: RunHead) => Effect.Effect<boolean>
  readonly interval: Duration.Duration
}

/** Polls the store on one runner of the cluster. Messages for an active run change nothing. */
export const layer = ({ interval, isPlaced, messages, messenger: { send }, sharding, store }: Polled) => {
  const millis = Duration.toMillis(interval)
  const sent = ({ revision, runId }: RunHead) => send(new Drive({ runId, revision }))
  // The message for a run without a runner was answered when no runner had its agent, and is delivered once more.
  const resent = ({ revision, runId }: RunHead) => {
    const message = new Drive({ runId, revision })
    const key = { address: addressOf(sharding, runId), tag: "Drive", id: PrimaryKey.value(message) }
    return Effect.matchEffect(messages.requestIdForPrimaryKey(key), {
      onFailure: () => send(message),
      onSuccess: Option.match({ onNone: () => send(message), onSome: (id) => Effect.asVoid(sharding.reset(id)) })
    })
  }
  const resentRuns = new Set<string>()
  const placed = (head: RunHead) =>
    Effect.flatMap(resentRuns.has(head.runId) ? Effect.succeed(false) : isPlaced(head), (isPlaced) => {
      if (!isPlaced) return Effect.void
      resentRuns.add(head.runId)
      return resent(head)
    })
  const polling = { list: store.list, isFull: () => false }
  const queued = Pages.make(["queued"], {
    ...polling,
    consider: (head) => (head.status.type === "queued" && head.status.reason !== undefined ? placed(head) : sent(head))
  })
  const lost = Pages.make(["running", "interrupted"], {
    ...polling,
    // The clock may have been set back since.
    consider: (head, now) => (Math.abs(now - head.updatedAt) > millis ? sent(head) : Effect.void)
  })
  // The message for the deadline of a question may be lost, too.
  const late = Pages.late({ list: store.list, consider: sent }, millis)
  const often = Duration.min(interval, Duration.seconds(2))
  const forget = Effect.sync(() => resentRuns.clear())
  const both = Effect.all(
    [
      Effect.forever(Effect.andThen(queued.next, Effect.sleep(often))),
      Effect.forever(Effect.all([lost.all, late, forget, Effect.sleep(interval)], { discard: true }))
    ],
    { concurrency: "unbounded", discard: true }
  )
  return Singleton.make("kernai/unsent-runs", both)
}
