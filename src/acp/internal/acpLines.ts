/** Splits the input of an agent into lines of bounded length. */

import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"

/** A line. Undefined stands for one that is longer than a message may be, of which nothing is kept. */
export type Line = string | undefined

/** Emits the lines of an input that are not empty. */
export const linesOf = <E, R>(input: Stream.Stream<Uint8Array, E, R>): Stream.Stream<Line, E, R> =>
  input.pipe(
    Stream.decodeText(),
    Stream.mapAccumArray(
      (): Line => "",
      (begun, chunks) => {
        const [first = "", ...more] = chunks.join("").split("\n")
        const lines = [joined(begun, first), ...more.map((line) => joined("", line))]
        const rest = lines.pop()
        return [rest, lines.filter((line) => line?.trim() !== "")] as const
      }
    )
  )

const joined = (begun: Line, text: string): Line =>
  begun === undefined || begun.length + text.length > Bounds.frameLength ? undefined : begun + text
