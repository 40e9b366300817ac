/**
 * A store of media: its types, its buckets, and its reader of files.
 *
 * A media store consists of buckets: one for the application, and one for each root run. A bucket only finds and adds
 * media. Ids, limits, references and files are handled here for all kinds of buckets.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as FileSystem from "effect/FileSystem"
import * as Option from "effect/Option"
import * as Path from "effect/Path"
import * as RcMap from "effect/RcMap"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Content from "../Content.ts"
import { LimitExceeded, MediaConflict, MediaNotFound, MediaUnreadable, StoreError } from "../KernelError.ts"
import * as Limits from "../Limits.ts"
import * as Media from "../Media.ts"
import { isHiccup } from "../internal/errors/failedCall.ts"
import * as Read from "../kit/files.ts"
import * as Storable from "../kit/storable.ts"

/**
 * A medium that has its id.
 *
 * @category models
 * @since 0.1.0
 */
export interface StoredMedia extends Media.Media {
  readonly id: string
}

/**
 * The operations of a media store.
 *
 * @category models
 * @since 0.1.0
 */
export interface MediaStoreShape {
  /**
   * Stores a medium under its id, or under a new one if it has none. Storing the same medium again changes nothing;
   * another medium of the same id fails with `MediaConflict`.
   */
  readonly put: (media: Media.Media) => Effect.Effect<StoredMedia, MediaConflict | LimitExceeded | StoreError>
  /** Returns the medium with an id, if the store has it. */
  readonly get: (id: string) => Effect.Effect<Option.Option<StoredMedia>, StoreError>
  /** Returns the bytes of a medium. A file is read now; a URL is never fetched and fails with `MediaUnreadable`. */
  readonly bytes: (id: string) => Effect.Effect<Uint8Array, MediaNotFound | MediaUnreadable | StoreError>
  /** Returns the content that names a stored medium by `fileId`. */
  readonly content: (id: string) => Effect.Effect<Content.MediaContent, MediaNotFound | StoreError>
  /** Stores the media and inline bytes among `parts`, at any depth, and returns the parts with references instead. */
  readonly admit: (
    parts: ReadonlyArray<string | Media.Media | Content.Content>
  ) => Effect.Effect<ReadonlyArray<Content.Content>, MediaConflict | LimitExceeded | StoreError>
  /** Returns the media put into this store, oldest first. */
  readonly list: Effect.Effect<ReadonlyArray<StoredMedia>, StoreError>
  /** Returns how many media were put into this store. */
  readonly size: Effect.Effect<number, StoreError>
  /**
   * Opens the store of a root run, shared by all runs of its tree. A store in memory is emptied when the last scope
   * that opened it closes. It also finds the media of `origins`, the root runs that the run was forked from.
   */
  readonly run: (
    rootRunId: string,
    origins?: ReadonlyArray<string>
  ) => Effect.Effect<MediaStoreShape, never, Scope.Scope>
  /** Deletes the media of root runs that will not continue. Ignores unknown ids. */
  readonly release: (rootRunIds: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
  /**
   * Keeps the media of a root run that waits for a worker, until `release`. Only a store that drops media with their
   * last scope has it.
   */
  readonly keep?: ((rootRunId: string) => Effect.Effect<void, LimitExceeded>) | undefined
}

/**
 * Media by id.
 *
 * @category models
 * @since 0.1.0
 */
export interface Bucket {
  readonly find: (id: string) => Effect.Effect<StoredMedia | undefined, StoreError>
  /**
   * Adds a medium if its id is free, and returns the medium stored under the id. Concurrent callers get the same one.
   * Fails if the bucket would exceed `limit` bytes.
   */
  readonly add: (media: StoredMedia, limit: number) => Effect.Effect<StoredMedia, LimitExceeded | StoreError>
  /** All media, oldest first. */
  readonly list: Effect.Effect<ReadonlyArray<StoredMedia>, StoreError>
  readonly size: Effect.Effect<number, StoreError>
}

/**
 * All buckets of a store.
 *
 * @category models
 * @since 0.1.0
 */
export interface Buckets {
  readonly application: Bucket
  /** Opens the bucket of a root run. It is shared until the last scope that opened it closes. */
  readonly run: (rootRunId: string) => Effect.Effect<Bucket, never, Scope.Scope>
  readonly release: (rootRunIds: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
  /** See `MediaStoreShape.keep`. */
  readonly keep?: MediaStoreShape["keep"]
}

/**
 * Creates a store on buckets, which reads files inside `root`.
 *
 * @category constructors
 * @since 0.1.0
 */
export const store = Effect.fnUntraced(function* (
  buckets: Buckets,
  root: string
): Effect.fn.Return<MediaStoreShape, never, Scope.Scope> {
  const readFile = yield* fileReader(root)
  const run: MediaStoreShape["run"] = (rootRunId, origins = []) =>
    Effect.map(Effect.forEach([rootRunId, ...origins], buckets.run), ([own = buckets.application, ...others]) =>
      make(own, [...others, buckets.application])
    )
  const make = (own: Bucket, others: ReadonlyArray<Bucket>) => shape({ own, others, readFile }, run, buckets)
  return make(buckets.application, [])
})

/**
 * Creates buckets in memory. The bucket of a run is dropped when its last scope closes, unless it is kept.
 *
 * @category constructors
 * @since 0.1.0
 */
export const memory = (): Buckets => {
  const held = new Map<string, InMemory & { holders: number }>()
  const kept = new Set<string>()
  const hold = (runId: string) => {
    let there = held.get(runId)
    if (there === undefined) held.set(runId, (there = { ...inMemory(), holders: 0 }))
    there.holders++
    return there
  }
  const dropUnheld = (runId: string): void => {
    const there = held.get(runId)
    if (there === undefined || there.holders > 0 || kept.has(runId)) return
    held.delete(runId)
    there.clear()
  }
  return {
    application: inMemory().bucket,
    run: (runId) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => hold(runId)),
          (there) =>
            Effect.sync(() => {
              there.holders--
              dropUnheld(runId)
            })
        ),
        ({ bucket }) => bucket
      ),
    release: (runIds) =>
      Effect.sync(() => {
        for (const runId of runIds) if (kept.delete(runId)) dropUnheld(runId)
      }),
    keep: (runId) =>
      Effect.suspend(() => {
        if (kept.size >= mostKept)
          return Effect.fail(new LimitExceeded({ limit: "runs that wait with media", value: mostKept }))
        kept.add(runId)
        return Effect.void
      })
  }
}

/** Runs that may wait for a worker with media in this process. */
const mostKept = 1_000

/**
 * Shares the bucket of a run between concurrent scopes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const shared = (
  open: (runId: string) => Effect.Effect<Bucket, never, Scope.Scope>
): Effect.Effect<Buckets["run"], never, Scope.Scope> =>
  Effect.map(RcMap.make({ lookup: open }), (runs) => (runId) => RcMap.get(runs, runId))

/**
 * Caches a slower bucket, which is then read once for each medium.
 *
 * @category constructors
 * @since 0.1.0
 */
export const remembering = (bucket: Bucket): Bucket => {
  const known = new Map<string, StoredMedia>()
  const keep = (media: StoredMedia | undefined) => {
    if (media !== undefined) known.set(media.id, media)
    return media
  }
  return {
    ...bucket,
    find: (id) =>
      Effect.suspend(() => {
        const media = known.get(id)
        return media === undefined ? Effect.map(bucket.find(id), keep) : Effect.succeed(media)
      }),
    add: (media, limit) => Effect.tap(bucket.add(media, limit), (there) => Effect.sync(() => keep(there)))
  }
}

/**
 * Returns the bytes that a medium counts for.
 *
 * @category getters
 * @since 0.1.0
 */
export const sizeOf = ({ source }: Media.Media): number => {
  switch (source._tag) {
    case "Bytes":
      return source.bytes.byteLength
    case "Path":
      return source.path.length
    case "Url":
      return source.url.length
  }
}

/**
 * Returns the error for a full bucket.
 *
 * @category constructors
 * @since 0.1.0
 */
export const full = (limit: number): LimitExceeded => new LimitExceeded({ limit: "mediaBytes", value: limit })

// ---------------------------------------------------------------- helpers

interface InMemory {
  readonly bucket: Bucket
  readonly clear: () => void
}

const inMemory = (): InMemory => {
  const media = new Map<string, StoredMedia>()
  let bytes = 0
  const bucket: Bucket = {
    find: (id) => Effect.sync(() => media.get(id)),
    add: (added, limit) =>
      Effect.suspend(() => {
        const there = media.get(added.id)
        if (there !== undefined) return Effect.succeed(there)
        const size = sizeOf(added)
        if (bytes + size > limit) return Effect.fail(full(limit))
        bytes += size
        media.set(added.id, added)
        return Effect.succeed(added)
      }),
    list: Effect.sync(() => Array.from(media.values())),
    size: Effect.sync(() => media.size)
  }
  const clear = () => {
    media.clear()
    bytes = 0
  }
  return { bucket, clear }
}

/** The bucket to put media in, the other buckets to look them up in, and the reader of files. */
interface Place {
  readonly own: Bucket
  readonly others: ReadonlyArray<Bucket>
  readonly readFile: ReadFile
}

// Each run has its own store, so the methods are defined once instead of in a closure per run.

const find = Effect.fnUntraced(function* ({ others, own }: Place, id: string) {
  for (const bucket of [own, ...others]) {
    const media = yield* bucket.find(id)
    if (media !== undefined) return media
  }
})

const need = (place: Place, id: string): Effect.Effect<StoredMedia, MediaNotFound | StoreError> =>
  Effect.flatMap(find(place, id), (media) =>
    media === undefined ? Effect.fail(new MediaNotFound({ id: id.slice(0, 256) })) : Effect.succeed(media)
  )

const add = (place: Place, media: StoredMedia, limit: number) =>
  Effect.flatMap(find(place, media.id), (there) =>
    there === undefined ? place.own.add(media, limit) : Effect.succeed(there)
  )

const put = Effect.fnUntraced(function* (place: Place, given: Media.Media) {
  const limits = yield* Limits.Limits
  if (!isKind(given.kind) || typeof given.mimeType !== "string") {
    return yield* new StoreError({
      operation: "put media",
      reason: "invalid",
      detail: "the kind of the medium is unknown"
    })
  }
  const media = yield* recognized(place, given)
  if (Storable.grade(media.metadata) === 0) {
    return yield* new StoreError({ operation: "put media", reason: "invalid", detail: "the metadata is not JSON" })
  }
  const id = yield* Media.id(media)
  const added = Object.freeze({ ...media, id })
  // Retried, because putting the same medium twice is harmless.
  const there = yield* again(add(place, added, limits.mediaBytes), 2)
  return isSame(there, media) ? there : yield* new MediaConflict({ id })
})

const isKind = Schema.is(Media.Kind)

/**
 * Detects the type of a file by its content, because its name may have none or a wrong one. An unreadable file keeps
 * the type of its name.
 */
const recognized = (place: Place, media: Media.Media): Effect.Effect<Media.Media> =>
  media.source._tag === "Path"
    ? Effect.match(place.readFile(media.source.path), {
        onFailure: () => media,
        onSuccess: (bytes) => Media.recognized(media, bytes)
      })
    : Effect.succeed(media)

const bytes = Effect.fnUntraced(function* (place: Place, id: string) {
  const { source } = yield* need(place, id)
  switch (source._tag) {
    case "Bytes":
      return source.bytes
    case "Path":
      return yield* Effect.mapError(place.readFile(source.path), (reason) => new MediaUnreadable({ id, reason }))
    case "Url":
      return yield* new MediaUnreadable({ id, reason: "URLs are not fetched" })
  }
})

const admit = (
  place: Place,
  part: string | Media.Media | Content.Content
): Effect.Effect<Content.Content, PutError> => {
  if (typeof part === "string") return Effect.succeed(Content.text(part))
  if (!Content.isContent(part)) return Effect.map(put(place, part), Content.reference)
  if (part.type === "tool_result") {
    const content = Effect.forEach(part.content, (inner) => admit(place, inner))
    return Effect.map(content, (content) => Content.withContent(part, content))
  }
  if (!Content.isMedia(part)) return Effect.succeed(part)
  const { data } = part
  return data === undefined
    ? Effect.succeed(part)
    : Effect.map(
        put(place, Media.fromBytes(data, part.mediaType ?? "application/octet-stream", { kind: part.type })),
        (media) =>
          Content.withReference(part.mediaType === undefined ? part : { ...part, mediaType: media.mimeType }, media.id)
      )
}

/** Creates a store that puts media in one bucket and looks them up in all. */
const shape = (
  place: Place,
  run: MediaStoreShape["run"],
  { keep, release }: Pick<Buckets, "keep" | "release">
): MediaStoreShape => ({
  put: (media) => put(place, media),
  get: (id) => Effect.map(find(place, id), Option.fromUndefinedOr),
  bytes: (id) => bytes(place, id),
  content: (id) => Effect.map(need(place, id), Content.reference),
  admit: (parts) => Effect.forEach(parts, (part) => admit(place, part)),
  list: place.own.list,
  size: place.own.size,
  run,
  release,
  keep
})

/** Retries up to `times` times, 100 ms apart. A `Schedule` would add half a KiB to every bundle. */
const again = <A, R>(
  effect: Effect.Effect<A, LimitExceeded | StoreError, R>,
  times: number
): Effect.Effect<A, LimitExceeded | StoreError, R> =>
  Effect.catchIf(
    effect,
    (error) => times > 0 && isHiccup(error),
    () => Effect.andThen(Effect.sleep(100), again(effect, times - 1))
  )

type PutError = Effect.Error<ReturnType<typeof put>>

const isSame = (self: Media.Media, that: Media.Media): boolean =>
  self.kind === that.kind && self.mimeType === that.mimeType && Equal.equals(self.source, that.source)

// ---------------------------------------------------------------- files

/**
 * Reads the bytes at a path. Fails with the reason.
 *
 * @category models
 * @since 0.1.0
 */
export type ReadFile = (path: string) => Effect.Effect<Uint8Array, string>

/**
 * Returns the reader of media files inside `root`. Without a file system, every read fails.
 *
 * A path is checked as text first. Then the file is opened, and its descriptor must belong to a plain file inside the
 * media folder before any of it is read.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fileReader: (root: string) => Effect.Effect<ReadFile> = Effect.fnUntraced(function* (root) {
  const fs = yield* Effect.serviceOption(FileSystem.FileSystem)
  const path = yield* Effect.serviceOption(Path.Path)
  return Option.isSome(fs) && Option.isSome(path)
    ? reader(root, fs.value, path.value)
    : () => Effect.fail("no file system is available")
})

const reader = (root: string, fs: FileSystem.FileSystem, path: Path.Path): ReadFile =>
  Effect.fnUntraced(function* (file) {
    const { fetchedBytes } = yield* Limits.Limits
    if (!isPlain(file, path.sep)) return yield* Effect.fail("its path is not allowed")
    const read = Effect.flatMap(fs.realPath(root), (folder) =>
      Read.bytes(fs, path.resolve(folder, file), fetchedBytes, folder)
    )
    return yield* Effect.mapError(read, (refusal) => {
      if (typeof refusal !== "string") return Read.isAbsent(refusal) ? "there is no such file" : "it cannot be read"
      return refusal === Read.outside ? "it is outside the media folder" : `it is ${refusal}`
    })
  })

// Percent-encoded separators and dots are refused, not decoded.
const isPlain = (path: string, separator: string): boolean =>
  path.length > 0 &&
  path.length <= 4096 &&
  !/[\p{Cc}%]|:\/\//u.test(path) &&
  (separator === "\\" || !path.includes("\\")) &&
  !path.split(/[/\\]/).includes("..")
