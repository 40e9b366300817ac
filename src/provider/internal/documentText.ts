/**
 * Documents of text.
 *
 * Their bytes become text only at the vendor or in an encoder, after the results of calls have been escaped, so blocks
 * in them are escaped here.
 */

import * as Result from "effect/Result"
import * as Blocks from "../../Block.ts"
import type { MediaContent } from "../../Content.ts"

/**
 * Returns the text of a medium that is one: its type says so, or it is a document whose bytes are text. The text is
 * undefined if it is not UTF-8.
 */
export const documentText = (
  type: MediaContent["type"],
  mediaType: string,
  data: Uint8Array
): { readonly isText: boolean; readonly text: string | undefined } => {
  const essence = essenceOf(mediaType)
  const isCalledText = textTypes.test(essence)
  if (!isCalledText && (type !== "document" || essence === "application/pdf")) return { isText: false, text: undefined }
  const text = utf8Of(data)
  return { isText: isCalledText || text !== undefined, text }
}

/** Returns a MIME type without its parameters. */
export const essenceOf = (mediaType: string): string => mediaType.split(";", 1)[0]?.trim().toLowerCase() ?? ""

/** Returns the bytes of a text whose blocks are escaped, or the given ones if it has none. */
export const escapedBytes = (text: string, data: Uint8Array): Uint8Array => {
  const escaped = Blocks.escape(text)
  return escaped === text ? data : new TextEncoder().encode(escaped)
}

const textTypes = /^text\/|[/+](?:json|xml|yaml|x-yaml|javascript|ecmascript|toml|sql|graphql|x-sh)$/

// NUL occurs in binary formats, and in the encodings of 16 bits, whose blocks would not be found.
const utf8Of = (bytes: Uint8Array): string | undefined =>
  bytes.includes(0)
    ? undefined
    : Result.getOrUndefined(Result.try(() => new TextDecoder("utf-8", { fatal: true }).decode(bytes)))
