/**
 * Encodes the messages of requests, each once per adapter and model. The result is kept for as long as the message lives.
 *
 * Media referenced by id are looked up. If the media of a request are too heavy together, the oldest are left out.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Content, MediaContent } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { ProviderError, type StoreError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import type { LeftOutMedium, MediaLookup, Request } from "../../Provider.ts"
import { gateOf, imageShares } from "./imageLimits.ts"
import { exclusions, type Exclusions, none, type SizeLimit, type Weight } from "./mediaAllowance.ts"
import type { Piece, Settings } from "./messageParts.ts"
import { hasHosted, PieceReader, readsBlocks } from "./readPieces.ts"

/** The messages of a request, encoded. */
export interface Encoded<A> {
  readonly messages: ReadonlyArray<A>
  /** The bytes of its media as base64. */
  readonly mediaBytes: number
}

/** An encoded message. */
interface Kept<A> {
  readonly key: string
  readonly excluded: string
  readonly value: A
  readonly leftOut: ReadonlyArray<LeftOutMedium>
  readonly weights: ReadonlyArray<Weight>
}

/**
 * Makes the encoder of one adapter. It returns the encoded messages of a request in order.
 */
export const encoder = <A>(
  settings: Settings,
  encode: (message: Message, pieces: ReadonlyArray<Piece>, model: string) => A
) => {
  const kept = new WeakMap<Message, Kept<A>>()
  const { limits } = settings

  const encodeOne = Effect.fnUntraced(function* (
    request: Request,
    index: number,
    key: string,
    images: ReturnType<typeof gateOf>,
    excluded: Exclusions
  ): Effect.fn.Return<Kept<A>, ProviderError> {
    const message = request.messages[index] ?? nobody
    const found = message.content.some(isNamed) ? yield* sought(settings, message, request.media) : undefined
    const reader = new PieceReader(settings, request, index, images, excluded)
    const pieces = reader.pieces(found?.content ?? message.content)
    const isSilent = pieces.length === 0 && (message.role === "user" || message.role === "tool")
    const value = encode(message, isSilent ? nothingSaid : pieces, request.model.id)
    const { leftOut, weights } = reader
    const entry: Kept<A> = { key, excluded: keyOf(excluded), value, leftOut, weights }
    // A medium that is missing now may be there next time.
    if (found === undefined || found.isComplete) kept.set(message, entry)
    return entry
  })

  return Effect.fnUntraced(function* (request: Request, size?: SizeLimit): Effect.fn.Return<Encoded<A>, ProviderError> {
    const { messages, model } = request
    const key = `${request.tools.length > 0} ${hasHosted(request)} ${readsBlocks(request)} ${model.id} ${model.capabilities.join(" ")}`
    const shares = imageShares(messages, limits?.images)
    const keyAt = (index: number): string => {
      const share = shares?.[index]
      return share === undefined ? key : `${key} ${share.side} ${share.leftOut}`
    }
    const gateAt = (index: number) => gateOf(limits?.images, shares?.[index])
    const entries: Array<Kept<A>> = []
    for (const [index, message] of messages.entries()) {
      const known = kept.get(message)
      const ownKey = keyAt(index)
      entries.push(known?.key === ownKey ? known : yield* encodeOne(request, index, ownKey, gateAt(index), none))
    }
    const excluded = exclusions(entries, { limits, size, window: model.contextWindow })
    for (const [index, entry] of entries.entries()) {
      const own = excluded?.[index] ?? none
      if (entry.excluded === keyOf(own)) continue
      entries[index] = yield* encodeOne(request, index, entry.key, gateAt(index), own)
    }
    request.noteLeftOut?.(entries.flatMap(({ leftOut }) => leftOut))
    return {
      messages: entries.map(({ value }) => value),
      mediaBytes: entries.reduce((sum, { weights }, index) => sum + sentBytes(weights, excluded?.[index] ?? none), 0)
    }
  })
}

const nobody: Message = { role: "user", content: [] }

const keyOf = (excluded: Exclusions): string => (excluded.size === 0 ? "" : JSON.stringify([...excluded]))

const sentBytes = (weights: ReadonlyArray<Weight>, excluded: Exclusions): number =>
  weights.reduce((sum, { bytes }, at) => sum + (excluded.has(at) ? 0 : bytes), 0)

/** Stands for a message of the user without content, which vendors refuse. */
const nothingSaid: ReadonlyArray<Piece> = [{ kind: "text", text: "(empty)" }]

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
