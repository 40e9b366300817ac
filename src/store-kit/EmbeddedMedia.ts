/**
 * Embeds the media of messages, so that a message outlives the run whose store holds them.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Contents from "../Content.ts"
import type { Content, MediaContent } from "../Content.ts"
import { type Media, isMedia } from "../Media.ts"
import type { Message } from "../Message.ts"
import type { MediaStoreShape as MediaStore } from "./MediaScope.ts"
import { type Lasting, mediumOf, withMedia, withSource } from "./Medium.ts"

/**
 * Returns a part of the user's message for a history. Media are embedded, because the media of a run are deleted with
 * it.
 *
 * @category converting
 * @since 0.1.0
 */
export const ofPart = (
  part: string | Media | Content,
  store: MediaStore | undefined
): Effect.Effect<string | Content> =>
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
 *
 * @category converting
 * @since 0.1.0
 */
export const ofMessage = (message: Message, store: MediaStore | undefined): Effect.Effect<Message> =>
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
