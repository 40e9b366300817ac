/**
 * Checksums of stored texts, so that damage by a disk or a copy is detected and never read as another state.
 *
 * The text is a JSON object, or a list that begins with one. Its checksum is the first field of that object, and covers
 * the text without it.
 */

/** Adds the checksum to a text. */
export const seal = (text: string): string => {
  const start = startOf(text)
  return `${text.slice(0, start)}"sum":"${hex(crc(text, start, start))}",${text.slice(start)}`
}

/** Whether the checksum of a text is right, wrong, or absent, as in older texts. */
export const check = (text: string): "right" | "wrong" | "none" => {
  const start = startOf(text)
  if (!text.startsWith('"sum":"', start) || !text.startsWith('",', start + 15)) return "none"
  return text.slice(start + 7, start + 15) === hex(crc(text, start, start + 17)) ? "right" : "wrong"
}

const startOf = (text: string): number => (text.startsWith("[") ? 2 : 1)

const hex = (sum: number): string => (sum >>> 0).toString(16).padStart(8, "0")

/** CRC-32 of a text without the part between two positions, over the non-zero bytes of its UTF-16 units. */
const crc = (text: string, start: number, end: number): number => {
  let sum = -1
  for (let index = 0; index < text.length; index++) {
    if (index === start) index = end
    const unit = text.charCodeAt(index)
    sum = (table[(sum ^ unit) & 255] ?? 0) ^ (sum >>> 8)
    if (unit > 255) sum = (table[(sum ^ (unit >>> 8)) & 255] ?? 0) ^ (sum >>> 8)
  }
  return ~sum
}

const table = Int32Array.from({ length: 256 }, (_, byte) => {
  let entry = byte
  for (let bit = 0; bit < 8; bit++) entry = entry & 1 ? (entry >>> 1) ^ 0xedb88320 : entry >>> 1
  return entry
})
