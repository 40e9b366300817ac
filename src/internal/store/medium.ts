/**
 * Media in messages: as content of their kind, with another source, and in the store of a run.
 */

import * as Effect from "effect/Effect"
import type { MediaContent, OneSource } from "../../Content.ts"
import * as Content from "../../Content.ts"
import type { Limits } from "../../Limits.ts"
import type { Kind } from "../../Media.ts"
import type { MediaStoreShape as MediaStore } from "../../MediaStore.ts"
import type { Message } from "../../Message.ts"
import type { MediaRef } from "../../RunEvent.ts"
import { freeze } from "../base/snapshot.ts"

/** The content that shows a medium of a kind. */
export const mediumOf = (kind: Kind, source: OneSource): MediaContent => {
  switch (kind) {
    case "image":
      return Content.image(source)
    case "audio":
      return Content.audio(source)
    case "video":
      return Content.video(source)
    case "document":
      return Content.document(source)
  }
}

/** Returns references to the media among contents, for events and logs. */
export const references = (contents: ReadonlyArray<Content.Content>): ReadonlyArray<MediaRef> =>
  contents.filter(Content.isMedia).map(({ fileId, mediaType, type }) => ({
    type,
    ...(fileId === undefined ? {} : { fileId }),
    ...(mediaType === undefined ? {} : { mediaType })
  }))

/** Where a medium is kept for good. */
export type Lasting = { readonly data: Uint8Array } | { readonly url: string }

/** The same medium from another source. */
export const withSource = (
  { data: _data, fileId: _fileId, url: _url, ...named }: MediaContent,
  source: Lasting
): MediaContent => Content[named.type]({ ...named, ...source })

/**
 * A message with other media, those in results included. An unchanged message stays the same value, which a provider
 * may have encoded already.
 */
export const withMedia = (
  message: Message,
  change: (part: MediaContent) => Effect.Effect<Content.Content>
): Effect.Effect<Message> =>
  Effect.map(changed(message.content, change), (content) =>
    content === message.content ? message : freeze({ ...message, content })
  )

/** The largest number of bytes of a medium inside a message. */
export const inline = 65_536

/** How many bytes of a store are for media from before a run. The rest is for its input and for what it makes. */
export const roomBefore = ({ mediaBytes }: Limits): number => mediaBytes / 2

/**
 * Moves media of more than `above` bytes into the store of a run and returns the messages with references to them.
 * Media that the store does not accept stay in their messages, and so do those beyond `room` bytes. A list that this
 * returned is not processed again.
 */
export const shelved = (
  messages: ReadonlyArray<Message>,
  store: MediaStore,
  room: number,
  above: number
): Effect.Effect<ReadonlyArray<Message>> => {
  if (messages.length === 0 || done.has(messages)) return Effect.succeed(messages)
  let left = room
  const shelving = Effect.forEach(messages, (message) => {
    const held = heldIn(message.content, above)
    // Most only speak and hold no media.
    if (held === 0 || held > left) return Effect.succeed(message)
    left -= held
    return withMedia(message, (part) =>
      bytesIn(part, above) === 0
        ? Effect.succeed(part)
        : Effect.catch(
            Effect.map(store.admit([part]), ([stored = part]) => stored),
            () => Effect.succeed(part)
          )
    )
  })
  return Effect.tap(shelving, (shelved) => Effect.sync(() => done.add(shelved)))
}

const done = new WeakSet<ReadonlyArray<Message>>()

/** How many bytes the media of more than this size hold inside a content. */
const heldIn = (parts: ReadonlyArray<Content.Content>, above: number): number => {
  let held = 0
  for (const part of parts) {
    if (part.type === "tool_result") held += heldIn(part.content, above)
    else if (Content.isMedia(part)) held += bytesIn(part, above)
  }
  return held
}

const bytesIn = ({ data }: MediaContent, above: number): number =>
  data === undefined || data.byteLength <= above ? 0 : data.byteLength

const changed = (
  parts: ReadonlyArray<Content.Content>,
  change: (part: MediaContent) => Effect.Effect<Content.Content>
): Effect.Effect<ReadonlyArray<Content.Content>> =>
  Effect.map(
    Effect.forEach(parts, (part): Effect.Effect<Content.Content> => {
      if (part.type !== "tool_result") return Content.isMedia(part) ? change(part) : Effect.succeed(part)
      return Effect.map(changed(part.content, change), (content) =>
        content === part.content ? part : Content.withContent(part, content)
      )
    }),
    (others) => (others.every((other, at) => other === parts[at]) ? parts : others)
  )
