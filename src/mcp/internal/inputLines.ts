/**
 * Splits the input of a server into lines, and leaves out those that are no messages. effect's transport would drop
 * everything that arrives with such a line.
 */

import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"
import { parseJson } from "../../kit/json.ts"

/** Emits the lines that hold an object or a list. Fails if a line is longer than a message may be. */
export const messages = <E, R>(input: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Uint8Array, E | string, R> =>
  input.pipe(
    Stream.decodeText(),
    Stream.mapAccumArrayEffect(
      () => "",
      Effect.fnUntraced(function* (held: string, chunks: Arr.NonEmptyReadonlyArray<string>) {
        const text = chunks.join("")
        // A long line is joined once, when it ends.
        const lines = text.includes("\n") ? (held + text).split("\n") : [held + text]
        const rest = lines.pop() ?? ""
        if (rest.length > Bounds.frameLength || lines.some((line) => line.length > Bounds.frameLength)) {
          return yield* Effect.fail("the line is too long")
        }
        const kept = lines.filter(isMessage)
        const odd = lines.filter((line) => line.trim() !== "").length - kept.length
        if (odd > 0) yield* Effect.logWarning(`the client sent ${odd} lines that are no messages`)
        return [rest, kept.length === 0 ? [] : [`${kept.join("\n")}\n`]] as const
      })
    ),
    Stream.encodeText
  )

const isMessage = (line: string): boolean => {
  const value = parseJson(line, Bounds.jsonDepth)
  return Result.isSuccess(value) && typeof value.success === "object" && value.success !== null
}
