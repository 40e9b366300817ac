/**
 * Receives media of runs that start later, within limits for each caller and for the whole server.
 *
 * Bytes go to the media store as soon as they have arrived. A store in memory keeps the media of a run only while a
 * scope holds them, so they are held for a while for those who upload and follow.
 */

import * as Effect from "effect/Effect"
import * as RcMap from "effect/RcMap"
import type * as Scope from "effect/Scope"
import * as SharedPlaces from "../../kit/sharedPlaces.ts"
import { Limits } from "../../Limits.ts"
import type { Media } from "../../Media.ts"
import type { MediaStoreShape, StoredMedia } from "../../MediaStore.ts"
import { asProblem, type HttpProblem, TooMany } from "../HttpProblem.ts"
import type { CallerLimits } from "../ServedRuns.ts"

/** The media of the runs of a server. */
export interface Uploads {
  /**
   * Receives and stores a medium, whose length may be known. Its bytes count for the caller until the run starts, or
   * until the time for it is over. Fails if the caller has too many. Waits while too many bytes are being received.
   */
  readonly receive: (
    callerId: string,
    rootRunId: string,
    length: number | undefined,
    media: Effect.Effect<Media, HttpProblem>
  ) => Effect.Effect<StoredMedia, HttpProblem>
  /** Stops counting the media of a run. */
  readonly started: (rootRunId: string) => Effect.Effect<void>
  /** Opens the media of a root run. */
  readonly open: (rootRunId: string) => Effect.Effect<MediaStoreShape, never, Scope.Scope>
  /** Holds the media of a root run for a follower, and for a while after it has left if there are any. */
  readonly follow: (rootRunId: string) => Effect.Effect<void, never, Scope.Scope>
}

/** Creates the media of the runs of a server. */
export const uploads = Effect.fnUntraced(function* (
  media: MediaStoreShape,
  { receivedBytes, uploadBytes, uploadTime }: CallerLimits
): Effect.fn.Return<Uploads, never, Scope.Scope> {
  const isInMemory = media.keep !== undefined
  const waiting = new WaitingBytes()
  const receiving = SharedPlaces.make(receivedBytes, 0.5)
  const held = yield* RcMap.make({
    lookup: (rootRunId: string) =>
      Effect.andThen(
        Effect.addFinalizer(() => Effect.sync(() => waiting.drop(rootRunId))),
        isInMemory ? Effect.asVoid(media.run(rootRunId)) : Effect.void
      ),
    idleTimeToLive: uploadTime
  })
  const services = yield* Effect.context<never>()
  /** Holds the media of a run for a while, and nothing of the current request, whose body may be large. */
  const hold = (rootRunId: string): Effect.Effect<void> =>
    Effect.updateContext<void, never, never, never>(Effect.scoped(RcMap.get(held, rootRunId)), () => services)
  /** Followers of a run share one hold, since there may be thousands. */
  const followed = yield* RcMap.make({
    lookup: (rootRunId: string) => Effect.flatMap(media.run(rootRunId), ({ size }) => keptAfter(size, hold(rootRunId)))
  })
  /** Counts bytes of a caller until its run starts. */
  const count = (callerId: string, rootRunId: string, bytes: number) =>
    Effect.suspend(() => {
      if (waiting.of(callerId) + bytes > uploadBytes) {
        const detail = `media that wait for the start of their runs may have at most ${uploadBytes} bytes`
        return Effect.fail(new TooMany({ detail }))
      }
      return Effect.sync(() => waiting.add(callerId, rootRunId, bytes))
    })
  return {
    receive: Effect.fnUntraced(function* (callerId, rootRunId, length, arriving) {
      const { fetchedBytes } = yield* Limits
      yield* hold(rootRunId)
      // Counted before they arrive, so that a caller with too many sends none of them.
      let counted = length ?? 0
      yield* count(callerId, rootRunId, counted)
      const stored = Effect.gen(function* () {
        const medium = yield* arriving
        const more = bytesOf(medium) - counted
        yield* count(callerId, rootRunId, more)
        counted += more
        return yield* asProblem(rootRunId)((yield* media.run(rootRunId)).put(medium))
      })
      return yield* receiving
        .hold([callerId], Effect.scoped(stored), length ?? fetchedBytes)
        .pipe(Effect.onError(() => Effect.sync(() => waiting.subtract(rootRunId, counted))))
    }),
    started: (rootRunId) => Effect.sync(() => waiting.drop(rootRunId)),
    open: (rootRunId) => media.run(rootRunId),
    follow: (rootRunId) => (isInMemory ? RcMap.get(followed, rootRunId) : Effect.void)
  }
})

/** Holds media once more when the scope closes, if there are any. */
const keptAfter = (size: MediaStoreShape["size"], hold: Effect.Effect<void>): Effect.Effect<void, never, Scope.Scope> =>
  Effect.addFinalizer(() => Effect.ignore(Effect.flatMap(size, (count) => (count === 0 ? Effect.void : hold))))

const bytesOf = ({ source }: Media): number => (source._tag === "Bytes" ? source.bytes.byteLength : 0)

/** The bytes that each caller has uploaded for runs that have not started. */
class WaitingBytes {
  readonly #callers = new Map<string, number>()
  readonly #runs = new Map<string, { readonly callerId: string; readonly bytes: number }>()

  of(callerId: string): number {
    return this.#callers.get(callerId) ?? 0
  }

  add(callerId: string, runId: string, bytes: number): void {
    this.#count(callerId, bytes)
    this.#runs.set(runId, { callerId, bytes: (this.#runs.get(runId)?.bytes ?? 0) + bytes })
  }

  /** Subtracts bytes that were not stored. Does nothing for a run that is not counted any more. */
  subtract(runId: string, bytes: number): void {
    const known = this.#runs.get(runId)
    if (known !== undefined) this.add(known.callerId, runId, -Math.min(bytes, known.bytes))
  }

  drop(runId: string): void {
    const known = this.#runs.get(runId)
    if (known === undefined) return
    this.#runs.delete(runId)
    this.#count(known.callerId, -known.bytes)
  }

  #count(callerId: string, bytes: number): void {
    const all = this.of(callerId) + bytes
    if (all > 0) this.#callers.set(callerId, all)
    else this.#callers.delete(callerId)
  }
}
