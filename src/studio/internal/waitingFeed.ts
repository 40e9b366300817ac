/** The runs that wait for a person, as changes that pages receive while they are open. */

import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import type { StoreError } from "../../KernelError.ts"
import type { RunStoreShape } from "../../RunStore.ts"
import { waitingIn } from "./studioData.ts"

/** The difference between two lists of the runs that wait. */
export interface WaitingChange {
  /** The number of runs that wait. */
  readonly count: number
  /** The runs that wait since then or ask something else, with their revisions. All that wait, in the first change. */
  readonly asked: ReadonlyArray<readonly [runId: string, revision: number]>
  /** The runs that no longer wait. Absent in the first change. */
  readonly gone?: ReadonlyArray<string>
}

/** The revisions of the runs that wait. */
type Waiting = ReadonlyMap<string, number>

/** How long a change waits for others, since they come in crowds. */
const pace = "500 millis"

/** How often the list is read where the store announces no changes. */
const unannounced = "3 seconds"

/**
 * Emits the changes of the runs that wait, beginning with all of them. All streams share one reader of the store, which
 * reads heads alone, after the store has announced a change, and only while somebody listens.
 */
export const changes = (
  store: RunStoreShape
): Effect.Effect<Stream.Stream<WaitingChange, StoreError>, never, Scope.Scope> =>
  Effect.map(
    Stream.share(lists(store), { capacity: 1, strategy: "sliding", replay: 1 }),
    Stream.mapAccum(
      (): Waiting | undefined => undefined,
      (before, now): readonly [Waiting, ReadonlyArray<WaitingChange>] => [now, changesSince(before, now)]
    )
  )

/** Returns the change between two lists, if there is one. */
const changesSince = (before: Waiting | undefined, now: Waiting): ReadonlyArray<WaitingChange> => {
  const count = now.size
  if (before === undefined) return [{ count, asked: [...now] }]
  const asked = [...now].filter(([runId, revision]) => before.get(runId) !== revision)
  const gone = [...before.keys()].filter((runId) => !now.has(runId))
  return asked.length + gone.length === 0 ? [] : [{ count, asked, gone }]
}

const lists = (store: RunStoreShape): Stream.Stream<Waiting, StoreError> => {
  const { next = Effect.never, recheck = unannounced } = store.changes ?? {}
  return Stream.unwrap(
    Effect.sync(() => {
      let changed: Fiber.Fiber<void> | undefined
      const read = Effect.gen(function* () {
        if (changed !== undefined) {
          yield* Effect.raceFirst(Fiber.await(changed), Effect.sleep(recheck))
          yield* Effect.sleep(pace)
          yield* Fiber.interrupt(changed)
        }
        // Waits from before the reading, so that no change during it is missed.
        changed = yield* Effect.forkScoped(next, { startImmediately: true })
        return new Map((yield* waitingIn(store)).map(({ revision, runId }) => [runId, revision]))
      })
      return Stream.fromEffectRepeat(read)
    })
  ).pipe(Stream.scoped)
}
