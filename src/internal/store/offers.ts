/**
 * Offers runs to workers, which claim them at once instead of at their next poll: to those in this process by
 * listeners, and to those in others through a folder.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Schedule from "effect/Schedule"
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

/** The offers in a folder. */
export interface OfferFolder {
  /** Tells all processes that a run is offered. What is not told is found at the next look. */
  readonly tell: (runId: string) => Effect.Effect<void>
  /** Emits the ids of offered runs. */
  readonly offers: Stream.Stream<string>
}

/**
 * Tells workers in other processes of offered runs through a folder.
 *
 * An offer makes a file with the name of its run and removes it at once, so the folder stays empty and watchers get the
 * name. The first worker that listens makes the folder; without it an offer costs one failed open.
 */
export const offerFolder = (files: FileSystem.FileSystem, path: string): OfferFolder => {
  const tell: OfferFolder["tell"] = (runId) => {
    const name = nameOf(runId)
    if (name === undefined) return Effect.void
    const file = `${path}/${name}`
    return Effect.ignore(Effect.andThen(Effect.scoped(files.open(file, { flag: "w" })), files.remove(file)))
  }
  // Each offer is seen once or twice: when its file is gone, and when it came, if it is gone by then.
  const watched = Stream.unwrap(
    Effect.as(files.makeDirectory(path, { recursive: true, mode: 0o700 }), files.watch(path))
  ).pipe(
    Stream.filter(({ _tag }) => _tag === "Remove"),
    Stream.map((event) => runIdOf(event.path)),
    Stream.filter(Option.isSome),
    Stream.map(({ value }) => value)
  )
  const offers = watched.pipe(
    Stream.tapError((error) => Effect.logDebug("offers of other processes are not seen for a while", error)),
    Stream.retry(Schedule.spaced("5 seconds")),
    Stream.orDie
  )
  return { tell, offers }
}

const originOf = (store: RunStoreShape): RunStoreShape => {
  const origin = origins.get(store)
  return origin === undefined ? store : originOf(origin)
}

const origins = new WeakMap<RunStoreShape, RunStoreShape>()

const listeners = new WeakMap<RunStoreShape, Set<Listener>>()

/** The name of a file for a run; none for an id that is too long for one. */
const nameOf = (runId: string): string | undefined => {
  if (!runId.isWellFormed()) return undefined
  const name = encodeURIComponent(runId).replace(/[.!~*'()]/g, (char) => `%${char.charCodeAt(0).toString(16)}`)
  return name !== "" && name.length <= 200 ? name : undefined
}

const runIdOf = (path: string): Option.Option<string> =>
  Option.liftThrowable(decodeURIComponent)(path.slice(path.lastIndexOf("/") + 1))
