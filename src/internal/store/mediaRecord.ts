/**
 * A medium as a durable store writes it: its description as JSON text, and its bytes separately.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { StoreError } from "../../KernelError.ts"
import * as Media from "../../Media.ts"
import type { StoredMedia } from "../../MediaStore.ts"
import * as Storable from "../base/storable.ts"

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
  /** How many media were stored before it. */
  place: Schema.Natural
})

/** A record as it was read. */
export type Record = typeof Record.Type

/** The record of a medium. `digest` is that of its bytes, if it has any. */
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

/** Reads a record. Fails if it is invalid or of a newer version. */
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
              detail: `format ${record.format} is newer than ${format}, the newest this version reads`
            })
          )
  )

/** The medium of a record and its bytes. */
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

/** How many bytes the medium of a record counts as. */
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

/** The error for a stored value that is not what was written. */
export const corrupt = (detail: string): StoreError =>
  new StoreError({ operation: "read media", reason: "corrupt", detail })

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
