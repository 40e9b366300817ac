import { Effect, Schema, Stream } from "effect"

/** A line went on and on: it has to be held until it ends, so it may not. */
export class LineTooLong extends Schema.TaggedError<LineTooLong>()("LineTooLong", { limit: Schema.Number }) {
  override get message() {
    return `a line of the input is longer than ${this.limit} characters`
  }
}

/** The lines of a text that comes in pieces. One of more characters than the limit fails. */
export const lines =
  (limit = 100_000) =>
  <E, R>(pieces: Stream.Stream<string, E, R>): Stream.Stream<string, E | LineTooLong, R> =>
    pieces.pipe(
      Stream.mapAccumEffect(
        () => "",
        (held, piece) => {
          const found = (held + piece).split("\n")
          if (found.some((line) => line.length > limit)) return Effect.fail(new LineTooLong({ limit }))
          const rest = found.pop() ?? ""
          return Effect.succeed([rest, found] as const)
        },
        { onHalt: (held) => (held === "" ? [] : [held]) }
      ),
      Stream.map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line))
    )
