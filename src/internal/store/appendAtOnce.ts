/**
 * Stores that append at once, in this process and without waiting. They need neither a time limit nor another attempt.
 */

import type * as Arr from "effect/Array"
import type * as Result from "effect/Result"
import type { ConcurrentAppendError, RunExists, StoreError } from "../../KernelError.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import type { RunStoreShape } from "./runStoreTypes.ts"

/** Appends records, or refuses them. Synchronous. */
export type AppendAtOnce = (
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  state: RunState
) => Result.Result<void, RunExists | ConcurrentAppendError | StoreError>

/** Says how a store appends at once. */
export const setAppendAtOnce = (store: RunStoreShape, append: AppendAtOnce): RunStoreShape => {
  stores.set(store, append)
  return store
}

/** How a store appends at once. Undefined for a store whose records have to be waited for. */
export const appendAtOnce = (store: RunStoreShape): AppendAtOnce | undefined => stores.get(store)

const stores = new WeakMap<RunStoreShape, AppendAtOnce>()
