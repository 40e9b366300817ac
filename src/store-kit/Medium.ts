/**
 * Converts media in messages: to content of their kind, and to another source.
 * Also encodes media for durable stores, which keep the description as JSON text and the bytes separately.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Schema from "effect/Schema"
import * as Content from "../Content.ts"
import type { MediaContent, OneSource } from "../Content.ts"
import { StoreError } from "../KernelError.ts"
import * as Media from "../Media.ts"
import type { Kind } from "../Media.ts"
import type { StoredMedia } from "../MediaStore.ts"
import type { Message } from "../Message.ts"
import type { MediaRef } from "../RunEvent.ts"
import { freeze } from "../kit/snapshot.ts"
import * as Storable from "../kit/storable.ts"

/**
 * Returns the content for a medium of a kind.
 *
 * @category constructors
 * @since 0.1.0
 */
export const mediumOf = (kind: Kind, source: OneSource): MediaContent => {
  switch (kind) {
    case "image":
      return Content.image(source)
    case "audio":
      return Content.audio(source)
    case "video":
      return Content.video(source)
    case "document":
      return Content.document(source)
  }
}

/**
 * Returns references to the media among contents, for events and logs. `bytesTypes` are the types of those media, by
 * id, whose bytes contradict their own type.
 *
 * @category getters
 * @since 0.1.0
 */
export const references = (
  contents: ReadonlyArray<Content.Content>,
  bytesTypes?: ReadonlyMap<string, string>
): ReadonlyArray<MediaRef> =>
  contents.filter(Content.isMedia).map(({ fileId, mediaType, type }) => {
    const bytesType = fileId === undefined ? undefined : bytesTypes?.get(fileId)
    return {
      type,
      ...(fileId === undefined ? {} : { fileId }),
      ...(mediaType === undefined ? {} : { mediaType }),
      ...(bytesType === undefined ? {} : { bytesType })
    }
  })

/**
 * A source of a medium that does not depend on a run.
 *
 * @category models
 * @since 0.1.0
 */
export type Lasting = { readonly data: Uint8Array } | { readonly url: string }

/**
 * Replaces the source of a medium.
 *
 * @category combinators
 * @since 0.1.0
 */
export const withSource: {
  (source: Lasting): (medium: MediaContent) => MediaContent
  (medium: MediaContent, source: Lasting): MediaContent
} = /* @__PURE__ */ dual(
  2,
  ({ data: _data, fileId: _fileId, url: _url, ...named }: MediaContent, source: Lasting): MediaContent =>
    Content[named.type]({ ...named, ...source })
)

/**
 * Replaces the media of a message, including those in results. An unchanged message stays the same object, which a
 * provider may have encoded already.
 *
 * @category combinators
 * @since 0.1.0
 */
export const withMedia: {
  (change: (part: MediaContent) => Effect.Effect<Content.Content>): (message: Message) => Effect.Effect<Message>
  (message: Message, change: (part: MediaContent) => Effect.Effect<Content.Content>): Effect.Effect<Message>
} = /* @__PURE__ */ dual(
  2,
  (message: Message, change: (part: MediaContent) => Effect.Effect<Content.Content>): Effect.Effect<Message> =>
    Effect.map(changed(message.content, change), (content) =>
      content === message.content ? message : freeze({ ...message, content })
    )
)

/**
 * The stored description of a medium.
 *
 * @category models
 * @since 0.1.0
 */
export type Record = typeof Record.Type

/**
 * Encodes a medium as a record. `digest` is the digest of its bytes, if it has any.
 *
 * @category codecs
 * @since 0.1.0
 */
export const encode = (media: StoredMedia, digest: string, place: number): string =>
  Storable.stringify({
    format,
    id: media.id,
    kind: media.kind,
    mime_type: media.mimeType,
    source: sourceOf(media.source, digest),
    metadata: media.metadata,
    place
  })

/**
 * Reads a record. Fails if it is invalid or of a newer version.
 *
 * @category codecs
 * @since 0.1.0
 */
export const decode = (text: string): Effect.Effect<Record, StoreError> =>
  Effect.flatMap(
    Effect.mapError(decodeRecord(text), (error) => corrupt(`a medium cannot be read: ${error.message}`)),
    (record) =>
      record.format <= format
        ? Effect.succeed(record)
        : Effect.fail(
            new StoreError({
              operation: "read media",
              reason: "format",
              detail: `format ${record.format} is newer than ${format}, the newest that this version of kernai reads; update kernai`
            })
          )
  )

/**
 * Returns the medium of a record and its bytes.
 *
 * @category codecs
 * @since 0.1.0
 */
export const mediaOf = ({ id, kind, metadata, mime_type, source }: Record, bytes: Uint8Array): StoredMedia => {
  const options = { kind, mimeType: mime_type, metadata }
  switch (source.type) {
    case "bytes":
      return Object.freeze({ ...Media.fromBytes(bytes, mime_type, options), id })
    case "path":
      return Object.freeze({ ...Media.fromPath(source.path, options), id })
    case "url":
      return Object.freeze({ ...Media.fromUrl(source.url, options), id })
  }
}

/**
 * Returns the bytes that the medium of a record counts for.
 *
 * @category getters
 * @since 0.1.0
 */
export const sizeOf = ({ source }: Record): number => {
  switch (source.type) {
    case "bytes":
      return source.size
    case "path":
      return source.path.length
    case "url":
      return source.url.length
  }
}

/**
 * Returns the error for a damaged stored value.
 *
 * @category constructors
 * @since 0.1.0
 */
export const corrupt = (detail: string): StoreError =>
  new StoreError({ operation: "read media", reason: "corrupt", detail })

const changed = (
  parts: ReadonlyArray<Content.Content>,
  change: (part: MediaContent) => Effect.Effect<Content.Content>
): Effect.Effect<ReadonlyArray<Content.Content>> =>
  Effect.map(
    Effect.forEach(parts, (part): Effect.Effect<Content.Content> => {
      if (part.type !== "tool_result") return Content.isMedia(part) ? change(part) : Effect.succeed(part)
      return Effect.map(changed(part.content, change), (content) =>
        content === part.content ? part : Content.withContent(part, content)
      )
    }),
    (others) => (others.every((other, at) => other === parts[at]) ? parts : others)
  )

/** The newest format that this version reads. */
const format = 1

const Source = Schema.Union([
  Schema.Struct({ type: Schema.Literal("bytes"), digest: Schema.String, size: Schema.Natural }),
  Schema.Struct({ type: Schema.Literal("path"), path: Schema.String }),
  Schema.Struct({ type: Schema.Literal("url"), url: Schema.String })
])

const Record = Schema.Struct({
  format: Schema.Int,
  id: Schema.String,
  kind: Media.Kind,
  mime_type: Schema.String,
  source: Source,
  metadata: Schema.Record(Schema.String, Schema.Json),
  /** The number of media stored before it. */
  place: Schema.Natural
})

const sourceOf = (source: Media.Source, digest: string): typeof Source.Type => {
  switch (source._tag) {
    case "Bytes":
      return { type: "bytes", digest, size: source.bytes.byteLength }
    case "Path":
      return { type: "path", path: source.path }
    case "Url":
      return { type: "url", url: source.url }
  }
}

const decodeRecord = Schema.decodeUnknownEffect(Schema.fromJsonString(Record))
