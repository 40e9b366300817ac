/**
 * Writes prompts of the AI SDK's language model specification, versions 2 to 4.
 *
 * The versions differ only in the form of files and results. Nothing is fetched here, so media at addresses that the
 * model cannot read are replaced by a text.
 */

import type { Json, JsonObject } from "../../kit/json.ts"
import type { Message } from "../../Message.ts"
import type { LeftOutMedium } from "../../Provider.ts"
import { optionsOf } from "./foreign.ts"
import { concluded, type MediaPiece, type Piece, shownText, standIn, textOf } from "./messageParts.ts"

/** The version of a model's specification. */
export type Version = 2 | 3 | 4

/** The model that a prompt is written for. */
interface Target {
  readonly version: Version
  /** Whether the model itself reads media of this type at this address. */
  readonly reads: (mediaType: string, url: string) => boolean
  /** Receives the media that the model cannot read. */
  readonly leftOut: Array<LeftOutMedium>
}

/** A message in the form of the specification. */
export type Written = { readonly role: "system" | "user" | "assistant" | "tool"; readonly content: unknown }

export const toMessages = (target: Target, message: Message, pieces: ReadonlyArray<Piece>): ReadonlyArray<Written> => {
  switch (message.role) {
    case "system":
      return pieces.length === 0 ? [] : [{ role: "system", content: textOf(pieces) }]
    case "assistant": {
      const content = toAnswer(target, concluded(pieces))
      return content.length === 0 ? [] : [{ role: "assistant", content }]
    }
    default: {
      const results = pieces.flatMap((piece) => (piece.kind === "result" ? [toResult(target, piece)] : []))
      const said = pieces.filter((piece) => piece.kind !== "result")
      const user = { role: "user", content: said.flatMap((piece) => toPart(target, piece)) } as const
      if (results.length === 0) return [user]
      const tool = { role: "tool", content: results } as const
      return said.length === 0 ? [tool] : [tool, user]
    }
  }
}

const toAnswer = (target: Target, pieces: ReadonlyArray<Piece>): ReadonlyArray<unknown> => {
  const options = optionsOf(pieces)
  const parts: Array<unknown> = []
  for (const piece of pieces) {
    if (piece.kind === "call") {
      const { id, input, name } = piece
      parts.push({ type: "tool-call", toolCallId: id, toolName: name, input, ...providerOptions(options.call(id)) })
    } else if (piece.kind === "thought") {
      const own = options.thought(piece)
      if (own !== undefined) parts.push({ type: "reasoning", text: piece.text, ...providerOptions(own) })
    } else parts.push(...toPart(target, piece))
  }
  return parts
}

const providerOptions = (options: JsonObject | undefined): { readonly providerOptions?: JsonObject } =>
  options === undefined || Object.keys(options).length === 0 ? {} : { providerOptions: options }

const toPart = (target: Target, piece: Piece): ReadonlyArray<unknown> => {
  if (piece.kind === "text") return [{ type: "text", text: piece.text }]
  if (piece.kind !== "media") return []
  const source = sourceOf(target, piece)
  if (source === undefined) return leaveOut(target, piece)
  return [{ type: "file", mediaType: piece.mediaType, data: target.version === 4 ? source : heldIn(source) }]
}

const leaveOut = ({ leftOut }: Target, piece: MediaPiece): ReadonlyArray<unknown> => {
  const { mediaType, type } = piece
  leftOut.push({ type, mediaType, reason: "the model does not read its address" })
  return [{ type: "text", text: textOf([standIn(piece)]) }]
}

type Source = { readonly type: "url"; readonly url: URL } | { readonly type: "data"; readonly data: string }

const heldIn = (source: Source): URL | string => (source.type === "url" ? source.url : source.data)

const sourceOf = (target: Target, { mediaType, source }: MediaPiece): Source | undefined => {
  if ("data" in source) return { type: "data", data: source.data }
  return target.reads(mediaType, source.url) ? { type: "url", url: new URL(source.url) } : undefined
}

const toResult = (target: Target, piece: Extract<Piece, { kind: "result" }>): unknown => {
  const { id, isError, name, pieces } = piece
  const text = shownText(pieces)
  const showsMedia = !isError && pieces.some((inner) => inner.kind === "media")
  const output: Json | { readonly [key: string]: unknown } = showsMedia
    ? { type: "content", value: pieces.flatMap((inner) => toShown(target, inner)) }
    : { type: isError ? "error-text" : "text", value: text }
  return { type: "tool-result", toolCallId: id, toolName: name ?? "unknown", output }
}

const toShown = (target: Target, piece: Piece): ReadonlyArray<unknown> => {
  if (piece.kind !== "media") return toPart(target, piece)
  const source = sourceOf(target, piece)
  if (source === undefined) return leaveOut(target, piece)
  const { mediaType } = piece
  if (target.version === 4) return [{ type: "file", mediaType, data: source }]
  if (source.type === "url") {
    return target.version === 3 ? [{ type: "file-url", url: source.url.href }] : leaveOut(target, piece)
  }
  const isImage = piece.type === "image" && target.version === 3
  return [{ type: target.version === 2 ? "media" : isImage ? "image-data" : "file-data", mediaType, data: source.data }]
}
