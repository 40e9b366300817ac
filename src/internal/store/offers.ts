/**
 * Offers runs to workers in this process, which claim them at once instead of at their next poll.
 */

import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import type { RunStoreShape } from "./runStoreTypes.ts"

/** Called with each run that is offered. */
export type Listener = (runId: string) => void

/** Emits runs as they are offered. Of very many that are offered while others are claimed, the oldest are dropped. */
export const emitted = (listen: (listener: Listener) => () => void): Stream.Stream<string> =>
  Stream.callback(
    (queue) =>
      Effect.acquireRelease(
        Effect.sync(() => listen((runId) => Queue.offerUnsafe(queue, runId))),
        (leave) => Effect.sync(leave)
      ),
    { bufferSize: 1_000, strategy: "sliding" }
  )

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
