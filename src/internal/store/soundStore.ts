/**
 * Guards the stores of a host: whatever they throw, they fail only with the errors of their contract.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { type KernelError, StoreError } from "../../KernelError.ts"
import type * as MediaStore from "../../MediaStore.ts"
import type * as RunStore from "../../RunStore.ts"
import { shareOffers } from "./offers.ts"
import { guarded, guardedStream, isSound, passedOver } from "../base/foreignCode.ts"

/** Wraps a store of runs. */
export const soundRuns = (store: RunStore.RunStoreShape): RunStore.RunStoreShape => {
  const known = soundStores.get(store)
  if (known !== undefined) return known
  const sound: RunStore.RunStoreShape = {
    append: (records, state) => call("append", () => store.append(records, state)),
    load: (runId) => call("load", () => store.load(runId)),
    head: (runId) => call("load", () => store.head(runId)),
    read: (runId, from) => stream("read", () => store.read(runId, from)),
    tail: (runId, from) => stream("read", () => store.tail(runId, from)),
    list: (filter) => call("list", () => store.list(filter)),
    acquire: (runId, claim) => call("acquire", () => store.acquire(runId, claim)),
    release: (runId, workerId) => call("release", () => store.release(runId, workerId)),
    cancelled: (runId) =>
      Effect.catchDefect(
        Effect.suspend(() => store.cancelled(runId)),
        neverCancelled
      ),
    offers: store.offers === undefined ? undefined : withoutDefects(store.offers),
    remove: (runIds) => call("remove", () => store.remove(runIds))
  }
  shareOffers(sound, store)
  soundStores.set(store, sound)
  soundStores.set(sound, sound)
  return sound
}

const soundStores = new WeakMap<RunStore.RunStoreShape, RunStore.RunStoreShape>()

/** Wraps a store of media, and the stores of its runs. */
export const soundMedia = (store: MediaStore.MediaStoreShape): MediaStore.MediaStoreShape => ({
  put: (media) => call("put", () => store.put(media)),
  get: (id) => call("get", () => store.get(id)),
  bytes: (id) => call("get", () => store.bytes(id)),
  content: (id) => call("get", () => store.content(id)),
  admit: (parts) => call("put", () => store.admit(parts)),
  list: call("list", () => store.list),
  size: call("list", () => store.size),
  run: (rootRunId, origins) => Effect.map(store.run(rootRunId, origins), soundMedia),
  release: (rootRunIds) => call("release", () => store.release(rootRunIds))
})

const call = <A, E extends KernelError, R>(
  operation: string,
  code: () => Effect.Effect<A, E, R>
): Effect.Effect<A, E | StoreError, R> =>
  guarded<A, E, R, E | StoreError>(name, code, (error) => errorOf(operation, error))

const stream = <A, E extends KernelError>(
  operation: string,
  code: () => Stream.Stream<A, E>
): Stream.Stream<A, E | StoreError> =>
  guardedStream<A, E, never, E | StoreError>(name, code, (error) => errorOf(operation, error))

/** Workers look for the offers that a store cannot emit. */
const withoutDefects = (offers: Stream.Stream<string>): Stream.Stream<string> =>
  Stream.catchCause(offers, (cause) =>
    Stream.fromEffectDrain(passedOver("a store could not emit the runs that other processes offer")(cause))
  )

/** A run whose store cannot wait for cancellations notices one when it stores its next record. */
const neverCancelled = (defect: unknown): Effect.Effect<never> =>
  Effect.andThen(passedOver("a store could not wait for a cancellation")(Cause.die(defect)), Effect.never)

const name = "a store"

/** The store's own error, or one that says that the outcome is unknown. */
const errorOf = <E extends KernelError>(operation: string, error: unknown): E | StoreError =>
  isErrorOf<E>(error) ? error : new StoreError({ operation, reason: "invalid", detail: "it failed unexpectedly" })

// Typed code fails with no other errors of the kernel.
const isErrorOf = <E extends KernelError>(error: unknown): error is E => isSound(error) && storeErrors.has(error._tag)

const storeErrors: ReadonlySet<KernelError["_tag"]> = new Set<KernelError["_tag"]>([
  "StoreError",
  "ConcurrentAppendError",
  "RunExists",
  "RunBusy",
  "RunNotFound",
  "MediaConflict",
  "MediaNotFound",
  "MediaUnreadable",
  "LimitExceeded"
])
