/**
 * Text put together from many small pieces, at a small multiple of its length.
 *
 * A string grown by `+=` costs several times its length in memory until it is
 * copied into one. Here small pieces are copied together a few at a time.
 */

/** A text that grows. */
export class Pieces {
  private whole = ""
  private half = ""
  private run = ""
  private size = 0
  private count = 0

  add(piece: string, size: number): void {
    this.run += piece
    this.size += size
    this.count += 1
    if (this.size < 2048) return
    if (this.half !== "") {
      this.whole += [this.half, this.run].join("")
      this.half = ""
    } else if (this.count > 64) {
      this.half = this.run
    } else {
      // Pieces this long outweigh what `+=` spends on them.
      this.whole += this.run
    }
    this.run = ""
    this.size = 0
    this.count = 0
  }

  /** All pieces and this last one; nothing is left. */
  take(last: string): string {
    const { half, run, whole } = this
    if (run === "" && half === "" && whole === "") return last
    this.whole = ""
    this.half = ""
    this.run = ""
    this.size = 0
    this.count = 0
    return whole + half + run + last
  }
}
