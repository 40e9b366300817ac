/**
 * Moves media of earlier messages into the store of a run.
 */

import * as Effect from "effect/Effect"
import * as Content from "../../Content.ts"
import type { MediaContent } from "../../Content.ts"
import { extended, factsOf } from "../../internal/words/messageFacts.ts"
import type { Limits } from "../../Limits.ts"
import type { MediaStoreShape as MediaStore } from "../../MediaStore.ts"
import type { Message } from "../../Message.ts"
import { withMedia } from "../Medium.ts"

/** The largest number of bytes of a medium inside a message. */
export const inline = 65_536

/** Returns how many bytes of a run's store may hold media of earlier messages. The rest is for its input and new media. */
export const roomBefore = ({ mediaBytes }: Limits): number => mediaBytes / 2

/**
 * Moves media of more than `above` bytes into the store of a run and returns the messages with references to them.
 * Media that the store rejects stay in their messages, and so do media beyond `room` bytes. A list returned by this
 * function is not processed again.
 */
export const admitMedia = (
  messages: ReadonlyArray<Message>,
  store: MediaStore,
  room: number,
  above: number
): Effect.Effect<ReadonlyArray<Message>> => {
  if (done.has(messages)) return Effect.succeed(messages)
  if (!factsOf(messages).hasBytes) return Effect.succeed(extended(messages))
  let left = room
  const admitting = Effect.forEach(messages, (message) => {
    const held = heldIn(message.content, above)
    // Most messages hold no media.
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
  return Effect.tap(admitting, (admitted) => Effect.sync(() => done.add(admitted)))
}

const done = new WeakSet<ReadonlyArray<Message>>()

/** Returns the total bytes of the media in a content that are larger than `above`. */
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
