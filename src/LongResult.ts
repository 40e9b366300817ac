/**
 * Reading on in results that were too long for the model (AC-14).
 *
 * A result over `Limits.resultBytes` is cut, and the whole of it is kept among
 * the media of the run. Where `LongResult.skill` is registered and one of the
 * agent's skills, the model is told so, and reads what it needs of the rest.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { block, name } from "./internal/loop/readResult.ts"
import { MediaNotFound } from "./KernelError.ts"
import { Limits } from "./Limits.ts"
import { MediaStore } from "./MediaStore.ts"
import * as Skill from "./Skill.ts"

/**
 * Reads a range of a long result: as much as `Limits.resultBytes` lets a model read at once, unless asked for less.
 * Offsets count bytes; a range begins and ends between characters.
 *
 * @category skills
 * @since 0.1.0
 */
export const skill = Skill.make(name, {
  description: "Reads on in a result that was cut, from a byte offset",
  input: Schema.Struct({
    id: Schema.String.annotate({ description: "The id given where the result was cut" }),
    offset: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
    length: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0)))
  }),
  effects: "read",
  annotations: { openWorld: false },
  execute: Effect.fnUntraced(function* ({ id, length, offset }) {
    // Only inside of a run is there a store to read from.
    const store = yield* Effect.serviceOption(MediaStore)
    const media = Option.isNone(store) ? Option.none() : yield* store.value.get(id)
    if (Option.isNone(store) || Option.isNone(media) || media.value.mimeType !== "text/plain") {
      return yield* new MediaNotFound({ id: id.slice(0, 256) })
    }
    const bytes = yield* store.value.bytes(id)
    const { resultBytes } = yield* Limits
    const start = boundary(bytes, offset)
    // A character is at most four bytes: a range is never empty before the end.
    const most = Math.max(4, Math.min(length ?? Infinity, resultBytes - 400))
    const end = boundary(bytes, start + most)
    // What looks like the mark of a file is a character of the result.
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(start, end))
    return end < bytes.length ? `${text}\n${block(id, end, bytes.length)}` : text
  })
})

/** The nearest place at or before `offset` where a character begins; never beyond the end. */
const boundary = (bytes: Uint8Array, offset: number): number => {
  let at = Math.min(offset, bytes.length)
  while (at > 0 && at < bytes.length && ((bytes[at] ?? 0) & 0xc0) === 0x80) at--
  return at
}
