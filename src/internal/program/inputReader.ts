/**
 * Reads the input of a program from the first message of its run.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Messages from "../../Message.ts"
import type { Message } from "../../Message.ts"

/** Returns a reader of the first message: its text, or else the JSON that its text holds. */
export const inputReader = (
  schema: Schema.ConstraintCodec<unknown, unknown>
): ((message: Message | undefined) => Effect.Effect<unknown, InvalidInput>) => {
  const ofText = Schema.decodeUnknownEffect(Schema.toCodecJson(schema))
  const ofJson = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.toCodecJson(schema)))
  return (message) => {
    const text = message === undefined ? "" : Messages.text(message)
    // The media of a message stand beside the JSON that names them.
    const json = message?.content.flatMap((part) => (part.type === "text" ? [part.text] : [])).join("") ?? ""
    return ofText(text).pipe(
      Effect.catch(() => ofJson(json)),
      Effect.mapError(({ message }) => new InvalidInput({ message: `its input does not fit: ${message}` }))
    )
  }
}

/** The first message of the run does not fit the input of the program. */
class InvalidInput extends Schema.TaggedError<InvalidInput>()("InvalidInput", { message: Schema.String }) {}
