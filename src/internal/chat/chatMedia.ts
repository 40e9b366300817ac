/**
 * The media of a conversation: whole in its history, and lent to each of its runs, which finds them by their ids (W-21).
 *
 * A kernel made elsewhere has a store nobody knows; without one what is said goes as it is.
 */

import * as Effect from "effect/Effect"
import type { Content, MediaContent } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { Limits } from "../../Limits.ts"
import { isMedia, type Media } from "../../Media.ts"
import type { MediaStoreShape as MediaStore } from "../../MediaStore.ts"
import type { Message } from "../../Message.ts"
import { type Lasting, mediumOf, roomBefore, shelved, withMedia, withSource } from "../store/medium.ts"

/** A part of what the user says, as a history keeps it: a medium is whole, since those of a run end with it. */
export const kept = (part: string | Media | Content, store: MediaStore | undefined): Effect.Effect<string | Content> =>
  isMedia(part)
    ? Effect.map(sourceOf(part, store), (source) =>
        source === undefined
          ? Contents.text(`[${part.kind} unavailable: ${part.mimeType}]`)
          : mediumOf(part.kind, { ...source, mediaType: part.mimeType })
      )
    : Effect.succeed(part)

/** A message of a run, as a history keeps it: with its media instead of their ids. What cannot be found stays a name. */
export const whole = (message: Message, store: MediaStore | undefined): Effect.Effect<Message> =>
  store === undefined ? Effect.succeed(message) : withMedia(message, (part) => found(part, store))

const found = (part: MediaContent, store: MediaStore): Effect.Effect<Content> => {
  const { fileId } = part
  if (fileId === undefined || part.url !== undefined || part.data !== undefined) return Effect.succeed(part)
  return store.get(fileId).pipe(
    Effect.flatMap(Effect.fromOption),
    Effect.flatMap((medium) => sourceOf(medium, store)),
    Effect.match({
      onFailure: () => part,
      onSuccess: (source) => (source === undefined ? part : withSource(part, source))
    })
  )
}

/** Where the bytes of a medium are for good; those of a file are read now. */
const sourceOf = (medium: Media, store: MediaStore | undefined): Effect.Effect<Lasting | undefined> => {
  const { source } = medium
  switch (source._tag) {
    case "Bytes":
      return Effect.succeed({ data: source.bytes })
    case "Url":
      return Effect.succeed({ url: source.url })
    case "Path":
      return store === undefined
        ? Effect.undefined
        : Effect.match(
            Effect.flatMap(store.put(medium), ({ id }) => store.bytes(id)),
            { onFailure: () => undefined, onSuccess: (data) => ({ data }) }
          )
  }
}

/** Gives a run the media of what was said before. */
export const shelve = (
  messages: ReadonlyArray<Message>,
  store: MediaStore | undefined
): Effect.Effect<ReadonlyArray<Message>> =>
  store === undefined
    ? Effect.succeed(messages)
    : Effect.flatMap(Limits, (limits) => shelved(messages, store, roomBefore(limits), 0))

/**
 * Gives them once more to a run that goes on: a store in memory let go of them when it stopped. Those of the last message
 * come first, which is the run's own unless another has overtaken it: it named them, whatever their size.
 */
export const lend = Effect.fnUntraced(function* (messages: ReadonlyArray<Message>, store: MediaStore | undefined) {
  const last = messages.findLast(({ role }) => role === "user")
  if (store !== undefined && last !== undefined) yield* shelved([last], store, (yield* Limits).mediaBytes, 0)
  yield* shelve(messages, store)
})
