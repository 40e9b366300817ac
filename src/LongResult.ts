/**
 * Lets a model read the rest of results that were cut.
 *
 * The model is sent head and tail of a result over `Limits.resultBytes`, with a note of what is left out between them, and
 * the full text is kept among the media of the run. If `LongResult.skill` is registered and one of the agent's skills, the
 * note has an id, with which the model can read the rest.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { readerBlock, readerName } from "./internal/call/keepOutput.ts"
import { MediaNotFound } from "./KernelError.ts"
import { Limits } from "./Limits.ts"
import { MediaStore } from "./MediaStore.ts"
import * as Skill from "./Skill.ts"
import { boundary } from "./kit/text.ts"

/**
 * Reads a range of a long result. Returns at most what `Limits.resultBytes` allows, or `length` bytes if that is less.
 * Offsets count bytes; ranges begin and end between characters.
 *
 * @category skills
 * @since 0.1.0
 */
export const skill = Skill.make(readerName, {
  description: "Reads on in a result that was cut, from a byte offset",
  input: Schema.Struct({
    id: Schema.String.annotate({ description: "The id given where the result was cut" }),
    offset: Schema.Natural.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
    length: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0)))
  }),
  effects: "read",
  annotations: { openWorld: false },
  execute: Effect.fnUntraced(function* ({ id, length, offset }) {
    // Media are available only inside a run.
    const store = yield* Effect.serviceOption(MediaStore)
    const media = Option.isNone(store) ? Option.none() : yield* store.value.get(id)
    if (Option.isNone(store) || Option.isNone(media) || media.value.mimeType !== "text/plain") {
      return yield* new MediaNotFound({ id: id.slice(0, 256) })
    }
    const bytes = yield* store.value.bytes(id)
    const { resultBytes } = yield* Limits
    const start = boundary(bytes, offset)
    // A character has at most four bytes, so a range before the end is never empty.
    const most = Math.max(4, Math.min(length ?? Infinity, resultBytes - 400))
    const end = boundary(bytes, start + most)
    // A byte order mark here is part of the result.
    const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(start, end))
    return end < bytes.length ? `${text}\n${readerBlock(id, end, bytes.length)}` : text
  })
})
