/**
 * What a media store is made of: a shelf for the application, and one for each root run.
 *
 * A shelf only finds and adds; ids, limits, references and files are the same
 * for all kinds of shelves and are seen to here.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"
import * as RcMap from "effect/RcMap"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Content from "../Content.ts"
import type { StoreError } from "../KernelError.ts"
import { LimitExceeded, MediaConflict, MediaNotFound, MediaUnreadable } from "../KernelError.ts"
import * as Limits from "../Limits.ts"
import * as Media from "../Media.ts"
import type { Shape, StoredMedia } from "../MediaStore.ts"
import * as MediaFile from "./mediaFile.ts"

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
  /** The shelf of a root run, while its scope is open. */
  readonly run: (rootRunId: string) => Effect.Effect<Shelf, never, Scope.Scope>
  readonly release: (rootRunIds: ReadonlyArray<string>) => Effect.Effect<void, StoreError>
}

/** A store on these shelves, which reads the files of paths inside `root`. */
export const store = Effect.fnUntraced(function* (
  shelves: Shelves,
  root: string
): Effect.fn.Return<Shape, never, Scope.Scope> {
  const readFile = yield* MediaFile.make(root)
  const runs = yield* RcMap.make({ lookup: shelves.run })
  const run: Shape["run"] = (rootRunId, origins = []) =>
    Effect.map(
      Effect.forEach([rootRunId, ...origins], (id) => RcMap.get(runs, id)),
      ([own = shelves.application, ...others]) => make(own, [...others, shelves.application])
    )
  const make = (own: Shelf, others: ReadonlyArray<Shelf>) => shape(own, others, readFile, run, shelves.release)
  return make(shelves.application, [])
})

/** Shelves in this process; that of a run is cleared when its scope closes. */
export const memory = (): Shelves => ({
  application: inMemory().shelf,
  run: () =>
    Effect.map(
      Effect.acquireRelease(Effect.sync(inMemory), ({ clear }) => clear),
      ({ shelf }) => shelf
    ),
  release: () => Effect.void
})

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

const inMemory = (): { readonly shelf: Shelf; readonly clear: Effect.Effect<void> } => {
  const media = new Map<string, StoredMedia>()
  let bytes = 0
  return {
    shelf: {
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
    },
    clear: Effect.sync(() => {
      media.clear()
      bytes = 0
    })
  }
}

/** A store that puts on one shelf and looks on all of them. */
const shape = (
  own: Shelf,
  others: ReadonlyArray<Shelf>,
  readFile: MediaFile.ReadFile,
  run: Shape["run"],
  release: Shape["release"]
): Shape => {
  const find = Effect.fnUntraced(function* (id: string) {
    for (const shelf of [own, ...others]) {
      const media = yield* shelf.find(id)
      if (media !== undefined) return media
    }
  })
  const need = (id: string): Effect.Effect<StoredMedia, MediaNotFound | StoreError> =>
    Effect.flatMap(find(id), (media) =>
      media === undefined ? Effect.fail(new MediaNotFound({ id: id.slice(0, 256) })) : Effect.succeed(media)
    )

  const add = (media: StoredMedia, limit: number) =>
    Effect.flatMap(find(media.id), (there) => (there === undefined ? own.add(media, limit) : Effect.succeed(there)))

  const put: Shape["put"] = Effect.fnUntraced(function* (media) {
    const limits = yield* Limits.Limits
    const id = yield* Media.id(media)
    const added = Object.freeze({ ...media, id })
    // What a run made is not given up for one hiccup of a store: the same medium once more is no second one.
    const there = yield* Effect.retry(add(added, limits.mediaBytes), { while: isPassing, schedule, times: 2 })
    return isSame(there, media) ? there : yield* new MediaConflict({ id })
  })

  const bytes: Shape["bytes"] = Effect.fnUntraced(function* (id) {
    const { source } = yield* need(id)
    switch (source._tag) {
      case "Bytes":
        return source.bytes
      case "Path":
        return yield* Effect.mapError(readFile(source.path), (reason) => new MediaUnreadable({ id, reason }))
      case "Url":
        return yield* new MediaUnreadable({ id, reason: "URLs are not fetched" })
    }
  })

  const admit = (part: string | Media.Media | Content.Content): Effect.Effect<Content.Content, PutError> => {
    if (typeof part === "string") return Effect.succeed(Content.text(part))
    if (!Content.isContent(part)) return Effect.map(put(part), Content.reference)
    if (part.type === "tool_result") {
      return Effect.map(Effect.forEach(part.content, admit), (content) => Content.withContent(part, content))
    }
    if (!Content.isMedia(part)) return Effect.succeed(part)
    const { data } = part
    return data === undefined
      ? Effect.succeed(part)
      : Effect.map(
          put(Media.fromBytes(data, part.mediaType ?? "application/octet-stream", { kind: part.type })),
          (media) => Content.withReference(part, media.id)
        )
  }

  return {
    put,
    get: (id) => Effect.map(find(id), Option.fromUndefinedOr),
    bytes,
    content: (id) => Effect.map(need(id), Content.reference),
    admit: (parts) => Effect.forEach(parts, admit),
    list: own.list,
    size: own.size,
    run,
    release
  }
}

const schedule = Schedule.spaced("100 millis")

const isPassing = (error: LimitExceeded | StoreError): boolean =>
  error._tag === "StoreError" && (error.reason === "unavailable" || error.reason === "timeout")

type PutError = Effect.Error<ReturnType<Shape["put"]>>

const isSame = (self: Media.Media, that: Media.Media): boolean =>
  self.kind === that.kind && self.mimeType === that.mimeType && Equal.equals(self.source, that.source)
