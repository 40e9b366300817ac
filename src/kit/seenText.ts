/**
 * Text as a person sees it before a decision: characters that hide, that move others, or that imitate letters of another
 * script are told apart from ordinary text.
 *
 * The mixed-script rule follows Unicode Technical Standard 39 ("single script"); the imitating letters are those of its
 * table of confusables that fonts draw like Latin letters.
 */

import { invisible, visible } from "./text.ts"

/** A part of a text: ordinary text, or characters that a person would not see or would mistake for others. */
export type SeenPart = string | Mark

/** Marked characters, with the text to show for them. */
export interface Mark {
  readonly kind: "hidden" | "space" | "lookalike"
  readonly text: string
  /** The reason for the mark, for a person. */
  readonly note: string
}

/** Returns the parts of a text in order. Ordinary text is one part; a line end, a tab or an emoji is ordinary. */
export const seenParts = (text: string): ReadonlyArray<SeenPart> => {
  if (!unusual.test(text)) return [text]
  const parts: Array<SeenPart> = []
  const native = scriptsWritten(text)
  let plainFrom = 0
  for (const match of text.matchAll(pieces)) {
    const [piece] = match
    const marks = marksOf(piece, match.groups ?? {}, native)
    if (marks === undefined) continue
    if (match.index > plainFrom) parts.push(text.slice(plainFrom, match.index))
    for (const mark of marks) parts.push(mark)
    plainFrom = match.index + piece.length
  }
  if (plainFrom < text.length) parts.push(text.slice(plainFrom))
  return parts
}

/** Returns a text of one line with its marks, and whatever else a terminal would act on, as escapes. */
export const seen = (text: string): string =>
  seenParts(text)
    .map((part) => (typeof part === "string" ? visible(part) : part.text))
    .join("")

/**
 * Returns the different spellings of words that fonts draw alike, such as `PayPal` and `PayPaI`. One of them alone is
 * ordinary; both in the texts of one decision are worth a look.
 */
export const twins = (texts: Iterable<string>): ReadonlyArray<ReadonlyArray<string>> => {
  const spellings = new Map<string, Set<string>>()
  for (const text of texts) {
    for (const [word] of text.matchAll(/[\p{L}\p{N}|][\p{L}\p{N}|._@-]+[\p{L}\p{N}|]/gu)) {
      const drawn = word.replace(/[I1|]/g, "l").replaceAll("0", "O").replaceAll("rn", "m").replaceAll("vv", "w")
      spellings.set(drawn, (spellings.get(drawn) ?? new Set()).add(word))
    }
  }
  return Array.from(spellings.values(), (words) => [...words]).filter((words) => words.length > 1)
}

// ---------------------------------------------------------------- pieces

/** Whether a text holds more than printable ASCII, line ends and tabs, or a gap that pushes text out of sight. */
const unusual = /[^\t\n\x20-\x7e]|[ \t\n]{64}/

/** Pieces that may need a mark, after those that look as if they did: line ends and emoji of several characters. */
const pieces = (() => {
  const emoji = String.raw`\p{Extended_Pictographic}[\ufe0f\p{Emoji_Modifier}]{0,2}`
  const hidden = `(?:${invisible.source})`
  const kinds = [
    String.raw`\r\n`,
    String.raw`${emoji}(?:\u200d${emoji})+`,
    String.raw`(?<hidden>(?![\n\t])${hidden})`,
    String.raw`(?<space>(?![ \u3000])\p{Zs})`,
    String.raw`(?<gap>[ \t\n]{64,})`,
    String.raw`(?<word>(?:(?!${hidden})[\p{L}\p{M}\p{Nd}])+)`
  ]
  return new RegExp(kinds.join("|"), "gu")
})()

const marksOf = (
  piece: string,
  kind: Readonly<Record<string, string | undefined>>,
  native: ReadonlySet<Script>
): ReadonlyArray<SeenPart> | undefined => {
  const code = codeOf(piece)
  if (kind["hidden"] !== undefined) return [{ kind: "hidden", text: visible(piece), note: hiddenNote(piece, code) }]
  if (kind["space"] !== undefined) return [{ kind: "space", text: `\\u{${code}}`, note: `${named(code)}, a space` }]
  if (kind["gap"] !== undefined) {
    const note = `${piece.length} characters of white space`
    return [{ kind: "space", text: `‹${note}›`, note }]
  }
  return kind["word"] === undefined ? undefined : marksOfWord(piece, native)
}

const hiddenNote = (char: string, code: string): string => {
  if (/[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/.test(char)) return `${named(code)} changes the direction of text`
  return /\p{Cc}/u.test(char) ? `${named(code)}, a control character` : `${named(code)} is invisible`
}

const codeOf = (char: string): string => (char.codePointAt(0) ?? 0).toString(16)

const named = (code: string): string => `U+${code.toUpperCase().padStart(4, "0")}`

// ---------------------------------------------------------------- words

const scripts = {
  Cyrillic: /\p{Script=Cyrillic}/u,
  Greek: /\p{Script=Greek}/u,
  Armenian: /\p{Script=Armenian}/u,
  Cherokee: /\p{Script=Cherokee}/u,
  Coptic: /\p{Script=Coptic}/u,
  Lisu: /\p{Script=Lisu}/u
} as const

type Script = keyof typeof scripts

const latin = /\p{Script=Latin}/u

/** Letters of other scripts that fonts draw like Latin ones. Cherokee and Lisu are drawn like capitals as a whole. */
const imitating =
  /[АВЕЅІЈКМНОРСТУХҮԌԚԜаеорсухіјѕһԁԛԝӏүЬΑΒΕΖΗΙΚΜΝΟΡΤΥΧονρυικօոսհցզՏԼՕՍϲϳⲞⲟⲢⲣⲤⲥⲬⲭ\p{Script=Cherokee}\p{Script=Lisu}]/u

/** The script of a letter that imitates a Latin one. */
const scriptOf = (char: string): Script | undefined => {
  for (const name of Object.keys(scripts)) if (isScript(name) && scripts[name].test(char)) return name
  return undefined
}

const isScript = (name: string): name is Script => name in scripts

/** The scripts that a text is really written in: it has words in them that no Latin letters could spell. */
const scriptsWritten = (text: string): ReadonlySet<Script> => {
  const found = new Set<Script>()
  for (const [word] of text.matchAll(/\p{L}+/gu)) {
    if (latin.test(word)) continue
    for (const char of word) {
      const script = imitating.test(char) ? undefined : scriptOf(char)
      if (script !== undefined) found.add(script)
    }
  }
  return found
}

/** Letters, digits and letters with marks of a word: each is ordinary, or marked. */
const marksOfWord = (word: string, native: ReadonlySet<Script>): ReadonlyArray<SeenPart> | undefined => {
  if (/^[\x20-\x7e]*$/.test(word)) return undefined
  const hasLatin = latin.test(word)
  const isImitation = (char: string): boolean => {
    if (!imitating.test(char)) return false
    const script = scriptOf(char)
    return script !== undefined && (hasLatin || !native.has(script))
  }
  const parts: Array<SeenPart> = []
  let isMarked = false
  for (const [letter] of word.matchAll(/\P{M}\p{M}*|\p{M}+/gu)) {
    const mark = markOfLetter(letter, isImitation)
    isMarked ||= mark !== undefined
    parts.push(mark ?? letter)
  }
  return isMarked ? joined(parts) : undefined
}

const markOfLetter = (letter: string, isImitation: (char: string) => boolean): Mark | undefined => {
  const codes = Array.from(letter, (char) => named(codeOf(char))).join(" ")
  const mark = (note: string): Mark => ({ kind: "lookalike", text: `${letter}‹${codes}›`, note: `${codes} ${note}` })
  if (isImitation(letter[0] ?? "") || isImitation(letter)) return mark("looks like a Latin letter")
  if (styled.test(letter) && /^[0-9A-Za-z]$/.test(letter.normalize("NFKC"))) {
    return mark(`looks like ${letter.normalize("NFKC")}`)
  }
  return letter.normalize("NFC") === letter ? undefined : mark(`is spelled ${letter.normalize("NFC")} elsewhere`)
}

/** Letters and digits that may be another drawing of an ASCII one: mathematical, full width, digits of other styles. */
const styled = /^(?![ -~ªº])[\p{Lu}\p{Ll}\p{Lo}\p{Nd}]$/u

/** Joins ordinary parts that follow each other. */
const joined = (parts: ReadonlyArray<SeenPart>): ReadonlyArray<SeenPart> => {
  const all: Array<SeenPart> = []
  for (const part of parts) {
    const last = all.at(-1)
    if (typeof part === "string" && typeof last === "string") all[all.length - 1] = last + part
    else all.push(part)
  }
  return all
}
