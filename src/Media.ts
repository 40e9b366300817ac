/**
 * The value behind the four media contents: kind, MIME type, source (BP-115).
 *
 * @since 0.1.0
 */
import type { JsonObject } from "./internal/json.ts"

/** What a medium is for the model (BP-115). */
export type Kind = "image" | "audio" | "video" | "document"

/** Where the bytes are. */
export type Source =
  | { readonly _tag: "Bytes"; readonly bytes: Uint8Array }
  | { readonly _tag: "Path"; readonly path: string }
  | { readonly _tag: "Url"; readonly url: string }

/** A medium. `id` is there once a store gave it. */
export interface Media {
  readonly kind: Kind
  readonly mimeType: string
  readonly source: Source
  readonly metadata: JsonObject
  readonly id?: string
}
