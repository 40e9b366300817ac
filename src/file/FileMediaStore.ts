/**
 * Keeps media as files, so that a run can continue in another process.
 *
 * A medium is two files: its bytes under their digest, and `<id>.json`, which describes it. Both are written to a
 * temporary name, synced and then moved into place, so a medium exists as a whole or not at all, and an id is used
 * once. The folder may be that of a `FileRunStore`: no run is stored under the name `Media`.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { PlatformError } from "effect/PlatformError"
import * as Semaphore from "effect/Semaphore"
import { createHash, randomUUID } from "node:crypto"
import * as Medium from "../store-kit/Medium.ts"
import * as Buckets from "../store-kit/MediaScope.ts"
import * as Read from "../kit/files.ts"
import type { StoreError } from "../KernelError.ts"
import * as Limits from "../Limits.ts"
import { MediaStore, type StoredMedia } from "../MediaStore.ts"
import { failed, isTag, syncDirectory } from "./internal/disk.ts"
import * as Name from "./internal/fileName.ts"

/**
 * Options of a store.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The only folder from which media given by path are read. Default: the current one. */
  readonly root?: string | undefined
}

/**
 * Creates a store in a directory, which is created if necessary. Only the owner of its files can read them.
 *
 * `Limits.mediaBytes` bounds the media of each root run and those of the application. Processes that add media at the
 * same time may exceed the limit by the media being written.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (directory: string, options: Options = {}) {
  const files = yield* FileSystem.FileSystem
  const top = `${directory}/Media`
  const folderOf = (rootRunId: string) => `${top}/Runs/${Name.make(rootRunId)}`
  yield* Effect.catch(files.makeDirectory(top, { recursive: true, mode: 0o700 }), failed("open media"))
  const buckets: Buckets.Buckets = {
    application: bucket(files, `${top}/Application`),
    run: yield* Buckets.shared((rootRunId) =>
      Effect.sync(() => Buckets.remembering(bucket(files, folderOf(rootRunId))))
    ),
    release: (rootRunIds) =>
      Effect.forEach(rootRunIds, (id) => files.remove(folderOf(id), { recursive: true, force: true }), {
        discard: true
      }).pipe(Effect.catch(failed("release media")))
  }
  return yield* Buckets.store(buckets, options.root ?? ".")
})

/**
 * Keeps media in a directory.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  directory: string,
  options?: Options
): Layer.Layer<MediaStore, StoreError, FileSystem.FileSystem> => Layer.effect(MediaStore, make(directory, options))

// ---------------------------------------------------------------- helpers

/** A folder of media. */
interface Folder {
  readonly files: FileSystem.FileSystem
  readonly folder: string
  /** The number and bytes of media, if known: counted once, then updated. */
  counted: { readonly media: number; readonly bytes: number } | undefined
}

/** Creates a bucket for a folder of media, which is created with the first medium. */
const bucket = (files: FileSystem.FileSystem, folder: string): Buckets.Bucket => {
  const place: Folder = { files, folder, counted: undefined }
  const one = Semaphore.makeUnsafe(1)
  const records = recordsIn(place)
  return {
    find: (id) => Effect.catchTag(find(place, id), "PlatformError", failed("read media")),
    add: (media, limit) =>
      one.withPermits(1)(Effect.catchTag(add(place, media, limit), "PlatformError", failed("keep media"))),
    list: Effect.catchTag(
      Effect.flatMap(records, (records) => Effect.forEach(records, (record) => read(place, record))),
      "PlatformError",
      failed("read media")
    ),
    size: Effect.catchTag(
      Effect.map(records, (records) => records.length),
      "PlatformError",
      failed("read media")
    )
  }
}

/** Reads a file that is really in this folder. Ignores a link in its place. */
const bytesAt = (
  { files, folder }: Folder,
  path: string,
  maxBytes: number
): Effect.Effect<Uint8Array, PlatformError | StoreError> =>
  readable(
    Effect.flatMap(files.realPath(folder), (real) => Read.bytes(files, path, maxBytes, real)),
    path
  )

const recordAt = Effect.fnUntraced(function* (place: Folder, path: string) {
  const { fetchedBytes } = yield* Limits.Limits
  const bytes = yield* Effect.catchIf(
    bytesAt(place, path, fetchedBytes),
    (error) => error._tag === "PlatformError" && isTag("NotFound")(error),
    () => Effect.undefined
  )
  return bytes === undefined ? undefined : yield* Medium.decode(new TextDecoder().decode(bytes))
})

const namesIn = ({ files, folder }: Folder) =>
  Effect.catchIf(files.readDirectory(folder), isTag("NotFound"), () => Effect.succeed([]))

/** Removes partial files of killed processes, after an hour: no write takes that long. */
const sweep = Effect.fnUntraced(function* (place: Folder) {
  const { files, folder } = place
  const now = yield* Clock.currentTimeMillis
  for (const name of (yield* namesIn(place)).filter((name) => name.endsWith(".tmp"))) {
    const { mtime } = yield* files.stat(`${folder}/${name}`)
    if (Option.exists(mtime, (time) => now - time.getTime() > hour)) yield* files.remove(`${folder}/${name}`)
  }
})

const recordsIn = Effect.fnUntraced(function* (place: Folder) {
  const found = yield* Effect.forEach(
    (yield* namesIn(place)).filter((name) => name.endsWith(".json")),
    (name) => recordAt(place, `${place.folder}/${name}`),
    { concurrency: 8 }
  )
  const there = found.filter((record) => record !== undefined)
  return there.sort((a, b) => a.place - b.place || (a.id < b.id ? -1 : 1))
})

const count = (place: Folder) =>
  Effect.map(recordsIn(place), (there) => ({
    media: there.length,
    bytes: there.reduce((sum, record) => sum + Medium.sizeOf(record), 0)
  }))

const read = Effect.fnUntraced(function* (place: Folder, record: Medium.Record) {
  const { source } = record
  if (source.type !== "bytes") return Medium.mediaOf(record, none)
  const path = `${place.folder}/${Name.make(source.digest)}`
  const bytes = yield* bytesAt(place, path, source.size)
  if (digestOf(bytes) !== source.digest)
    return yield* Medium.corrupt(`the bytes of '${record.id}' are not what they were`)
  return Medium.mediaOf(record, bytes)
})

const find = Effect.fnUntraced(function* (place: Folder, id: string) {
  const record = yield* recordAt(place, `${place.folder}/${Name.make(id)}.json`)
  return record === undefined ? undefined : yield* read(place, record)
})

/** Writes a temporary file and moves it into place. Returns false if the name is taken. */
const put = ({ files, folder }: Folder, path: string, bytes: Uint8Array) =>
  Effect.acquireUseRelease(
    Effect.succeed(`${folder}/${randomUUID()}.tmp`),
    (draft) =>
      Effect.gen(function* () {
        const file = yield* files.open(draft, { flag: "wx", mode: 0o600 })
        yield* file.writeAll(bytes)
        yield* file.sync
        return yield* files.link(draft, path).pipe(
          Effect.as(true),
          Effect.catchIf(isTag("AlreadyExists"), () => Effect.succeed(false))
        )
      }).pipe(Effect.scoped),
    (draft) => Effect.ignore(files.remove(draft, { force: true }))
  )

const add = Effect.fnUntraced(function* (place: Folder, media: StoredMedia, limit: number) {
  const { files, folder } = place
  const size = Buckets.sizeOf(media)
  const before = place.counted ?? (yield* Effect.andThen(Effect.ignore(sweep(place)), count(place)))
  place.counted = before
  if (before.bytes + size > limit) return yield* Buckets.full(limit)
  // After an interruption, or if another process was faster, the count is unknown and made again.
  place.counted = undefined
  const bytes = media.source._tag === "Bytes" ? media.source.bytes : none
  const digest = digestOf(bytes)
  yield* files.makeDirectory(folder, { recursive: true, mode: 0o700 })
  if (media.source._tag === "Bytes") yield* put(place, `${folder}/${digest}`, bytes)
  const text = Medium.encode(media, digest, before.media)
  const path = `${folder}/${Name.make(media.id)}.json`
  const isAdded = yield* put(place, path, new TextEncoder().encode(text))
  if (!isAdded) return (yield* find(place, media.id)) ?? media
  yield* syncDirectory(files, path)
  place.counted = { media: before.media + 1, bytes: before.bytes + size }
  return media
})

/** Reads a file. One of another kind or size than the written file was changed from outside, and fails as corrupt. */
const readable = <A>(
  read: Effect.Effect<A, Read.Refusal>,
  path: string
): Effect.Effect<A, PlatformError | StoreError> =>
  Effect.mapError(read, (refusal) =>
    typeof refusal === "string" ? Medium.corrupt(`'${path}' is ${refusal}`) : refusal
  )

const none = new Uint8Array(0)

const hour = 3_600_000

const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")
