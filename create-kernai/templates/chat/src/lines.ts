import { Effect, Schema, Stream } from "effect"

/** Fails for a line over the limit, since a line must be held in memory until it ends. */
export class LineTooLong extends Schema.TaggedError<LineTooLong>()("LineTooLong", { limit: Schema.Number }) {
  override get message() {
    return `a line of the input is longer than ${this.limit} characters`
  }
}

/** Emits the lines of a text that arrives in pieces. Fails for a line with more characters than the limit. */
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
