/**
 * Texts as rules compare them: in compatible forms and small letters, without accents and invisible characters, and with
 * letters in place of what only looks like them.
 */

/** A compared text, and the place of each of its units in the original. */
export interface Comparable {
  readonly text: string
  readonly places: ReadonlyArray<number>
}

/** Removes accents, so that composed and decomposed letters are the same. */
export const plainLetters = (text: string): string => text.normalize("NFKD").replace(/\p{M}/gu, "")

/** Returns a text as it is compared. */
export const comparable = (original: string): Comparable => {
  const places: Array<number> = []
  let text = ""
  let at = 0
  for (const char of original) {
    const folded = foldedChar(char)
    text += folded
    for (let unit = 0; unit < folded.length; unit++) places.push(at)
    at += char.length
  }
  return joined({ text: text.replace(/[\p{L}\p{N}]+/gu, plainWord), places })
}

const foldedChar = (char: string): string => {
  if (char < "\u0080") return char.toLowerCase()
  if (char === "’") return "'"
  return invisible.test(char) ? "" : plainLetters(char).toLowerCase()
}

const invisible = /^(?:\p{Default_Ignorable_Code_Point}|[\u200e\u200f\u202a-\u202e])$/u

/** Joins letters that are spread over a line: `i g n o r e`. */
const joined = ({ places, text }: Comparable): Comparable => {
  const spaces = new Set<number>()
  for (const { 0: letters, index } of text.matchAll(/(?<![^\s])(?:\p{L} ){2,200}\p{L}(?![^\s])/gu)) {
    for (let at = 0; at < letters.length; at++) if (letters.charAt(at) === " ") spaces.add(index + at)
  }
  if (spaces.size === 0) return { text, places }
  const kept = places.map((_, at) => at).filter((at) => !spaces.has(at))
  return { text: kept.map((at) => text.charAt(at)).join(""), places: kept.map((at) => places[at] ?? 0) }
}

/** Replaces digits between letters (`1gn0re`), and letters of other alphabets between Latin ones. Keeps the length. */
const plainWord = (word: string): string => {
  if (!/[a-z]/.test(word) || /^[a-z]+$/.test(word)) return word
  return Array.from(word, (char) => lookalikes.get(char) ?? char).join("")
}

const lookalikes: ReadonlyMap<string, string> = new Map([
  ...Array.from("аеорсухіјѕԁһկո", (char, index) => [char, "aeopcyxijsdhkn".charAt(index)] as const),
  ...Array.from("αεορυικντ", (char, index) => [char, "aeopuikvt".charAt(index)] as const),
  ...Array.from("013457", (char, index) => [char, "oieast".charAt(index)] as const)
])
