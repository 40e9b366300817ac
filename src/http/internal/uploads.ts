/**
 * Holds uploaded media until their run starts. A media store in memory keeps the media of a run only while a scope
 * holds them, and until the run starts, that is the scope of the server.
 */

import * as Effect from "effect/Effect"
import * as RcMap from "effect/RcMap"
import type * as Scope from "effect/Scope"
import type { MediaStoreShape } from "../../MediaStore.ts"
import { type HttpProblem, TooMany } from "../HttpProblem.ts"
import type { CallerLimits } from "../ServedRuns.ts"

/** The media of the runs of a server. */
export interface Uploads {
  /** Opens the media store of a root run, which is held for a while after its last use. */
  readonly open: (rootRunId: string) => Effect.Effect<MediaStoreShape, never, Scope.Scope>
  /**
   * Counts bytes that a caller uploads for a run, until the run starts or its media are no longer held. Fails if the
   * caller holds too many. The bytes of a failed `upload` are not counted.
   */
  readonly counted: <A>(
    callerId: string,
    rootRunId: string,
    bytes: number,
    upload: Effect.Effect<A, HttpProblem, Scope.Scope>
  ) => Effect.Effect<A, HttpProblem, Scope.Scope>
  /** Stops counting the media of a run. */
  readonly started: (rootRunId: string) => Effect.Effect<void>
}

/** Holds the media of each run until they have not been used for a time. */
export const uploads = (
  media: MediaStoreShape,
  { uploadBytes, uploadTime }: CallerLimits
): Effect.Effect<Uploads, never, Scope.Scope> => {
  const waiting = new WaitingBytes()
  const lookup = (rootRunId: string) =>
    Effect.andThen(
      Effect.addFinalizer(() => Effect.sync(() => waiting.drop(rootRunId))),
      media.run(rootRunId)
    )
  return Effect.map(RcMap.make({ lookup, idleTimeToLive: uploadTime }), (map): Uploads => ({
    open: (rootRunId) => RcMap.get(map, rootRunId),
    counted: (callerId, rootRunId, bytes, upload) =>
      Effect.suspend(() => {
        if (waiting.of(callerId) + bytes > uploadBytes) {
          const detail = `media that wait for the start of their runs may have at most ${uploadBytes} bytes`
          return Effect.fail(new TooMany({ detail }))
        }
        waiting.add(callerId, rootRunId, bytes)
        return Effect.onError(upload, () => Effect.sync(() => waiting.subtract(rootRunId, bytes)))
      }),
    started: (rootRunId) => Effect.sync(() => waiting.drop(rootRunId))
  }))
}

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
