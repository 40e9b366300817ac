/**
 * Reads the content of a message as pieces.
 *
 * Media that a model or its vendor does not accept are replaced by a text, and thinking is kept only for the provider and
 * model that wrote it. Text is well-formed, and never blank.
 */

import * as Base64 from "effect/encoding/Base64"
import * as Blocks from "../../Block.ts"
import type { Content, MediaContent } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { imageType } from "../../kit/imageHeader.ts"
import type { Json } from "../../kit/json.ts"
import { pdfPages } from "../../kit/pdfPages.ts"
import { soundJson, soundObject, soundText } from "../../kit/soundText.ts"
import * as Model from "../../Model.ts"
import type { LeftOutMedium, Request } from "../../Provider.ts"
import { documentText, escapedBytes, essenceOf } from "./documentText.ts"
import type { ImageGate } from "./imageLimits.ts"
import { pdfRefusal, type Weight } from "./mediaAllowance.ts"
import { itemsOf, type MediaPiece, type Piece, type Settings, standIn, unknownType, wireId } from "./messageParts.ts"
import { isFields } from "./readFields.ts"

/** Returns whether a request offers tools that its vendor runs. */
export const hasHosted = ({ tools }: Request): boolean => tools.some(({ hosted }) => hosted !== undefined)

/** Returns whether the model acts by blocks, as it does without native calls. No text may then contain those of another. */
export const readsBlocks = ({ tools }: Request): boolean => tools.every(({ hosted }) => hosted !== undefined)

/** Reads one message of a request. */
export class PieceReader {
  /** The media that are replaced by a text, and why. */
  readonly leftOut: Array<LeftOutMedium> = []
  /** The weights of the media that are sent as bytes, or would be if they were not excluded. */
  readonly weights: Array<Weight> = []
  readonly #settings: Settings
  readonly #request: Request
  readonly #index: number
  readonly #images: ImageGate | undefined
  readonly #excluded: ReadonlyMap<number, string>

  /** `excluded` has the reasons why media are left out, by their place among the weights. */
  constructor(
    settings: Settings,
    request: Request,
    index: number,
    images: ImageGate | undefined,
    excluded: ReadonlyMap<number, string>
  ) {
    this.#settings = settings
    this.#request = request
    this.#index = index
    this.#images = images
    this.#excluded = excluded
  }

  pieces(content: ReadonlyArray<Content>): ReadonlyArray<Piece> {
    const pieces: Array<Piece> = []
    for (const part of content) {
      const piece = this.#piece(part)
      if (piece === undefined) continue
      const last = pieces.at(-1)
      // A blank text belongs to the text before it. Alone it is nothing.
      if (piece.kind !== "text" || !isBlank(piece.text)) pieces.push(piece)
      else if (last?.kind === "text") pieces[pieces.length - 1] = { kind: "text", text: last.text + piece.text }
    }
    return pieces
  }

  #safe(text: string): string {
    return readsBlocks(this.#request) ? Blocks.escape(text) : text
  }

  #piece(part: Content): Piece | undefined {
    switch (part.type) {
      case "text":
        return textPiece(part.text)
      case "image":
      case "audio":
      case "video":
      case "document":
        return this.#media(part)
      case "thinking": {
        if (!this.#isOwn(part.origin)) return undefined
        const signature = part.signature === undefined ? undefined : soundJson(part.signature)
        const piece = { kind: "thought", text: soundText(part.content), signature } as const
        // A vendor rejects calls of tools that are not in the request.
        return itemsOf(piece).length > 0 && !hasHosted(this.#request) ? undefined : piece
      }
      case "tool_use":
        // A request without tools may not contain calls, so they are written as text.
        return this.#request.tools.length === 0
          ? textPiece(Contents.toText(part))
          : { kind: "call", id: wireId(part.callId), name: soundText(part.name), input: soundObject(part.input) }
      case "tool_result":
        return this.#request.tools.length === 0
          ? textPiece(this.#safe(Contents.toText(part)))
          : {
              kind: "result",
              id: wireId(part.callId),
              name: this.#nameOf(part.callId),
              pieces: this.pieces(part.content),
              isError: part.isError
            }
      default:
        return textPiece(Contents.toText(part))
    }
  }

  #media(part: MediaContent): Piece {
    const { data } = part
    const url = part.url === undefined ? undefined : soundText(part.url)
    const form = Model.mediaInputs(this.#request.model).includes(part.type)
      ? this.#settings.media[part.type]
      : undefined
    const mediaType = soundText(typeIn(part))
    const fits = form?.types === undefined || form.types.includes(mediaType)
    const filename = part.type === "document" && part.filename !== undefined ? soundText(part.filename) : undefined
    const facts = {
      kind: "media",
      type: part.type,
      mediaType,
      ...(filename === undefined ? {} : { filename: this.#safe(filename) })
    } as const
    const refusal = part.type === "image" ? this.#images?.refusal(data) : undefined
    if (form !== undefined && fits && refusal !== undefined) return this.#leaveOut(facts, refusal, refusal)
    if (form?.urls === true && fits && url !== undefined && URL.canParse(url)) return { ...facts, source: { url } }
    if (data === undefined) return this.#leaveOut(facts, missing(url, mediaType))
    const { isText, text } = documentText(part.type, mediaType, data)
    // A text that cannot be read could hold anything.
    if (isText && text === undefined) return this.#leaveOut(facts, "its text cannot be read")
    if (form !== undefined && fits) {
      const heavy = this.#weigh(mediaType, data)
      if (heavy !== undefined) return this.#leaveOut(facts, heavy, heavy)
      const sent = text === undefined || !readsBlocks(this.#request) ? data : escapedBytes(text, data)
      return { ...facts, source: { data: Base64.encode(sent) } }
    }
    // Every model can read a text document.
    return text === undefined || !essenceOf(mediaType).startsWith("text/")
      ? this.#leaveOut(facts, `the model takes no ${form === undefined ? part.type : mediaType}`)
      : textPiece(this.#safe(text))
  }

  /** Returns why a medium is too heavy, alone or together with the others of the request. */
  #weigh(mediaType: string, data: Uint8Array): string | undefined {
    const { limits } = this.#settings
    const isPdf = essenceOf(mediaType) === "application/pdf"
    const pages = isPdf && limits?.pdf !== undefined ? pdfPages(data) : undefined
    const refusal = isPdf ? pdfRefusal(data.length, pages, limits?.pdf) : undefined
    if (refusal !== undefined) return refusal
    this.weights.push({ bytes: Math.ceil(data.length / 3) * 4, pages: pages ?? 0, fileBytes: isPdf ? data.length : 0 })
    return this.#excluded.get(this.weights.length - 1)
  }

  /** Returns the text in place of a medium, and notes why it is left out. The text has the reason only if it is `shown`. */
  #leaveOut(facts: Pick<MediaPiece, "type" | "mediaType">, reason: string, shown?: string): Piece {
    const { mediaType, type } = facts
    this.leftOut.push({ type, mediaType, reason })
    return standIn(facts, shown)
  }

  #isOwn(origin: Json | undefined): boolean {
    return (
      isFields(origin) && origin["provider"] === this.#settings.provider && origin["model"] === this.#request.model.id
    )
  }

  // A call precedes its result closely, so this search is short, and it runs once per message.
  #nameOf(callId: string): string | undefined {
    for (let index = this.#index; index >= 0; index--) {
      for (const part of this.#request.messages[index]?.content ?? []) {
        if (part.type === "tool_use" && part.callId === callId) return part.name
      }
    }
    return undefined
  }
}

/** Returns why a medium without bytes cannot be sent. */
const missing = (url: string | undefined, mediaType: string): string => {
  if (url === undefined) return "it is not stored"
  return URL.canParse(url) ? `${mediaType} is not read from addresses` : "its address is no URL"
}

const textPiece = (text: string): Piece => ({ kind: "text", text: soundText(text) })

// Vendors in Python also strip the separators U+001C to U+001F and U+0085.
const separators = "\u001c\u001d\u001e\u001f\u0085"

const isBlank = (text: string): boolean => {
  for (const character of text) if (character.trim() !== "" && !separators.includes(character)) return false
  return true
}

/** Returns the media type of a medium. A text that is none, such as one with a block inside, counts as unknown. */
const typeIn = ({ data, mediaType }: MediaContent): string =>
  mediaType === undefined
    ? ((data === undefined ? undefined : imageType(data)) ?? unknownType)
    : typeShape.test(mediaType)
      ? mediaType
      : unknownType

const typeShape = /^[\w.+-]{1,127}\/[\w.+-]{1,127}(?:\s*;\s*[\w.+-]{1,127}=[\w.+"-]{0,127})*$/
