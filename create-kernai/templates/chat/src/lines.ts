import { Schema } from "effect"

/** A line went on and on: it has to be held until it ends, so it may not. */
export class LineTooLong extends Schema.TaggedError<LineTooLong>()("LineTooLong", { limit: Schema.Number }) {
  override get message() {
    return `a line of the input is longer than ${this.limit} characters`
  }
}

/** The lines of a text that comes in pieces; `LineTooLong` is thrown for one of more characters than the limit. */
export async function* lines(pieces: AsyncIterable<string>, limit = 100_000): AsyncGenerator<string> {
  let held = ""
  for await (const piece of pieces) {
    const [end = "", ...more] = piece.split("\n")
    held += end
    for (const next of more) {
      if (held.length > limit) throw new LineTooLong({ limit })
      yield held.endsWith("\r") ? held.slice(0, -1) : held
      held = next
    }
    if (held.length > limit) throw new LineTooLong({ limit })
  }
  if (held !== "") yield held
}
