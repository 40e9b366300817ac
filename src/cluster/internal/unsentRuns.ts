/** Finds runs without a message: those of processes outside the cluster, and those whose message was lost. */

import * as Singleton from "effect/cluster/Singleton"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { answerBy } from "../../RunDriver.ts"
import type { RunHead, RunStoreShape } from "../../RunStore.ts"
import * as Pages from "../../store-kit/RunPages.ts"
import { Drive } from "../RunEntity.ts"
import type { Messenger } from "./messenger.ts"

/** Polls the store on one runner of the cluster. Messages for an active run change nothing. */
export const layer = (store: RunStoreShape, { send }: Messenger, interval: Duration.Duration) => {
  const millis = Duration.toMillis(interval)
  const sent = ({ revision, runId }: RunHead) => send(new Drive({ runId, revision }))
  const polling = { list: store.list, isFull: () => false }
  const queued = Pages.make(["queued"], { ...polling, consider: sent })
  const lost = Pages.make(["running", "interrupted"], {
    ...polling,
    consider: (head, now) => (head.updatedAt < now - millis ? sent(head) : Effect.void)
  })
  // The message for the deadline of a question may be lost, too.
  const late = Pages.make(["waiting"], {
    ...polling,
    consider: (head, now) => ((answerBy(head) ?? Infinity) < now - millis ? sent(head) : Effect.void)
  })
  const often = Duration.min(interval, Duration.seconds(2))
  const both = Effect.all(
    [
      Effect.forever(Effect.andThen(queued.next, Effect.sleep(often))),
      Effect.forever(Effect.andThen(Effect.andThen(lost.all, late.next), Effect.sleep(interval)))
    ],
    { concurrency: "unbounded", discard: true }
  )
  return Singleton.make("kernai/unsent-runs", both)
}
