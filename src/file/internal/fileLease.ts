/**
 * Leases of runs in files: a log in which each line names the holder from then on.
 *
 * Leases do not wait for the disk. A power cut that loses a lease also ends its worker, and the revision of the run
 * lets only one worker append. If an offer is lost, workers claim the run once the lease before it has expired, or
 * `RunWorker.Options.orphanAfter` after its last record, which was synced.
 */

import * as Effect from "effect/Effect"
import type * as FileSystem from "effect/FileSystem"
import type { PlatformError } from "effect/PlatformError"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { StoreError } from "../../KernelError.ts"
import type { Lease } from "../../RunStore.ts"
import type { FileClock } from "./fileClock.ts"
import * as Log from "./lineLog.ts"

/** A lease as stored in its file. */
export type Kept = Omit<Lease, "isLive">

/** Returns the lease of a run, if it has one. */
export const read = (files: FileSystem.FileSystem, path: string): Effect.Effect<Kept | undefined, PlatformError> =>
  Effect.map(last(logOf(files, path)), ({ lease }) => lease)

/** Takes or renews the lease for this many milliseconds. Returns another worker's lease instead if that is live. */
export const acquire = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  workerId: string,
  millis: number,
  clock: FileClock
): Effect.fn.Return<Kept | undefined, PlatformError | StoreError> {
  const log = logOf(files, path)
  for (;;) {
    const now = yield* clock
    const { lease: held, n } = yield* last(log)
    if (held !== undefined && held.workerId !== workerId && held.expiresAt > now) return held
    const lease =
      millis === 0
        ? { workerId, expiresAt: 0 }
        : { workerId, expiresAt: now + millis, since: sinceOf(held, workerId, now) }
    if (yield* put(log, { n: n + 1, lease })) return undefined
  }
})

/** Returns the start of a lease, which a renewal keeps. */
const sinceOf = (held: Kept | undefined, workerId: string, now: number): number =>
  (held?.workerId === workerId && held.expiresAt > now ? held.since : undefined) ?? now

/** Releases a lease. */
export const release = Effect.fnUntraced(function* (
  files: FileSystem.FileSystem,
  path: string,
  workerId: string
): Effect.fn.Return<void, PlatformError | StoreError> {
  const log = logOf(files, path)
  for (;;) {
    const { lease: held, n } = yield* last(log)
    if (held?.workerId !== workerId) return
    if (yield* put(log, { n: n + 1, lease: null })) return
  }
})

const Line = Schema.fromJsonString(
  Schema.Struct({
    n: Schema.Natural,
    lease: Schema.NullOr(
      Schema.Struct({ workerId: Schema.String, expiresAt: Schema.Finite, since: Schema.optionalKey(Schema.Finite) })
    )
  })
)

const decode = Schema.decodeUnknownResult(Line)

/** Appends a line. Returns false if another process was faster. Fails for a log that a newer version wrote. */
const put = Effect.fnUntraced(function* (log: Log.Log, line: typeof Line.Type) {
  const appended = yield* log.append({ first: line.n, last: line.n, text: JSON.stringify(line) })
  if (appended._tag !== "Newer") return appended._tag === "Appended"
  const detail = `its lease is of the format ${appended.format}, which a newer version wrote`
  return yield* new StoreError({ operation: "hold the run", reason: "format", detail })
})

const logOf = (files: FileSystem.FileSystem, path: string): Log.Log =>
  Log.make(files, `${path}.lease`, { field: "n", format: 0, refusesDamage: false, isQuick: true })

/** Returns the number of the last line and its lease. A line without a lease means that the run is free. */
const last = (log: Log.Log) =>
  Effect.map(Log.newest(log), ({ number, text }) => {
    const { lease } = text === undefined ? { lease: null } : Result.getOrElse(decode(text), () => ({ lease: null }))
    return { n: number, lease: lease ?? undefined }
  })
