/**
 * Offers runs to workers in this process, which claim them at once instead of at their next poll.
 */

import type { RunStoreShape } from "./runStoreTypes.ts"

type Listener = (runId: string) => void

/** Shares the listeners of a store with one that wraps it. */
export const shareOffers = (store: RunStoreShape, of: RunStoreShape): void => {
  origins.set(store, of)
}

/** Calls a listener for each run offered on a store. Returns how to stop that. */
export const onOffer = (store: RunStoreShape, listener: Listener): (() => void) => {
  const origin = originOf(store)
  const all = listeners.get(origin) ?? new Set()
  listeners.set(origin, all.add(listener))
  return () => void all.delete(listener)
}

/** Tells the listeners of a store that a run is offered. */
export const tellOffer = (store: RunStoreShape, runId: string): void => {
  for (const listener of listeners.get(originOf(store)) ?? []) listener(runId)
}

const originOf = (store: RunStoreShape): RunStoreShape => {
  const origin = origins.get(store)
  return origin === undefined ? store : originOf(origin)
}

const origins = new WeakMap<RunStoreShape, RunStoreShape>()

const listeners = new WeakMap<RunStoreShape, Set<Listener>>()
