/**
 * Runs that belong together: a tree of runs, and the runs that one was forked from.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import { RunNotFound, type StoreError } from "../../KernelError.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import type { RunStoreShape } from "./runStoreTypes.ts"
import { foldFrom } from "./journalRules.ts"
import { storedTasks } from "./stored.ts"

/** A run and all runs below it. */
export type RunTree = readonly [RunState, ...Array<RunState>]

/** A run, the tasks that its open turn waits for, and theirs. A run that has ended waits for none. */
export const treeOf = (store: RunStoreShape, state: RunState): Effect.Effect<RunTree, StoreError> => {
  const below = Effect.flatMap(storedTasks(store, state), (tasks) =>
    Effect.forEach(tasks.values(), (task) => treeOf(store, task))
  )
  return Effect.map(below, (below) => [state, ...below.flat()])
}

/** Returns the records of a run and of all runs below it, oldest run first. */
export const recordsOf = Effect.fnUntraced(function* (
  store: RunStoreShape,
  runId: string
): Effect.fn.Return<ReadonlyArray<RunRecord>, RunNotFound | StoreError> {
  const root = yield* store.head(runId)
  if (Option.isNone(root)) return yield* new RunNotFound({ runId })
  const tree = yield* store.list({ rootRunId: root.value.rootRunId })
  // The id of a child run begins with that of its parent.
  const below = tree.filter((head) => head.runId === runId || head.runId.startsWith(`${runId}:`))
  const journals = yield* Effect.forEach(below.toReversed(), (head) => Stream.runCollect(store.read(head.runId)))
  return journals.flat()
})

/** A run at its first record, which says where it came from. Later records are not read. */
export const beginningOf = (store: RunStoreShape, runId: string): Effect.Effect<RunState | undefined, StoreError> =>
  Effect.flatMap(Stream.runCollect(Stream.take(store.read(runId), 1)), (records) => foldFrom(undefined, records))

/** The root runs that a run was forked from, nearest first. Their media also belong to it. */
export const originsOf = Effect.fnUntraced(function* (
  store: RunStoreShape,
  state: RunState
): Effect.fn.Return<ReadonlyArray<string>, StoreError> {
  const origins = new Set<string>()
  let root: RunState | undefined = state
  while (root?.forkedFrom !== undefined) {
    const original: RunState | undefined = yield* beginningOf(store, root.forkedFrom.runId)
    if (original === undefined || origins.has(original.rootRunId)) break
    origins.add(original.rootRunId)
    root = original.parentRunId === undefined ? original : yield* beginningOf(store, original.rootRunId)
  }
  return [...origins]
})
