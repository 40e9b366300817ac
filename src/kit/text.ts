/**
 * Texts: cutting, escaping, searching and building them.
 */

// ---------------------------------------------------------------- cutting

/** Returns the start of a text, at most `bytes` bytes of UTF-8, without splitting a character. */
export const cut = (text: string, bytes: number): string => {
  // A UTF-16 unit takes at most three bytes, so most texts need no measuring.
  if (text.length * 3 <= bytes) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.max(0, bytes)))
  return read === text.length ? text : text.slice(0, read)
}

/**
 * Joins the start of one text and the end of another, in at most `bytes` bytes of UTF-8, with a note between them of
 * how many of the `length` characters are left out. If the limit is too small for the note, returns only the start.
 */
export const ends = (head: string, tail: string, bytes: number, length: number): string => {
  const half = Math.floor((bytes - noteBytes) / 2)
  if (half < 1) return cut(head, bytes)
  const start = cut(head, half)
  const end = cutStart(tail, half)
  return `${start}\n[… ${length - start.length - end.length} characters left out …]\n${end}`
}

/** Returns a text of at most `bytes` bytes unchanged, and only head and tail of a longer one. */
export const clip = (text: string, bytes: number): string =>
  cut(text, bytes) === text ? text : ends(text, text, bytes, text.length)

// Bytes of the longest note, with its number.
const noteBytes = 64

/** Returns the end of a text, at most `bytes` bytes of UTF-8, without splitting a character. */
const cutStart = (text: string, bytes: number): string => {
  const raw = new TextEncoder().encode(text.slice(-bytes))
  let from = Math.max(0, raw.length - bytes)
  while (((raw[from] ?? 0) & 0xc0) === 0x80) from++
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(raw.subarray(from))
}

/** Returns the last character boundary of UTF-8 at or before an offset. */
export const boundary = (bytes: Uint8Array, offset: number): number => {
  let at = Math.min(offset, bytes.length)
  while (at > 0 && at < bytes.length && ((bytes[at] ?? 0) & 0xc0) === 0x80) at--
  return at
}

/** Returns the length of a text in UTF-8 bytes, without encoding it. */
export const utf8Length = (text: string): number => {
  let bytes = text.length
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (code < 0x80) continue
    bytes += code < 0x800 ? 1 : 2
    // The second half of a pair is counted with the first: four bytes for both.
    if (isHighSurrogate(code) && isLowSurrogate(text.charCodeAt(index + 1))) index++
  }
  return bytes
}

/** Returns a text of at most `length` UTF-16 units; a longer one is cut there, and `…` is appended. */
export const shorten = (text: string, length: number): string => {
  if (text.length <= length) return text
  const end = Math.max(0, length)
  return `${text.slice(0, isHighSurrogate(text.charCodeAt(end - 1)) ? end - 1 : end)}…`
}

/** Removes NUL, TAB, LF, VT, FF, CR and SPACE from both ends. Other Unicode spaces are kept. */
export const strip = (text: string): string => {
  let start = 0
  let end = text.length
  while (start < end && isStripped(text.charCodeAt(start))) start++
  while (end > start && isStripped(text.charCodeAt(end - 1))) end--
  return text.slice(start, end)
}

/** Returns a slice that does not keep a much larger text in memory. */
export const ownSlice = (text: string, start: number, end: number): string =>
  end - start < 16 || text.length < 16_384 || (end - start) * 2 > text.length
    ? text.slice(start, end)
    : [text.slice(start, start + 1), text.slice(start + 1, end)].join("")

// ---------------------------------------------------------------- characters

/** Returns whether a UTF-16 unit is white space inside a tag, which is less than `\s` matches. */
export const isSpace = (code: number): boolean => code === 32 || (code >= 9 && code <= 13)

/** Returns whether a UTF-16 unit is the first half of a surrogate pair. */
export const isHighSurrogate = (code: number): boolean => (code & 0xfc00) === 0xd800

const isLowSurrogate = (code: number): boolean => (code & 0xfc00) === 0xdc00

const isStripped = (code: number) => code === 0 || isSpace(code)

// ---------------------------------------------------------------- escaping

/** Escapes `&`, `<`, `>` and `"` as entities, for text between tags and in attributes. */
export const entities = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

/**
 * Replaces control and invisible characters by escapes such as `\u{202e}`, so that text from outside cannot move the
 * cursor, set a colour, reverse the direction or hide itself.
 */
export const visible = (text: string): string => text.replace(invisible, escapeCharacter)

/** Like `visible`, in one line. */
export const flat = (text: string): string => visible(text.replace(/(?:[ \t\n]|\r\n)+/g, " "))

/** Like `visible`, for a log: lines after the first are indented, so that none looks like a new entry. */
export const logText = (text: string): string =>
  text
    .split(/\r\n|[\n\r\u0085\u2028\u2029]/)
    .map(visible)
    .join("\n    ")

/** Quotes a text with double quotes, in one line, with invisible characters escaped. */
export const quote = (text: string): string => `"${visible(text.replace(/["\\]/g, (char) => `\\${char}`))}"`

const escapeCharacter = (char: string): string => {
  switch (char) {
    case "\n":
      return "\\n"
    case "\r":
      return "\\r"
    case "\t":
      return "\\t"
    default:
      return `\\u{${(char.codePointAt(0) ?? 0).toString(16)}}`
  }
}

/**
 * Matches a character that controls a terminal, moves others, or prints as nothing: controls, separators of lines and
 * paragraphs, lone surrogates, and everything that fonts ignore, such as zero-width characters, tags and fillers. A
 * variation selector right after an emoji is part of its drawing.
 */
export const invisible =
  /(?![\ufe0e\ufe0f])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Default_Ignorable_Code_Point}\u2800]|(?<![\p{Emoji}\p{Extended_Pictographic}])[\ufe0e\ufe0f]/gu

// ---------------------------------------------------------------- searching

/**
 * Returns the distinct search terms of a text, in order, at most `limit` of them.
 *
 * A term is a run of letters, digits and marks, normalized (NFKC) and in lower case. Scripts without spaces give one
 * term per character, so that part of a sentence can be found. Terms longer than 64 UTF-16 units are left out.
 */
export const wordsOf = (text: string, limit = Infinity): ReadonlyArray<string> => {
  const found = new Set<string>()
  for (const [match] of text.normalize("NFKC").toLowerCase().matchAll(word)) {
    if (found.size >= limit) break
    if (match.length <= longestWord) found.add(match)
  }
  return [...found]
}

const word =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]\p{M}*|(?:(?![\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}])[\p{L}\p{N}]\p{M}*)+/gu

const longestWord = 64

// ---------------------------------------------------------------- building

/**
 * Builds a text from many small pieces, using a small multiple of its length in memory.
 *
 * A string grown by `+=` takes several times its length until it is flattened. Here small pieces are joined a few at a
 * time.
 */
export class Pieces {
  private whole = ""
  private half = ""
  private run = ""
  private size = 0
  private count = 0

  /** Appends a piece of `size` UTF-16 units. */
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
      // For pieces this long, joining saves nothing over `+=`.
      this.whole += this.run
    }
    this.run = ""
    this.size = 0
    this.count = 0
  }

  /** Returns the text of all pieces, and keeps them. */
  peek(): string {
    return this.whole + this.half + this.run
  }

  /** Returns the text of all pieces followed by `last`, and starts over. */
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

/** Returns the lines of a text that are not blank, with their numbers from 1. */
export const numberedLines = (text: string): ReadonlyArray<{ readonly line: string; readonly number: number }> =>
  text.split("\n").flatMap((line, index) => (line.trim() === "" ? [] : [{ line, number: index + 1 }]))

/** Returns code without the fence of Markdown that models like to write around it. */
export const unfenced = (code: string): string => /^\s*```\w*\n([\s\S]*?)\n?```\s*$/.exec(code)?.[1] ?? code
