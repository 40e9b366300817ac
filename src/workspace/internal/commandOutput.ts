/**
 * Output of commands, bounded: the head and the tail of a finished one, the latest part of a running one.
 */

import { ends } from "../../kit/text.ts"

/** Bytes kept of one command. */
export const maxBytes = 1024 * 1024

/** Collects the start and the end of an output. */
export class HeadAndTail {
  readonly #head: Array<Uint8Array> = []
  #headBytes = 0
  readonly #tail = new Latest(maxBytes / 2)

  add(chunk: Uint8Array): void {
    const room = Math.max(0, maxBytes / 2 - this.#headBytes)
    const first = chunk.subarray(0, room)
    if (first.length > 0) {
      this.#head.push(first)
      this.#headBytes += first.length
    }
    if (chunk.length > room) this.#tail.add(chunk.subarray(room))
  }

  get bytes(): number {
    return this.#headBytes + this.#tail.end
  }

  get text(): string {
    const head = joined(this.#head)
    const { bytes, from } = this.#tail.after(0)
    if (from === 0) return textOf(joined([head, bytes]))
    return ends(textOf(head), textOf(bytes), maxBytes, this.bytes)
  }
}

/** Keeps the latest bytes of an output, with their offset in all of it. */
export class Latest {
  readonly #limit: number
  #chunks: Array<Uint8Array> = []
  #start = 0
  /** The number of bytes added so far. */
  end = 0

  constructor(limit: number) {
    this.#limit = limit
  }

  add(chunk: Uint8Array): void {
    this.#chunks.push(chunk)
    this.end += chunk.length
    // Twice the limit at most, so that chunks are rarely copied.
    if (this.end - this.#start > this.#limit * 2) {
      const { bytes, from } = this.after(0)
      this.#chunks = [bytes.slice()]
      this.#start = from
    }
  }

  /** Returns the kept bytes from an offset on, and the offset of the first one. */
  after(offset: number): { readonly bytes: Uint8Array; readonly from: number } {
    const from = Math.min(this.end, Math.max(offset, this.end - this.#limit, this.#start))
    return { bytes: joined(this.#chunks).subarray(from - this.#start), from }
  }
}

/** Reads bytes as text, with a replacement character where they are none. */
export const textOf = (bytes: Uint8Array): string => new TextDecoder().decode(bytes)

const joined = (chunks: ReadonlyArray<Uint8Array>): Uint8Array => {
  const [only] = chunks
  if (chunks.length === 1 && only !== undefined) return only
  const whole = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const chunk of chunks) {
    whole.set(chunk, at)
    at += chunk.length
  }
  return whole
}
