/**
 * The value behind the four media contents: what it is, and where its bytes are (BP-115).
 *
 * A medium is plain frozen data. Its id is computed, not chosen: the same data
 * has the same id everywhere (BP-116). Nothing here reads a file or opens a
 * connection: paths are read by the store, URLs by whoever is allowed to.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Digest from "effect/crypto/Digest"
import * as Schema from "effect/Schema"
import { defineBytes } from "./internal/base/snapshot.ts"
import type { JsonObject } from "./internal/base/json.ts"
import * as Snapshot from "./internal/base/snapshot.ts"

/**
 * What a medium is to a model.
 *
 * @category schemas
 * @since 0.1.0
 */
export const Kind = Schema.Literals(["image", "audio", "video", "document"])
/**
 * One of `image`, `audio`, `video`, `document`.
 *
 * @category models
 * @since 0.1.0
 */
export type Kind = typeof Kind.Type

/**
 * Where the bytes are. Reading `bytes` gives a copy each time (CP-4).
 *
 * @category models
 * @since 0.1.0
 */
export type Source =
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }
  | { readonly _tag: "Path"; readonly path: string }
  | { readonly _tag: "Url"; readonly url: string }

/**
 * A medium: what it is, and where its bytes are.
 *
 * @category models
 * @since 0.1.0
 */
export interface Media {
  readonly kind: Kind
  readonly mimeType: string
  readonly source: Source
  readonly metadata: JsonObject
  /** There once a store took it. */
  readonly id?: string
}

/**
 * What may be said of a medium; what is not said is inferred.
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
 * A medium from its bytes, which are copied.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromBytes = (bytes: Uint8Array, mimeType: string, options?: Omit<Options, "mimeType">): Media => {
  const source = { _tag: "Bytes" as const, bytes }
  defineBytes(source, "bytes", bytes)
  return make(source, mimeType, options)
}

/**
 * A medium in a file. The file is read when its bytes are asked for, each time anew.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromPath = (path: string, options?: Options): Media =>
  make({ _tag: "Path", path }, options?.mimeType ?? mimeTypeOf(path), options)

/**
 * A medium at a URL. The library never fetches it (CP-11).
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromUrl = (url: string, options?: Options): Media =>
  make({ _tag: "Url", url }, options?.mimeType ?? mimeTypeOf(url), options)

/**
 * The id of a medium's data: of the bytes, or of the text of the path or URL (BP-116).
 *
 * Kind, MIME type and the content of a file do not enter, so two media may share an id; a store refuses the second.
 *
 * @category combinators
 * @since 0.1.0
 */
export const id = (media: Media): Effect.Effect<string> =>
  Digest.Digest.use((digest) => digest.digestHex(Digest.sha1, dataOf(media.source))).pipe(
    Effect.map((hex) => `media_${hex.slice(0, 12)}`),
    Effect.provide(Digest.layerWebCrypto)
  )

/**
 * What a medium is to a model, by its MIME type (BP-117).
 *
 * @category combinators
 * @since 0.1.0
 */
export const kindOf = (mimeType: string): Kind => {
  const family = mimeType.slice(0, mimeType.indexOf("/") + 1)
  return family === "image/" ? "image" : family === "audio/" ? "audio" : family === "video/" ? "video" : "document"
}

/**
 * The MIME type of a file name or URL, by its extension (BP-117).
 *
 * @category combinators
 * @since 0.1.0
 */
export const mimeTypeOf = (name: string): string => {
  // The query is cut, the fragment is not: ids and types made elsewhere stay what they are.
  const [path = ""] = name.split("?", 1)
  // A slash at the end says nothing about the name before it.
  let end = path.length
  while (path.charAt(end - 1) === "/") end--
  const file = path.slice(path.lastIndexOf("/", end - 1) + 1, end)
  const dot = file.lastIndexOf(".")
  // A name that only begins with dots is hidden, it has no extension.
  const extension = /^\.*$/.test(file.slice(0, Math.max(dot, 0))) ? "" : file.slice(dot + 1)
  return mimeTypes.get(extension.toLowerCase()) ?? "application/octet-stream"
}

/**
 * What may be told of a medium: everything but its data (BP-118).
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
 * Tells a medium from any other value, contents among them, by its having a kind, a MIME type and a source.
 *
 * @category guards
 * @since 0.1.0
 */
export const isMedia = (value: unknown): value is Media =>
  typeof value === "object" && value !== null && "kind" in value && "mimeType" in value && "source" in value

const make = (source: Source, mimeType: string, options: Omit<Options, "mimeType"> | undefined): Media =>
  Object.freeze({
    kind: options?.kind ?? kindOf(mimeType),
    mimeType,
    source: Object.freeze(source),
    metadata: Snapshot.freeze(options?.metadata ?? {})
  })

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
