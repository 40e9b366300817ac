/**
 * Converts the messages of a conversation: to stored text, and between embedded media and references.
 *
 * A history embeds its media. Each run of the conversation gets them in its own store and refers to them by id. For a
 * kernel from another copy of this package the store is unknown, and messages pass unchanged.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Contents from "../../Content.ts"
import type { Content, MediaContent } from "../../Content.ts"
import { StoreError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import { type Media, isMedia } from "../../Media.ts"
import type { MediaStoreShape as MediaStore } from "../../MediaStore.ts"
import * as Messages from "../../Message.ts"
import type { Message } from "../../Message.ts"
import * as Storable from "../../kit/storable.ts"
import { type Lasting, mediumOf, roomBefore, shelved, withMedia, withSource } from "../../store-kit/medium.ts"

/**
 * Returns a part of the user's message for a history. Media are embedded, because the media of a run are deleted with
 * it.
 */
export const kept = (part: string | Media | Content, store: MediaStore | undefined): Effect.Effect<string | Content> =>
  isMedia(part)
    ? Effect.map(sourceOf(part, store), (source) =>
        source === undefined
          ? Contents.text(`[${part.kind} unavailable: ${part.mimeType}]`)
          : mediumOf(part.kind, { ...source, mediaType: part.mimeType })
      )
    : Effect.succeed(part)

/**
 * Returns a message of a run for a history, with embedded media instead of ids. Media that cannot be found stay
 * references.
 */
export const whole = (message: Message, store: MediaStore | undefined): Effect.Effect<Message> =>
  store === undefined ? Effect.succeed(message) : withMedia(message, (part) => found(part, store))

/** Stores the media of earlier messages for a run. */
export const shelve = (
  messages: ReadonlyArray<Message>,
  store: MediaStore | undefined
): Effect.Effect<ReadonlyArray<Message>> =>
  store === undefined
    ? Effect.succeed(messages)
    : Effect.flatMap(Limits, (limits) => shelved(messages, store, roomBefore(limits), 0))

/**
 * Stores the media of a resumed run again, because a store in memory released them when the run stopped. The media of
 * the last user message come first and without a size limit: it is the run's own message unless a later one was added,
 * and the run refers to all its media.
 */
export const lend = Effect.fnUntraced(function* (messages: ReadonlyArray<Message>, store: MediaStore | undefined) {
  const last = messages.findLast(({ role }) => role === "user")
  if (store !== undefined && last !== undefined) yield* shelved([last], store, (yield* Limits).mediaBytes, 0)
  yield* shelve(messages, store)
})

/** Encodes the messages of one append. */
export const writeMessages = (messages: ReadonlyArray<Message>): Result.Result<string, StoreError> => {
  const wire = messages.map(Messages.encode)
  const grade = Storable.grade(wire)
  if (grade === 0) return Result.fail(invalid("a message holds a value that is not JSON"))
  return Result.succeed(grade === 2 ? Storable.stringify(wire) : JSON.stringify(wire))
}

/** Returns the error for messages that cannot be stored, if any. Stores that write no text must reject them, too. */
export const refusal = (messages: ReadonlyArray<Message>): StoreError | undefined =>
  Storable.grade(messages.map(Messages.encode)) === 0 ? invalid("a message holds a value that is not JSON") : undefined

/** Decodes the messages of one append. */
export const readMessages = (text: string): Result.Result<ReadonlyArray<Message>, StoreError> =>
  Result.flatMap(Result.try({ try: (): unknown => JSON.parse(text), catch: () => corrupt("it is not JSON") }), (wire) =>
    Array.isArray(wire)
      ? Result.all(
          wire.map((message: unknown) => Result.mapError(Messages.decode(message), (error) => corrupt(error.message)))
        )
      : Result.fail(corrupt("it is not a list"))
  )

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

/** Returns a permanent source of a medium. A file is read now. */
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

const invalid = (detail: string) => new StoreError({ operation: "append", reason: "invalid", detail })

const corrupt = (detail: string) => new StoreError({ operation: "read messages", reason: "corrupt", detail })
