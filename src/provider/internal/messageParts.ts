/**
 * Reduces a message to the five kinds of content that every vendor accepts: text, media, native calls, their results,
 * and thinking.
 *
 * Other content is sent as text. Media referenced by id are looked up, media that a model does not accept are replaced
 * by a text, and thinking is kept only for the provider and model that wrote it. Text is well-formed, and never blank.
 * Each message is encoded once per adapter and model, and the result is kept for as long as the message lives.
 */

import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Option from "effect/Option"
import * as Blocks from "../../Block.ts"
import type { Content, MediaContent } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { imageType } from "../../kit/imageHeader.ts"
import { isJsonObject, type Json, jsonObject, type JsonObject } from "../../kit/json.ts"
import { soundJson, soundObject, soundText } from "../../kit/soundText.ts"
import type { ImageLimits } from "../../kit/vendorRules.ts"
import { ProviderError, type StoreError } from "../../KernelError.ts"
import { kindOf } from "../../Media.ts"
import type { Message } from "../../Message.ts"
import * as Model from "../../Model.ts"
import type { MediaLookup, Request } from "../../Provider.ts"
import { documentText, escapedBytes, essenceOf } from "./documentText.ts"
import { gateOf, type ImageGate, imageShares } from "./imageLimits.ts"
import { isFields } from "./readFields.ts"

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

/** The settings of one vendor. */
export interface Settings {
  readonly provider: string
  /** The media that the format supports. The model must accept their kind too. */
  readonly media: Media
  /** The images that the vendor accepts. Default: all. */
  readonly images?: ImageLimits | undefined
}

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

/** Makes the encoder of one adapter. It returns the encoded messages of a request in order, each encoded once. */
export const encoder = <A>(
  settings: Settings,
  encode: (message: Message, pieces: ReadonlyArray<Piece>, model: string) => A
) => {
  const kept = new WeakMap<Message, { readonly key: string; readonly value: A }>()
  return Effect.fnUntraced(function* (request: Request): Effect.fn.Return<ReadonlyArray<A>, ProviderError> {
    const key = `${request.tools.length > 0} ${hasHosted(request)} ${readsBlocks(request)} ${request.model.id} ${request.model.capabilities.join(" ")}`
    const shares = imageShares(request.messages, settings.images)
    const encoded: Array<A> = []
    for (let index = 0; index < request.messages.length; index++) {
      const message = request.messages[index]
      if (message === undefined) continue
      const known = kept.get(message)
      const share = shares?.[index]
      const ownKey = share === undefined ? key : `${key} ${share.side} ${share.leftOut}`
      if (known !== undefined && known.key === ownKey) {
        encoded.push(known.value)
        continue
      }
      const found = message.content.some(isNamed) ? yield* sought(settings, message, request.media) : undefined
      const reader = new Reader(settings, request, index, gateOf(settings.images, share))
      const pieces = reader.pieces(found?.content ?? message.content)
      const isSilent = pieces.length === 0 && (message.role === "user" || message.role === "tool")
      const value = encode(message, isSilent ? nothingSaid : pieces, request.model.id)
      // A medium that is missing now may be there next time.
      if (found === undefined || found.isComplete) kept.set(message, { key: ownKey, value })
      encoded.push(value)
    }
    return encoded
  })
}

/** Stands for a message of the user without content, which vendors refuse. */
const nothingSaid: ReadonlyArray<Piece> = [{ kind: "text", text: "(empty)" }]

const hasHosted = ({ tools }: Request): boolean => tools.some(({ hosted }) => hosted !== undefined)

// Without native calls a model acts by blocks, so no text may contain those of another.
const readsBlocks = ({ tools }: Request): boolean => tools.every(({ hosted }) => hosted !== undefined)

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
export const itemsOf = ({ signature }: Extract<Piece, { readonly kind: "thought" }>): ReadonlyArray<JsonObject> => {
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
 * it there.
 */
export const concluded = (pieces: ReadonlyArray<Piece>): ReadonlyArray<Piece> => {
  let end = pieces.length
  while (isOpenThought(pieces[end - 1])) end--
  return end === pieces.length ? pieces : pieces.slice(0, end)
}

/** Returns whether a piece is thinking: not the signature of a call, nor a call that the vendor ran. */
const isOpenThought = (piece: Piece | undefined): boolean =>
  piece?.kind === "thought" && itemsOf(piece).length === 0 && jsonObject(piece.signature)["callId"] === undefined

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

class Reader {
  readonly #settings: Settings
  readonly #request: Request
  readonly #index: number
  readonly #images: ImageGate | undefined

  constructor(settings: Settings, request: Request, index: number, images: ImageGate | undefined) {
    this.#settings = settings
    this.#request = request
    this.#index = index
    this.#images = images
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
    if (form !== undefined && fits && refusal !== undefined) return standIn(facts, refusal)
    if (form?.urls === true && fits && url !== undefined) return { ...facts, source: { url } }
    if (data === undefined) return standIn(facts)
    const { isText, text } = documentText(part.type, mediaType, data)
    // A text that cannot be read could hold anything.
    if (isText && text === undefined) return standIn(facts)
    if (form !== undefined && fits) {
      const sent = text === undefined || !readsBlocks(this.#request) ? data : escapedBytes(text, data)
      return { ...facts, source: { data: Base64.encode(sent) } }
    }
    // Every model can read a text document.
    return text === undefined || !essenceOf(mediaType).startsWith("text/")
      ? standIn(facts)
      : textPiece(this.#safe(text))
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

const textPiece = (text: string): Piece => ({ kind: "text", text: soundText(text) })

// Vendors in Python also strip the separators U+001C to U+001F and U+0085.
const separators = "\u001c\u001d\u001e\u001f\u0085"

const isBlank = (text: string): boolean => {
  for (const character of text) if (character.trim() !== "" && !separators.includes(character)) return false
  return true
}

export const unknownType = "application/octet-stream"

/** Returns the media type of a medium. A text that is none, such as one with a block inside, counts as unknown. */
const typeIn = ({ data, mediaType }: MediaContent): string =>
  mediaType === undefined
    ? ((data === undefined ? undefined : imageType(data)) ?? unknownType)
    : typeShape.test(mediaType)
      ? mediaType
      : unknownType

const typeShape = /^[\w.+-]{1,127}\/[\w.+-]{1,127}(?:\s*;\s*[\w.+-]{1,127}=[\w.+"-]{0,127})*$/

const isNamed = (part: Content): boolean =>
  part.type === "tool_result" ? part.content.some(isNamed) : Contents.isMedia(part) && part.fileId !== undefined

interface Found {
  readonly content: ReadonlyArray<Content>
  readonly isComplete: boolean
}

/**
 * Looks up the media of a message. Fails if a store cannot be read, so that the model does not see less than intended;
 * the call may be retried.
 */
const sought = (
  { provider }: Settings,
  { content }: Message,
  lookup: MediaLookup
): Effect.Effect<Found, ProviderError> =>
  Effect.mapError(
    look(content, lookup),
    ({ message }) =>
      new ProviderError({ provider, reason: "disconnected", detail: `media cannot be looked up: ${message}` })
  )

/** Replaces media referenced by id with the stored media, if they exist. */
const look = Effect.fnUntraced(function* (
  content: ReadonlyArray<Content>,
  lookup: MediaLookup
): Effect.fn.Return<Found, StoreError> {
  const found: Array<Content> = []
  let isComplete = true
  for (const part of content) {
    if (part.type === "tool_result" && isNamed(part)) {
      const inner = yield* look(part.content, lookup)
      isComplete &&= inner.isComplete
      found.push({ ...part, content: inner.content })
    } else if (Contents.isMedia(part) && part.fileId !== undefined) {
      const media = yield* medium(part, part.fileId, lookup)
      isComplete &&= Option.isSome(media)
      found.push(Option.getOrElse(media, () => part))
    } else {
      found.push(part)
    }
  }
  return { content: found, isComplete }
})

const medium = Effect.fnUntraced(function* (part: MediaContent, id: string, lookup: MediaLookup) {
  const stored = yield* lookup.get(id)
  if (Option.isNone(stored)) return Option.none<Content>()
  const { kind, mimeType, source } = stored.value
  const named = part.type === "document" && part.filename !== undefined ? { filename: part.filename } : undefined
  if (source._tag === "Url") return Option.some<Content>({ type: kind, url: source.url, mediaType: mimeType, ...named })
  const bytes = yield* lookup.bytes(id).pipe(
    Effect.asSome,
    Effect.catchTag(["MediaNotFound", "MediaUnreadable"], () => Effect.succeedNone)
  )
  return Option.map(bytes, (data): Content => ({ type: kind, data, mediaType: part.mediaType ?? mimeType, ...named }))
})
