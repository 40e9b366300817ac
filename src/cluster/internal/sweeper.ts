/** Finds runs without a message: those of processes outside the cluster, and those whose message was lost. */

import * as Singleton from "effect/cluster/Singleton"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { RunHead, RunStoreShape } from "../../RunStore.ts"
import { answerBy } from "../../internal/worker/deadlines.ts"
import * as Pages from "../../internal/worker/runPages.ts"
import { Drive } from "../RunEntity.ts"
import type { Messenger } from "./messenger.ts"

/** Runs the sweeper on one runner of the cluster. Messages for an active run change nothing. */
export const layer = (store: RunStoreShape, { send }: Messenger, interval: Duration.Duration) => {
  const millis = Duration.toMillis(interval)
  const bring = ({ revision, runId }: RunHead) => send(new Drive({ runId, revision }))
  const looking = { list: store.list, isFull: () => false }
  const queued = Pages.make(["queued"], { ...looking, consider: bring })
  const lost = Pages.make(["running", "interrupted"], {
    ...looking,
    consider: (head, now) => (head.updatedAt < now - millis ? bring(head) : Effect.void)
  })
  // The message for the deadline of a question may be lost, too.
  const late = Pages.make(["waiting"], {
    ...looking,
    consider: (head, now) => ((answerBy(head) ?? Infinity) < now - millis ? bring(head) : Effect.void)
  })
  const often = Duration.min(interval, Duration.seconds(2))
  const both = Effect.all(
    [
      Effect.forever(Effect.andThen(queued.next, Effect.sleep(often))),
      Effect.forever(Effect.andThen(Effect.andThen(lost.all, late.next), Effect.sleep(interval)))
    ],
    { concurrency: "unbounded", discard: true }
  )
  return Singleton.make("kernai/sweeper", both)
}
