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
  private half = ""
  private run = ""
  private small = 0

  add(piece: string): void {
    this.run += piece
    // A piece this long outweighs what `+=` spends on it.
    if (piece.length >= 64 || ++this.small < 256) return
    this.small = 0
    if (this.half === "") {
      this.half = this.run
    } else {
      this.whole += [this.half, this.run].join("")
      this.half = ""
    }
    this.run = ""
  }

  /** All pieces and this last one; nothing is left. */
  take(last: string): string {
    const { half, run, whole } = this
    if (run === "" && half === "" && whole === "") return last
    this.whole = ""
    this.half = ""
    this.run = ""
    this.small = 0
    return whole + half + run + last
  }
}

/** A slice that does not keep a much larger text alive. */
export const own = (text: string, start: number, end: number): string =>
  end - start < 16 || text.length < 16_384 || (end - start) * 2 > text.length
    ? text.slice(start, end)
    : [text.slice(start, start + 1), text.slice(start + 1, end)].join("")

/** Does this text end between the two halves of a surrogate pair, as far as one can tell? */
export const endsInsidePair = (text: string): boolean => (text.charCodeAt(text.length - 1) & 0xfc00) === 0xd800
