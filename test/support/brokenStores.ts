/**
 * Stores that break a promise, made of the one in memory.
 */
import { Effect, Layer, Option } from "effect"
import { RunStore } from "kernai"
import type { CrashMatrix } from "kernai/testing"

type Place = NonNullable<CrashMatrix.Settings["store"]>

/** Each process opens the same runs; what it is given lies. */
const over = (lie: (store: RunStore.RunStoreShape) => RunStore.RunStoreShape): Place =>
  Effect.map(RunStore.makeMemory, (store) => Layer.sync(RunStore.RunStore, () => lie(store)))

/** Takes the same record twice for another's: a lost acknowledgement looks like a lost run. */
export const withoutRepeats: Place = over((store) => ({
  ...store,
  append: (records, state) =>
    Effect.flatMap(store.head(state.runId), (head) => {
      const actual = Option.isSome(head) ? head.value.revision : 0
      const { revision, runId } = records[0]
      return revision > 1 && actual >= revision
        ? Effect.fail(new RunStore.ConcurrentAppendError({ runId, expected: revision - 1, actual }))
        : store.append(records, state)
    })
}))

/** Acknowledges what it only remembers: whoever opens it next does not find the last record. */
export const thatLosesTheLast: Place = over((store) => {
  let last: ReturnType<RunStore.RunStoreShape["append"]> = Effect.void
  return {
    ...store,
    append: (records, state) =>
      Effect.suspend(() => {
        if (records[0].revision === 1) return store.append(records, state)
        const before = last
        last = store.append(records, state)
        return before
      })
  }
})
