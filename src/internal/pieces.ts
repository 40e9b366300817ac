/**
 * Text put together from many small pieces, at a small multiple of its length.
 *
 * A string grown by `+=` costs several times its length in memory until it is
 * copied into one, a slice keeps the whole text alive it was cut from. Here
 * pieces are copied together a few at a time.
 *
 * @since 0.1.0
 */

export class Pieces {
  private whole = ""
  private runs: Array<string> = []
  private run = ""

  add(piece: string): void {
    this.run += piece
    if (this.run.length < 1024) return
    if (this.runs.push(this.run) === 16) {
      this.whole += this.runs.join("")
      this.runs = []
    }
    this.run = ""
  }

  /** All pieces and this last one; nothing is left. */
  take(last: string): string {
    const { run, runs, whole } = this
    if (run === "" && whole === "" && runs.length === 0) return last
    this.run = ""
    this.runs = []
    this.whole = ""
    return whole + runs.join("") + run + last
  }
}

/** A slice that does not keep a much larger text alive. */
export const own = (text: string, start: number, end: number): string =>
  text.length < 4096 || (end - start) * 4 > text.length
    ? text.slice(start, end)
    : [text.slice(start, start + 1), text.slice(start + 1, end)].join("")

/** Does this text end between the two halves of a surrogate pair, as far as one can tell? */
export const endsInsidePair = (text: string): boolean => (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800
