/**
 * The five kinds of content that every vendor accepts: text, media, native calls, their results, and thinking. Other
 * content is sent as text.
 */

import type { MediaContent } from "../../Content.ts"
import { isJsonObject, type Json, jsonObject, type JsonObject } from "../../kit/json.ts"
import type { VendorRules } from "../../kit/vendorRules.ts"
import { kindOf } from "../../Media.ts"

/** A medium that can be sent: bytes as base64, or an address that the vendor reads itself. */
export interface MediaPiece {
  readonly kind: "media"
  readonly type: MediaContent["type"]
  readonly mediaType: string
  readonly filename?: string
  readonly source: { readonly data: string } | { readonly url: string }
}

/** One piece of a message. */
export type Piece =
  | { readonly kind: "text"; readonly text: string }
  | MediaPiece
  | { readonly kind: "call"; readonly id: string; readonly name: string; readonly input: JsonObject }
  | {
      readonly kind: "result"
      readonly id: string
      /** The name of the call it answers, if known. */
      readonly name: string | undefined
      readonly pieces: ReadonlyArray<Piece>
      readonly isError: boolean
    }
  | { readonly kind: "thought"; readonly text: string; readonly signature: Json | undefined }

type Thought = Extract<Piece, { readonly kind: "thought" }>

/** The settings of one vendor. */
export interface Settings {
  readonly provider: string
  /** The media that the format supports. The model must accept their kind too. */
  readonly media: Media
  /** The images and PDF files that the vendor accepts. Default: all. */
  readonly limits?: MediaLimits | undefined
}

/** The limits of a vendor for media. */
export type MediaLimits = Pick<VendorRules, "images" | "pdf">

/** The form in which a format accepts one kind of media. */
export interface Form {
  /** The MIME types it accepts. Default: all of the kind. */
  readonly types?: ReadonlyArray<string>
  /** Whether a medium can be an address. */
  readonly urls: boolean
}

/** The kinds that a format supports. */
export type Media = { readonly [kind in MediaContent["type"]]?: Form }

/** Every kind, as bytes and as an address. */
export const allMedia: Media = {
  image: { urls: true },
  audio: { urls: true },
  video: { urls: true },
  document: { urls: true }
}

/** Joins the text pieces of a message. */
export const textOf = (pieces: ReadonlyArray<Piece>, separator = ""): string => {
  const texts: Array<string> = []
  for (const piece of pieces) if (piece.kind === "text") texts.push(piece.text)
  return texts.join(separator)
}

/**
 * Separates the media from a model's own message, for formats that allow none there. Results must follow calls
 * immediately, so in a message with calls the media become texts.
 */
export const apart = (
  pieces: ReadonlyArray<Piece>
): { readonly said: ReadonlyArray<Piece>; readonly made: ReadonlyArray<Piece> } => {
  if (!pieces.some(({ kind }) => kind === "media")) return { said: pieces, made: [] }
  if (pieces.some(({ kind }) => kind === "call")) {
    return { said: pieces.map((piece) => (piece.kind === "media" ? standIn(piece) : piece)), made: [] }
  }
  return {
    said: pieces.filter(({ kind }) => kind !== "media"),
    made: pieces.filter(({ kind }) => kind === "media")
  }
}

/** Returns the vendor data of calls that the vendor ran itself, which is stored in a thought without text. */
export const itemsOf = ({ signature }: Thought): ReadonlyArray<JsonObject> => {
  const items = jsonObject(signature)["items"]
  return Array.isArray(items) ? items.filter(isJsonObject) : []
}

/** Returns a text piece in place of a medium, with the reason if it could have been sent otherwise. */
export const standIn = (media: Pick<MediaPiece, "type" | "mediaType">, reason?: string): Piece => ({
  kind: "text",
  text: `[${media.type} unavailable: ${media.mediaType}${reason === undefined ? "" : `, ${reason}`}]`
})

/** Returns the text for a medium that cannot be part of a reply, such as one that a model made. */
export const madeOf = (mediaType = unknownType): string => textOf([standIn({ type: kindOf(mediaType), mediaType })])

/** Returns what a result shows, for formats in which it cannot be empty. */
export const shownOf = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Piece> =>
  pieces.length === 0 ? [{ kind: "text", text: noOutput }] : pieces

/** Returns the text of a result, for formats in which it cannot be blank. */
export const shownText = (pieces: ReadonlyArray<Piece>): string => textOf(pieces, "\n") || noOutput

const noOutput = "(no output)"

/**
 * Removes the thinking at the end of a reply that nothing follows, such as that of a reply that was cut. Vendors refuse
 * it there. `hosted` says of a thought whether it holds a call that the vendor ran, which may stand last.
 */
export const concluded = (
  pieces: ReadonlyArray<Piece>,
  hosted: (thought: Thought) => boolean = () => false
): ReadonlyArray<Piece> => {
  let end = pieces.length
  while (isOpenThought(pieces[end - 1], hosted)) end--
  return end === pieces.length ? pieces : pieces.slice(0, end)
}

/** Returns whether a piece is thinking: not the signature of a call, nor a call that the vendor ran. */
const isOpenThought = (piece: Piece | undefined, hosted: (thought: Thought) => boolean): boolean =>
  piece?.kind === "thought" && !hosted(piece) && jsonObject(piece.signature)["callId"] === undefined

/** Returns an id that every vendor accepts, always the same for the same id. */
export const wireId = (id: string): string => (wireIdShape.test(id) ? id : `call_${hash(id)}`)

const wireIdShape = /^[A-Za-z0-9_-]{1,40}$/

/** Returns an id of nine letters and digits, always the same for the same id. */
export const shortId = (id: string): string => (/^[A-Za-z0-9]{9}$/.test(id) ? id : hash(id).slice(0, 9))

// FNV-1a, twice with different seeds: enough to distinguish the calls of one conversation.
export const hash = (text: string): string => {
  let a = 0x811c9dc5
  let b = 0x01000193
  for (let i = 0; i < text.length; i++) {
    a = Math.imul(a ^ text.charCodeAt(i), 0x01000193)
    b = Math.imul(b ^ text.charCodeAt(i), 0x811c9dc5)
  }
  return (a >>> 0).toString(16).padStart(8, "0") + (b >>> 0).toString(16).padStart(8, "0")
}

export const unknownType = "application/octet-stream"
