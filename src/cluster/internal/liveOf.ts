/**
 * The live events of a run on its runner, for followers elsewhere.
 */

import * as Stream from "effect/Stream"
import { type LiveEvent, follow } from "../../store-kit/Follow.ts"
import type { RunStoreShape } from "../../RunStore.ts"

/** Emits the events that a follower cannot read in the store, until the run is at rest. Ends if the store fails. */
export const liveOf = (store: RunStoreShape, runId: string, after: number): Stream.Stream<LiveEvent> =>
  follow(store, runId, { after }).pipe(
    Stream.mapAccum(
      (): Place => ({ last: after, isFirst: true }),
      (place, event): readonly [Place, ReadonlyArray<LiveEvent>] => {
        if ("revision" in event) return [{ ...place, last: event.revision }, []]
        return [{ ...place, isFirst: false }, [{ after: place.last, isFirst: place.isFirst, event }]]
      }
    ),
    Stream.catchCause(() => Stream.empty)
  )

/** The position of a follower. */
interface Place {
  readonly last: number
  readonly isFirst: boolean
}
