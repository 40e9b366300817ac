/**
 * The value behind the four media contents: its kind, and the source of its bytes.
 *
 * A medium is plain frozen data. Its id is computed from the data, so the same data has the same id everywhere. Nothing
 * here reads a file or opens a connection: stores read paths, and URLs are left to the host.
 *
 * @since 0.1.0
 */

import * as Digest from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Schema from "effect/Schema"
import { imageType, startsWith } from "./kit/imageHeader.ts"
import type { JsonObject } from "./kit/json.ts"
import * as Snapshot from "./kit/snapshot.ts"
import { defineBytes } from "./kit/snapshot.ts"

/**
 * The schema of the kinds of media.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Kind = Schema.Literals(["image", "audio", "video", "document"])

/**
 * The kind of a medium: `image`, `audio`, `video` or `document`.
 *
 * @category models
 * @since 0.1.0
 */
export type Kind = typeof Kind.Type

/**
 * The source of the bytes. Reading `bytes` returns a copy each time.
 *
 * @category models
 * @since 0.1.0
 */
export type Source =
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }
  | { readonly _tag: "Path"; readonly path: string }
  | { readonly _tag: "Url"; readonly url: string }

/**
 * A medium.
 *
 * @category models
 * @since 0.1.0
 */
export interface Media {
  readonly kind: Kind
  readonly mimeType: string
  readonly source: Source
  readonly metadata: JsonObject
  /** Set once the medium is stored. */
  readonly id?: string
}

/**
 * Options of a medium. `kind` is inferred from the MIME type, and the MIME type from the file name.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly kind?: Kind | undefined
  readonly mimeType?: string | undefined
  readonly metadata?: JsonObject | undefined
}

/**
 * Creates a medium from bytes, which are copied. A given kind and MIME type are kept, whatever the
 * bytes look like; the bytes decide only for an empty type and `application/octet-stream`.
 *
 * Throws a `RangeError` for an unknown kind or a MIME type that is not a string.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromBytes = (bytes: Uint8Array, mimeType: string, options?: Omit<Options, "mimeType">): Media => {
  if (!isBytes(bytes)) throw new RangeError("Media.fromBytes: expected a Uint8Array")
  const source = { _tag: "Bytes" as const, bytes }
  defineBytes(source, "bytes", bytes)
  return make(source, typeof mimeType === "string" ? mimeTypeIn(bytes, mimeType) : mimeType, options)
}

/**
 * Creates a medium from a file. The file is read each time its bytes are needed. Its type follows from its name, unless it
 * is given; if the bytes contradict the name when the medium is stored, the type they have is used.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromPath = (path: string, options?: Options): Media =>
  make({ _tag: "Path", path }, options?.mimeType ?? mimeTypeOf(path), options)

/**
 * Creates a medium from a URL, which is never fetched.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromUrl = (url: string, options?: Options): Media =>
  make({ _tag: "Url", url }, options?.mimeType ?? mimeTypeOf(url), options)

/**
 * Returns a medium with the type that its bytes have, if its own was not given, or only follows from the name of a file
 * and is contradicted by the bytes.
 *
 * @category combinators
 * @since 0.1.0
 */
export const recognized: {
  (bytes: Uint8Array): (media: Media) => Media
  (media: Media, bytes: Uint8Array): Media
} = /* @__PURE__ */ dual(2, (media: Media, bytes: Uint8Array): Media => {
  const { source } = media
  const isName = source._tag === "Path" && media.mimeType === mimeTypeOf(source.path)
  const mimeType = isName ? (contradiction(media.mimeType, bytes) ?? media.mimeType) : mimeTypeIn(bytes, media.mimeType)
  if (mimeType === media.mimeType) return media
  const kind = media.kind === kindOf(media.mimeType) ? kindOf(mimeType) : media.kind
  return Object.freeze({ ...media, mimeType, kind })
})

/**
 * Returns the type that some bytes have, if it contradicts the declared one.
 *
 * Only types whose bytes are unmistakable are recognized. A name or a vendor may say more than the bytes do, such as a
 * document inside of an archive, which is no contradiction.
 *
 * @category getters
 * @since 0.1.0
 */
export const contradiction = (declared: string, bytes: Uint8Array): string | undefined => {
  const found = signatures.find(({ matches }) => matches(bytes))
  const name = essenceOf(declared)
  return found === undefined || name === found.type || found.also?.test(name) === true ? undefined : found.type
}

/**
 * Computes the id of a medium: from its bytes, or from the text of its path or URL.
 *
 * Kind, MIME type and the contents of a file do not count, so two media may share an id. A store then rejects the
 * second.
 *
 * @category getters
 * @since 0.1.0
 */
export const id = (media: Media): Effect.Effect<string> =>
  Digest.Digest.use((digest) => digest.digestHex(Digest.sha1, dataOf(media.source))).pipe(
    Effect.map((hex) => `media_${hex.slice(0, 12)}`),
    Effect.provide(Digest.layerWebCrypto)
  )

/**
 * Returns the kind of a MIME type: `document` for anything but image, audio and video.
 *
 * @category getters
 * @since 0.1.0
 */
export const kindOf = (mimeType: string): Kind => {
  const family = mimeType.slice(0, mimeType.indexOf("/") + 1)
  return family === "image/" ? "image" : family === "audio/" ? "audio" : family === "video/" ? "video" : "document"
}

/**
 * Returns the MIME type of a file name or URL by its extension, or `application/octet-stream`.
 *
 * @category getters
 * @since 0.1.0
 */
export const mimeTypeOf = (name: string): string => {
  // Only the query is cut. A fragment stays, because stored ids and types depend on it.
  const [path = ""] = name.split("?", 1)
  // Trailing slashes are not part of the name.
  let end = path.length
  while (path.charAt(end - 1) === "/") end--
  const file = path.slice(path.lastIndexOf("/", end - 1) + 1, end)
  const dot = file.lastIndexOf(".")
  // A name whose only dots are leading ones has no extension.
  const extension = /^\.*$/.test(file.slice(0, Math.max(dot, 0))) ? "" : file.slice(dot + 1)
  return mimeTypes.get(extension.toLowerCase()) ?? "application/octet-stream"
}

/**
 * Returns a medium without its data, as JSON for events and logs.
 *
 * @category codecs
 * @since 0.1.0
 */
export const toJson = (media: Media): JsonObject => ({
  ...(media.id === undefined ? {} : { id: media.id }),
  kind: media.kind,
  mime_type: media.mimeType,
  source: media.source._tag.toLowerCase(),
  metadata: media.metadata
})

/**
 * Returns true for a medium: an object with a kind, a MIME type and a source.
 *
 * @category guards
 * @since 0.1.0
 */
export const isMedia = (value: unknown): value is Media =>
  typeof value === "object" && value !== null && "kind" in value && "mimeType" in value && "source" in value

const make = (source: Source, mimeType: string, options: Omit<Options, "mimeType"> | undefined): Media => {
  if (typeof mimeType !== "string") throw new RangeError("Media: expected a MIME type")
  const kind: unknown = options?.kind ?? kindOf(mimeType)
  if (!isKind(kind)) throw new RangeError(`Media: expected a kind of ${Kind.literals.join(", ")}`)
  return Object.freeze({
    kind,
    mimeType,
    source: Object.freeze(source),
    metadata: Snapshot.freeze(options?.metadata ?? {})
  })
}

const isKind = Schema.is(Kind)

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array

const dataOf = (source: Source): Uint8Array => {
  switch (source._tag) {
    case "Bytes":
      return source.bytes
    case "Path":
      return new TextEncoder().encode(source.path)
    case "Url":
      return new TextEncoder().encode(source.url)
  }
}

const mimeTypes: ReadonlyMap<string, string> = new Map([
  ["png", "image/png"],
  ["jpg", "image/jpeg"],
  ["jpeg", "image/jpeg"],
  ["gif", "image/gif"],
  ["webp", "image/webp"],
  ["mp3", "audio/mpeg"],
  ["wav", "audio/wav"],
  ["ogg", "audio/ogg"],
  ["mp4", "video/mp4"],
  ["webm", "video/webm"],
  ["pdf", "application/pdf"],
  ["txt", "text/plain"]
])

/** Returns the declared type of some bytes, or the one that the bytes have if none was declared. */
const mimeTypeIn = (bytes: Uint8Array, declared: string): string => {
  const name = essenceOf(declared)
  return name === "" || name === unknownType ? (contradiction(declared, bytes) ?? declared) : declared
}

const essenceOf = (mimeType: string): string => mimeType.split(";", 1)[0]?.trim().toLowerCase() ?? ""

interface Signature {
  readonly type: string
  /** Other names of the type, and types whose files begin in the same way. */
  readonly also?: RegExp
  readonly matches: (bytes: Uint8Array) => boolean
}

const unknownType = "application/octet-stream"

const at = (offset: number, text: string) => (bytes: Uint8Array) => startsWith(bytes, offset, text)

const image = (type: string) => (bytes: Uint8Array) => imageType(bytes) === type

const all =
  (...tests: ReadonlyArray<(bytes: Uint8Array) => boolean>) =>
  (bytes: Uint8Array) =>
    tests.every((test) => test(bytes))

const any =
  (...tests: ReadonlyArray<(bytes: Uint8Array) => boolean>) =>
  (bytes: Uint8Array) =>
    tests.some((test) => test(bytes))

const signatures: ReadonlyArray<Signature> = [
  { type: "image/png", also: /^image\/(x-png|apng|vnd\.mozilla\.apng)$/, matches: image("image/png") },
  { type: "image/jpeg", also: /^image\/(jpg|pjpeg)$/, matches: image("image/jpeg") },
  { type: "image/gif", matches: image("image/gif") },
  { type: "image/webp", matches: image("image/webp") },
  { type: "image/tiff", also: /^image\//, matches: any(at(0, "II*\0"), at(0, "MM\0*")) },
  { type: "image/avif", matches: all(at(4, "ftyp"), any(at(8, "avif"), at(8, "avis"))) },
  {
    type: "image/heic",
    also: /^image\/hei[cf]/,
    matches: all(at(4, "ftyp"), any(at(8, "heic"), at(8, "heix"), at(8, "mif1")))
  },
  { type: "audio/wav", also: /^audio\/(x-wav|wave|vnd\.wave|x-pn-wav)$/, matches: all(at(0, "RIFF"), at(8, "WAVE")) },
  { type: "video/x-msvideo", also: /^video\//, matches: all(at(0, "RIFF"), at(8, "AVI ")) },
  { type: "audio/mpeg", also: /^audio\//, matches: at(0, "ID3") },
  { type: "audio/flac", also: /^audio\/x-flac$/, matches: at(0, "fLaC") },
  { type: "audio/ogg", also: /^(audio|video|application)\//, matches: at(0, "OggS") },
  { type: "audio/mp4", also: /^(audio|video)\//, matches: all(at(4, "ftyp"), at(8, "M4A")) },
  { type: "video/quicktime", also: /^video\//, matches: all(at(4, "ftyp"), at(8, "qt  ")) },
  { type: "video/mp4", also: /^(audio|video)\/|^image\/hei|^image\/avif/, matches: at(4, "ftyp") },
  { type: "video/webm", also: /^(audio|video)\//, matches: at(0, "\x1aE\xdf\xa3") },
  { type: "application/pdf", also: /^application\/(x-pdf|postscript|illustrator)$/, matches: at(0, "%PDF-") },
  { type: "application/gzip", also: /^application\/|\+gzip$/, matches: at(0, "\x1f\x8b\x08") },
  { type: "application/zip", also: /^(application|model)\/|\+zip$/, matches: at(0, "PK\x03\x04") }
]
