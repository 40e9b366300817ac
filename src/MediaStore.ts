/**
 * Media by id: what a run was given or made, kept until its root run ends (BP-119, CP-11).
 *
 * Messages and journals name media by `fileId`; the bytes are here, once. The
 * store of a root run is shared by its whole tree, bounded, and released at the
 * run's end; it sees the application's own media, and keeps its own from others.
 * A path is read when its bytes are asked for; a URL is never fetched.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as RcMap from "effect/RcMap"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaIssue from "effect/SchemaIssue"
import type * as Scope from "effect/Scope"
import * as Content from "./Content.ts"
import * as MediaFile from "./internal/mediaFile.ts"
import { LimitExceeded, MediaConflict, MediaNotFound, MediaUnreadable } from "./KernelError.ts"
import * as Limits from "./Limits.ts"
import * as Media from "./Media.ts"

export {
  /**
   * @category errors
   * @since 0.1.0
   */
  MediaConflict,
  /**
   * @category errors
   * @since 0.1.0
   */
  MediaNotFound,
  /**
   * @category errors
   * @since 0.1.0
   */
  MediaUnreadable
}

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
 * What a media store does.
 *
 * @category models
 * @since 0.1.0
 */
export interface Shape {
  /** Stores a medium under its id (BP-116). The same medium again is no change; another one of that id fails (S-20). */
  readonly put: (media: Media.Media) => Effect.Effect<StoredMedia, MediaConflict | LimitExceeded>
  /** The medium of an id, if the store has it. */
  readonly get: (id: string) => Effect.Effect<Option.Option<StoredMedia>>
  /** The bytes of a medium. A path is read now; a URL is never fetched (CP-11). */
  readonly bytes: (id: string) => Effect.Effect<Uint8Array, MediaNotFound | MediaUnreadable>
  /** The content that names a stored medium by `fileId`. */
  readonly content: (id: string) => Effect.Effect<Content.MediaContent, MediaNotFound>
  /** Stores the media and inline bytes among `parts`, at any depth; gives the parts with references instead. */
  readonly admit: (
    parts: ReadonlyArray<string | Media.Media | Content.Content>
  ) => Effect.Effect<ReadonlyArray<Content.Content>, MediaConflict | LimitExceeded>
  /** Everything put into this store, oldest first. */
  readonly list: Effect.Effect<ReadonlyArray<StoredMedia>>
  /** How many media were put into this store. */
  readonly size: Effect.Effect<number>
  /** The store of a root run: one for all who hold it, emptied when the last of their scopes closes. */
  readonly run: (rootRunId: string) => Effect.Effect<Shape, never, Scope.Scope>
}

/**
 * Keeps media for the application, and for each root run.
 *
 * A run provides its own store to the skills it runs, so a skill just asks for `MediaStore`.
 *
 * @category services
 * @since 0.1.0
 */
export class MediaStore extends Context.Service<MediaStore, Shape>()("kernai/MediaStore") {}

/**
 * A stored medium by its id: what a skill input asks for when it takes a medium (W-21).
 *
 * @example
 * const ocr = Skill.make("ocr", {
 *   description: "Reads the text in a picture",
 *   input: Schema.Struct({ image: MediaStore.Reference }),
 *   execute: ({ image }) => MediaStore.MediaStore.use((store) => store.bytes(image.id))
 * })
 *
 * @category schemas
 * @since 0.1.0
 */
export const Reference: Schema.Codec<StoredMedia, string, MediaStore> = /*#__PURE__*/ (() =>
  Schema.String.annotate({ description: "The id of a medium in this conversation, such as media_0123456789ab" }).pipe(
    Schema.decodeTo(Schema.declare(isStored, { expected: "a stored medium" }), {
      decode: SchemaGetter.transformEffect((id: string) =>
        Effect.flatMap(
          MediaStore.use((store) => store.get(id)),
          Option.match({
            onNone: () =>
              Effect.fail(new SchemaIssue.InvalidValue({ message: `no media with id '${id.slice(0, 64)}'` })),
            onSome: Effect.succeed
          })
        )
      ),
      encode: SchemaGetter.transform((media: StoredMedia) => media.id)
    })
  ))()

/**
 * Keeps media in this process.
 *
 * Files are read when the layer is built where a `FileSystem` and a `Path` are provided, and only inside `root` (S-4).
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemoryWith = (options: { readonly root: string }): Layer.Layer<MediaStore> =>
  Layer.effect(
    MediaStore,
    Effect.gen(function* () {
      const readFile = yield* MediaFile.make(options.root)
      const application = emptyShelf()
      const runs = yield* RcMap.make({
        lookup: (_rootRunId: string) => Effect.acquireRelease(Effect.sync(emptyShelf), empty)
      })
      const run: Shape["run"] = (rootRunId) =>
        Effect.map(RcMap.get(runs, rootRunId), (own) => make([own, application], readFile, run))
      return make([application], readFile, run)
    })
  )

/**
 * Keeps media in this process, and reads files inside the current folder.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerMemory: Layer.Layer<MediaStore> = /*#__PURE__*/ layerMemoryWith({ root: "." })

interface Shelf {
  readonly media: Map<string, StoredMedia>
  bytes: number
}

const emptyShelf = (): Shelf => ({ media: new Map(), bytes: 0 })

const empty = (shelf: Shelf): Effect.Effect<void> =>
  Effect.sync(() => {
    shelf.media.clear()
    shelf.bytes = 0
  })

/** A store that puts on the first shelf and looks on all of them. */
const make = (
  shelves: readonly [Shelf, ...ReadonlyArray<Shelf>],
  readFile: MediaFile.ReadFile,
  run: Shape["run"]
): Shape => {
  const [own] = shelves
  const find = (id: string): StoredMedia | undefined => {
    for (const shelf of shelves) {
      const media = shelf.media.get(id)
      if (media !== undefined) return media
    }
  }
  const need = (id: string): Effect.Effect<StoredMedia, MediaNotFound> =>
    Effect.suspend(() => {
      const media = find(id)
      return media === undefined ? Effect.fail(new MediaNotFound({ id: id.slice(0, 256) })) : Effect.succeed(media)
    })

  const put = Effect.fnUntraced(function* (media: Media.Media) {
    const limits = yield* Limits.Limits
    const id = yield* Media.id(media)
    // From here to the end nothing yields, so two puts of one id cannot both find the place free.
    const known = find(id)
    if (known !== undefined) return isSame(known, media) ? known : yield* new MediaConflict({ id })
    const bytes = own.bytes + sizeOf(media)
    if (bytes > limits.mediaBytes) {
      return yield* new LimitExceeded({ limit: "mediaBytes", value: limits.mediaBytes })
    }
    const stored: StoredMedia = Object.freeze({ ...media, id })
    own.media.set(id, stored)
    own.bytes = bytes
    return stored
  })

  const bytes = Effect.fnUntraced(function* (id: string) {
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
    get: (id) => Effect.sync(() => Option.fromUndefinedOr(find(id))),
    bytes,
    content: (id) => Effect.map(need(id), Content.reference),
    admit: (parts) => Effect.forEach(parts, admit),
    list: Effect.sync(() => Array.from(own.media.values())),
    size: Effect.sync(() => own.media.size),
    run
  }
}

type PutError = MediaConflict | LimitExceeded

const sizeOf = ({ source }: Media.Media): number => {
  switch (source._tag) {
    case "Bytes":
      return source.bytes.byteLength
    case "Path":
      return source.path.length
    case "Url":
      return source.url.length
  }
}

const isSame = (self: Media.Media, that: Media.Media): boolean =>
  self.kind === that.kind && self.mimeType === that.mimeType && Equal.equals(self.source, that.source)

// A declaration, not a constant: the schema above is made before the constants down here are.
function isStored(value: unknown): value is StoredMedia {
  return Media.isMedia(value) && value.id !== undefined
}
