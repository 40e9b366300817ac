/**
 * Stores the media of earlier messages of a conversation for its next run.
 *
 * A history embeds its media. Each run of the conversation gets them in its own store and refers to them by id. For a
 * kernel from another copy of this package the store is unknown, and messages pass unchanged.
 */

import * as Effect from "effect/Effect"
import { Limits } from "../../Limits.ts"
import type { MediaStoreShape as MediaStore } from "../../MediaStore.ts"
import type { Message } from "../../Message.ts"
import { admitMedia, roomBefore } from "../../store-kit/internal/admitMedia.ts"

/** Stores the media of earlier messages for a run. */
export const storeMedia = (
  messages: ReadonlyArray<Message>,
  store: MediaStore | undefined
): Effect.Effect<ReadonlyArray<Message>> =>
  store === undefined
    ? Effect.succeed(messages)
    : Effect.flatMap(Limits, (limits) => admitMedia(messages, store, roomBefore(limits), 0))

/**
 * Stores the media of a resumed run again, because a store in memory released them when the run stopped. The media of
 * the last user message come first and without a size limit: it is the run's own message unless a later one was added,
 * and the run refers to all its media.
 */
export const lend = Effect.fnUntraced(function* (messages: ReadonlyArray<Message>, store: MediaStore | undefined) {
  const last = messages.findLast(({ role }) => role === "user")
  if (store !== undefined && last !== undefined) yield* admitMedia([last], store, (yield* Limits).mediaBytes, 0)
  yield* storeMedia(messages, store)
})
