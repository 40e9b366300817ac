/**
 * Texts as bits, for a search that finds words also inside other words, in any language.
 *
 * A gram is two or three consecutive UTF-16 units of a text. Its hash is the number of a slice, and a slice holds one bit
 * for each text of a block. A text whose bit is missing in a slice of a word does not contain the word. A text with all
 * of its bits probably does.
 */

/** Number of texts of a block. */
export const blockSize = 2048

/** Bytes of a slice. */
export const sliceBytes = blockSize / 8

/** Bits of the number of a slice. A block may have fewer slices, by as many of the lower bits. */
export const sliceBits = 14

/** Largest number of slices that a search reads in each block. */
const mostSlices = 8

/** The slices of a block, one after the other. */
export interface Slices {
  readonly count: number
  readonly bits: Uint8Array
}

/** Creates empty slices for texts of an average length, so many that a text sets about one bit of five. */
export const make = (length: number): Slices => {
  const count = 2 ** Math.min(sliceBits, Math.max(9, Math.ceil(Math.log2(length * 2))))
  return { count, bits: new Uint8Array(count * sliceBytes) }
}

/** Sets the bits of a text at a place of a block. */
export const add = ({ bits, count }: Slices, place: number, text: string): void => {
  const byte = place >> 3
  const bit = 1 << (place & 7)
  const set = (gram: number) => {
    const at = (sliceOf(gram) & (count - 1)) * sliceBytes + byte
    bits[at] = (bits[at] ?? 0) | bit
  }
  let [first, before] = [text.charCodeAt(0), 0]
  for (let at = 1; at < text.length; at++) {
    const last = text.charCodeAt(at)
    const pair = longer(first, last)
    set(pair)
    if (at > 1) set(longer(before, last))
    before = pair
    first = last
  }
}

/** Returns slices of words, evenly chosen if they have many. Empty if each word is a single unit. */
export const slicesOf = (words: ReadonlyArray<string>): ReadonlyArray<number> => {
  const slices = [...new Set(words.flatMap(gramsOf).map(sliceOf))]
  const step = Math.max(1, Math.ceil(slices.length / mostSlices))
  return slices.filter((_, index) => index % step === 0)
}

/** Returns the places of texts that have a bit in all of some slices. */
export const placesIn = (slices: ReadonlyArray<Uint8Array>): ReadonlyArray<number> => {
  const places: Array<number> = []
  for (let byte = 0; byte < sliceBytes; byte++) {
    let common = 255
    for (const slice of slices) common &= slice[byte] ?? 0
    for (let bit = 0; common !== 0; bit++, common >>= 1) if ((common & 1) === 1) places.push(byte * 8 + bit)
  }
  return places
}

const gramsOf = (word: string): ReadonlyArray<number> => {
  const units = Array.from({ length: word.length }, (_, at) => word.charCodeAt(at))
  const pairs = units.slice(1).map((unit, at) => longer(units[at] ?? 0, unit))
  return pairs.length < 2 ? pairs : units.slice(2).map((unit, at) => longer(pairs[at] ?? 0, unit))
}

/** Returns the number of a gram with one more unit. */
const longer = (gram: number, unit: number): number => Math.imul(gram, 0x9e3779b1) + unit

/** Returns the slice of a gram by multiplicative hashing, whose upper bits are mixed best. */
const sliceOf = (gram: number): number => Math.imul(gram, 0x85ebca6b) >>> (32 - sliceBits)
