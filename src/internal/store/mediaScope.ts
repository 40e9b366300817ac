/**
 * What a media store is made of: a shelf for the application, and one for each root run.
 *
 * A shelf only finds and adds; ids, limits, references and files are the same
 * for all kinds of shelves and are seen to here.
 */

import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"
import * as RcMap from "effect/RcMap"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Content from "../../Content.ts"
import { LimitExceeded, MediaConflict, MediaNotFound, MediaUnreadable, StoreError } from "../../KernelError.ts"
import * as Limits from "../../Limits.ts"
import * as Media from "../../Media.ts"
import type { MediaStoreShape, StoredMedia } from "./mediaStoreTypes.ts"
import * as MediaFile from "../words/mediaFile.ts"
import { isHiccup } from "../base/transient.ts"
import * as Storable from "../base/storable.ts"

/** Media by id. */
export interface Shelf {
  readonly find: (id: string) => Effect.Effect<StoredMedia | undefined, StoreError>
  /**
   * Adds a medium, if its id is free, and gives what stands under it then: two who add one id at once get the same.
   * Fails when the shelf would hold more than `limit` bytes.
   */
  readonly add: (media: StoredMedia, limit: number) => Effect.Effect<StoredMedia, LimitExceeded | StoreError>
  /** All of them, oldest first. */
  readonly list: Effect.Effect<ReadonlyArray<StoredMedia>, StoreError>
  readonly size: Effect.Effect<number, StoreError>
}

/** All shelves of a store. */
export interface Shelves {
  readonly application: Shelf
  /** The shelf of a root run, one for all who hold it, until the last of their scopes closes. */
  readonly run: (rootRunId: string) => Effect.Effect<Shelf, never, Scope.Scope>
  readonly release: (rootRunIds: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
}

/** A store on these shelves, which reads the files of paths inside `root`. */
export const store = Effect.fnUntraced(function* (
  shelves: Shelves,
  root: string
): Effect.fn.Return<MediaStoreShape, never, Scope.Scope> {
  const readFile = yield* MediaFile.make(root)
  const run: MediaStoreShape["run"] = (rootRunId, origins = []) =>
    Effect.map(Effect.forEach([rootRunId, ...origins], shelves.run), ([own = shelves.application, ...others]) =>
      make(own, [...others, shelves.application])
    )
  const make = (own: Shelf, others: ReadonlyArray<Shelf>) => shape({ own, others, readFile }, run, shelves.release)
  return make(shelves.application, [])
})

/** Shelves in this process; that of a run is gone when nobody holds it any more. */
export const memory = (): Shelves => {
  const held = new Map<string, InMemory & { holders: number }>()
  const hold = (runId: string) => {
    let there = held.get(runId)
    if (there === undefined) held.set(runId, (there = { ...inMemory(), holders: 0 }))
    there.holders++
    return there
  }
  return {
    application: inMemory().shelf,
    run: (runId) =>
      Effect.map(
        Effect.acquireRelease(
          Effect.sync(() => hold(runId)),
          (there) =>
            Effect.sync(() => {
              if (--there.holders > 0) return
              held.delete(runId)
              there.clear()
            })
        ),
        ({ shelf }) => shelf
      ),
    release: () => Effect.void
  }
}

/** Lets all who hold the shelf of a run at one time hold the same one. */
export const shared = (
  open: (runId: string) => Effect.Effect<Shelf, never, Scope.Scope>
): Effect.Effect<Shelves["run"], never, Scope.Scope> =>
  Effect.map(RcMap.make({ lookup: open }), (runs) => (runId) => RcMap.get(runs, runId))

/** A shelf that looks on a slower one once for each medium: for as long as one run is held. */
export const remembering = (shelf: Shelf): Shelf => {
  const known = new Map<string, StoredMedia>()
  const keep = (media: StoredMedia | undefined) => {
    if (media !== undefined) known.set(media.id, media)
    return media
  }
  return {
    ...shelf,
    find: (id) =>
      Effect.suspend(() => {
        const media = known.get(id)
        return media === undefined ? Effect.map(shelf.find(id), keep) : Effect.succeed(media)
      }),
    add: (media, limit) => Effect.tap(shelf.add(media, limit), (there) => Effect.sync(() => keep(there)))
  }
}

/** How many bytes a medium counts for. */
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

/** There is no room for one more. */
export const full = (limit: number): LimitExceeded => new LimitExceeded({ limit: "mediaBytes", value: limit })

// ---------------------------------------------------------------- helpers

interface InMemory {
  readonly shelf: Shelf
  readonly clear: () => void
}

const inMemory = (): InMemory => {
  const media = new Map<string, StoredMedia>()
  let bytes = 0
  const shelf: Shelf = {
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
  return { shelf, clear }
}

/** Where a store puts, where it looks, and what it reads files with. */
interface Place {
  readonly own: Shelf
  readonly others: ReadonlyArray<Shelf>
  readonly readFile: MediaFile.ReadFile
}

// A run has a store of its own: what it does is written once, and not made again for each.

const find = Effect.fnUntraced(function* ({ others, own }: Place, id: string) {
  for (const shelf of [own, ...others]) {
    const media = yield* shelf.find(id)
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
    return yield* new StoreError({ operation: "put media", reason: "invalid", detail: "the medium has no known kind" })
  }
  const media = yield* recognized(place, given)
  if (Storable.grade(media.metadata) === 0) {
    return yield* new StoreError({ operation: "put media", reason: "invalid", detail: "the metadata is no JSON" })
  }
  const id = yield* Media.id(media)
  const added = Object.freeze({ ...media, id })
  // What a run made is not given up for one hiccup of a store: the same medium once more is no second one.
  const there = yield* again(add(place, added, limits.mediaBytes), 2)
  return isSame(there, media) ? there : yield* new MediaConflict({ id })
})

const isKind = Schema.is(Media.Kind)

/** The name of a file may say nothing about its type, or lie. A file that cannot be read yet keeps the type of its name. */
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

/** A store that puts on one shelf and looks on all of them. */
const shape = (place: Place, run: MediaStoreShape["run"], release: MediaStoreShape["release"]): MediaStoreShape => ({
  put: (media) => put(place, media),
  get: (id) => Effect.map(find(place, id), Option.fromUndefinedOr),
  bytes: (id) => bytes(place, id),
  content: (id) => Effect.map(need(place, id), Content.reference),
  admit: (parts) => Effect.forEach(parts, (part) => admit(place, part)),
  list: place.own.list,
  size: place.own.size,
  run,
  release
})

/** Tries again so many times, 100 ms apart. A schedule would be half a KiB more for whoever bundles a kernel. */
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
