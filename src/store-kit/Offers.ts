/**
 * Announces offered runs to workers, so that they claim them at once instead of at their next poll: in this process
 * through listeners, in other processes through a folder.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { RunStoreShape } from "../internal/store/runStoreTypes.ts"

/**
 * Called with each run that is offered.
 *
 * @category models
 * @since 0.1.0
 */
export type Listener = (runId: string) => void

/**
 * Emits runs as they are offered. If too many are waiting, the oldest are dropped.
 *
 * @category running
 * @since 0.1.0
 */
export const emitted = (listen: (listener: Listener) => () => void): Stream.Stream<string> =>
  Stream.callback(
    (queue) =>
      Effect.acquireRelease(
        Effect.sync(() => listen((runId) => Queue.offerUnsafe(queue, runId))),
        (leave) => Effect.sync(leave)
      ),
    { bufferSize: 1_000, strategy: "sliding" }
  )

/**
 * Shares the listeners of a store with a store that wraps it.
 *
 * @category running
 * @since 0.1.0
 */
export const shareOffers = (store: RunStoreShape, of: RunStoreShape): void => {
  origins.set(store, of)
}

/**
 * Calls a listener for each run offered on a store. Returns a function that removes the listener.
 *
 * @category running
 * @since 0.1.0
 */
export const onOffer = (store: RunStoreShape, listener: Listener): (() => void) => {
  const origin = originOf(store)
  const all = listeners.get(origin) ?? new Set()
  listeners.set(origin, all.add(listener))
  return () => void all.delete(listener)
}

/**
 * Calls the listeners of a store for an offered run.
 *
 * @category running
 * @since 0.1.0
 */
export const emitOffer = (store: RunStoreShape, runId: string): void => {
  for (const listener of listeners.get(originOf(store)) ?? []) listener(runId)
}

/**
 * Offers through a folder.
 *
 * @category models
 * @since 0.1.0
 */
export interface OfferFolder {
  /** Announces an offered run to all processes. A lost announcement is found by polling. */
  readonly emit: (runId: string) => Effect.Effect<void>
  /** Emits the ids of offered runs. */
  readonly offers: Stream.Stream<string>
}

/**
 * Announces offered runs to workers in other processes through a watched folder.
 *
 * An offer creates a file named after its run and removes it at once, so watchers get the name and the folder stays
 * empty. The first worker that listens creates the folder; without it an offer costs one failed open.
 *
 * @category constructors
 * @since 0.1.0
 */
export const offerFolder = (files: FileSystem.FileSystem, path: string): OfferFolder => {
  const emit: OfferFolder["emit"] = (runId) => {
    const name = nameOf(runId)
    if (name === undefined) return Effect.void
    const file = `${path}/${name}`
    return Effect.ignore(Effect.andThen(Effect.scoped(files.open(file, { flag: "w" })), files.remove(file)))
  }
  // An offer may arrive twice: a watcher that finds the file gone reports its creation as a removal, too.
  const watched = Stream.unwrap(
    Effect.as(files.makeDirectory(path, { recursive: true, mode: 0o700 }), files.watch(path))
  ).pipe(
    Stream.filter(({ _tag }) => _tag === "Remove"),
    Stream.map((event) => runIdOf(event.path)),
    Stream.filter(Option.isSome),
    Stream.map(({ value }) => value)
  )
  const offers = watched.pipe(
    Stream.tapError((error) => Effect.logDebug("offers of other processes cannot be watched at the moment", error)),
    Stream.retry(Schedule.spaced("5 seconds")),
    Stream.orDie
  )
  return { emit, offers }
}

const originOf = (store: RunStoreShape): RunStoreShape => {
  const origin = origins.get(store)
  return origin === undefined ? store : originOf(origin)
}

const origins = new WeakMap<RunStoreShape, RunStoreShape>()

const listeners = new WeakMap<RunStoreShape, Set<Listener>>()

/** Returns the file name for a run. Undefined for an id that does not fit. */
const nameOf = (runId: string): string | undefined => {
  if (!runId.isWellFormed()) return undefined
  const name = encodeURIComponent(runId).replace(/[.!~*'()]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
  return name !== "" && name.length <= 200 ? name : undefined
}

const runIdOf = (path: string): Option.Option<string> =>
  Option.liftThrowable(decodeURIComponent)(path.slice(path.lastIndexOf("/") + 1))
