/**
 * Which stores append at once, in this process and without waiting. They need neither a time limit nor another attempt.
 */

import type { RunStoreShape } from "./runStoreTypes.ts"

/** Marks a store whose `append` never waits, and fails only with the errors of its contract. */
export const atOnce = (store: RunStoreShape): RunStoreShape => {
  stores.add(store)
  return store
}

/** Does the store append at once? */
export const isAtOnce = (store: RunStoreShape): boolean => stores.has(store)

const stores = new WeakSet<RunStoreShape>()
