/**
 * Keeps the media that a model made: stored under their ids, and named by reference in its message.
 */

import * as Effect from "effect/Effect"
import * as Contents from "../../Content.ts"
import { type MediaError, type Run, carry } from "../run/run.ts"
import { emit } from "../run/publish.ts"
import type { ModelReply } from "./modelReply.ts"

/** Stores the media of a reply and emits an event for each. A reply without media, or one that does not count, is returned as it is. */
export const keepMedia = (run: Run, reply: ModelReply): Effect.Effect<ModelReply, MediaError> => {
  const { content } = reply.reply
  if (reply.refused !== undefined || !content.some(Contents.isMedia)) return Effect.succeed(reply)
  return run.media.admit(content).pipe(
    Effect.tapError(() =>
      Effect.sync(() => {
        if (reply.usage !== null) carry(run, { spent: { usage: reply.usage, costUsd: reply.costUsd } })
      })
    ),
    Effect.map((kept) => {
      for (const part of kept) {
        if (!Contents.isMedia(part) || part.fileId === undefined) continue
        emit(run, { type: "media_made", kind: part.type, fileId: part.fileId, mediaType: part.mediaType ?? null })
      }
      return { ...reply, reply: { ...reply.reply, content: kept } }
    })
  )
}
