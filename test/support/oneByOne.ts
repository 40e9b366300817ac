/**
 * Stores that append every record by itself, so that a test can act between two of them.
 */
import { Effect, Layer, Stream } from "effect"
import { Kernel, RunState, RunStore } from "kernai"

type AppendError = RunStore.RunExists | RunStore.ConcurrentAppendError | RunStore.StoreError

/** Appends one record and the state that it leads to. */
export type AppendOne = (record: RunState.RunRecord, state: RunState.RunState) => Effect.Effect<void, AppendError>

/** The same store, which is given one record after the other by `append`. */
export const oneByOne = (
  store: RunStore.RunStoreShape,
  append: AppendOne = (record, state) => store.append([record], state)
): RunStore.RunStoreShape => {
  const last = new Map<string, RunState.RunState>()
  /** The state before a record. Where an append is tried again, the store is ahead of it. */
  const before = ({ revision, runId }: RunState.RunRecord) => {
    const known = last.get(runId)
    if (revision === 1 || known?.revision === revision - 1) return Effect.succeed(revision === 1 ? undefined : known)
    return Effect.map(Stream.runCollect(Stream.take(store.read(runId), revision - 1)), RunState.fold)
  }
  return {
    ...store,
    append: Effect.fnUntraced(function* (records, end) {
      let state = records.length === 1 ? undefined : yield* before(records[0])
      for (const record of records) {
        state = record.revision === end.revision ? end : RunState.advance(state, record)
        yield* append(record, state)
        last.set(record.runId, state)
      }
    })
  }
}

/** A kernel on a store that is given every record by itself, so that its process can die between any two of them. */
export const kernelOneByOne = Layer.provide(
  Kernel.layerNoProvider,
  Layer.effect(
    RunStore.RunStore,
    Effect.map(RunStore.RunStore, (store) => oneByOne(store))
  )
)
