/** The ids of the media in a tape. */
import { Effect } from "effect"
import { Media } from "kernai"
import { type Part, type Tape, bytesOf, mediaOf } from "./script.ts"

export const mediaIds = new Map<string, string>()

export const idOf = (bytes: Uint8Array | undefined): string =>
  bytes === undefined ? "" : (mediaIds.get(Buffer.from(bytes).toString("base64")) ?? "")

/** Ids are digests: they are made before events are compared. */
export const learnMedia = Effect.fnUntraced(function* (tape: Tape) {
  const parts: Array<Exclude<Part, string>> = []
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit)
    if (typeof value !== "object" || value === null) return
    if ("base64" in value && "mime" in value) parts.push({ mime: String(value.mime), base64: String(value.base64) })
    Object.values(value).forEach(visit)
  }
  visit(tape)
  for (const part of parts)
    mediaIds.set(Buffer.from(bytesOf(part.base64)).toString("base64"), yield* Media.id(mediaOf(part)))
})
