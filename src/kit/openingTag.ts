/**
 * Recognises one opening tag that arrives in pieces.
 *
 * `begin` tries to read a tag at a `<`, `advance` continues in the next piece. Both return the index behind the tag,
 * REFUSED, or UNDECIDED if the piece ended first. No character is read twice.
 */

import { isSpace } from "./text.ts"

// Called without a method lookup, for the reason given in `blockFold.ts`.
const { charCodeAt, indexOf } = String.prototype

/** Not an opening tag. */
export const REFUSED = -1

/** The piece ended inside the tag. */
export const UNDECIDED = -2

const LITERAL = 0
const GAP = 1
const VALUE = 2

const GREATER = 62
const LETTER_N = 110
const LETTER_T = 116

/** The parts of a tag in order: its word, the type (canonical form only), the name. */
const WORD = 0
const TYPE = 1
const NAME = 2
const END = 3

/** The word that starts a tag: `block`, or the core type of a shorthand tag. */
interface Word {
  readonly text: string
  readonly codes: ReadonlyArray<number>
  readonly closing: string
}

/** The tag being read: its word, and the positions of its values. */
export class OpeningTag {
  /** Known once the first letter has been read. */
  word: Word = nothing
  /** Positions of the values, counted from the `<`. An end of -1 means there is no such value. */
  typeFrom = 0
  typeTo = -1
  nameFrom = 0
  nameTo = -1

  private readonly bound: number
  private mode: typeof LITERAL | typeof GAP | typeof VALUE = LITERAL
  /** In a gap, the part that may come next; otherwise the current part. */
  private part: typeof WORD | typeof TYPE | typeof NAME | typeof END = WORD
  private literal: ReadonlyArray<number> = nothing.codes
  private matched = 0
  private spaced = false
  private size = 0

  constructor(bound: number) {
    this.bound = bound
  }

  /** Tries to read a tag that starts with the `<` at this index. */
  begin(text: string, at: number): number {
    const known = at + 1 < text.length
    const word = known ? wordOf(charCodeAt.call(text, at + 1)) : nothing
    if (known && word === nothing) return REFUSED
    this.word = word
    this.literal = word.codes
    this.mode = LITERAL
    this.part = WORD
    this.matched = 0
    this.typeTo = -1
    this.nameTo = -1
    this.size = 1
    return this.advance(text, at + 1)
  }

  /** Continues at this index of the next piece. */
  advance(text: string, from: number): number {
    const end = text.length
    const before = this.size - from
    let { literal, matched, mode, part, spaced } = this
    let i = from
    while (i < end) {
      if (mode === LITERAL) {
        if (literal.length === 0) {
          this.word = wordOf(charCodeAt.call(text, i))
          literal = this.word.codes
          if (literal.length === 0) return REFUSED
        }
        while (matched < literal.length && i < end) {
          if (charCodeAt.call(text, i++) !== literal[matched++]) return REFUSED
        }
        if (matched < literal.length) break
        if (part === WORD) {
          mode = GAP
          part = this.word === block ? TYPE : NAME
          spaced = false
        } else {
          mode = VALUE
          if (part === TYPE) this.typeFrom = before + i
          else this.nameFrom = before + i
        }
      } else if (mode === GAP) {
        const code = charCodeAt.call(text, i++)
        if (isSpace(code)) {
          spaced = true
        } else if (code === GREATER) {
          return part === TYPE || before + i > this.bound ? REFUSED : i
        } else {
          if (spaced && part === TYPE && code === LETTER_T) literal = typeIs
          else if (spaced && part === NAME && code === LETTER_N) literal = nameIs
          else return REFUSED
          matched = 1
          mode = LITERAL
        }
      } else {
        const quote = indexOf.call(text, '"', i)
        if (quote < 0) break
        if (part === TYPE) this.typeTo = before + quote
        else this.nameTo = before + quote
        if (this.typeTo === this.typeFrom) return REFUSED
        part = part === TYPE ? NAME : END
        mode = GAP
        spaced = false
        i = quote + 1
      }
    }
    this.size = before + end
    this.literal = literal
    this.matched = matched
    this.mode = mode
    this.part = part
    this.spaced = spaced
    return this.size < this.bound ? UNDECIDED : REFUSED
  }
}

const codes = (text: string): ReadonlyArray<number> => Array.from(text, (letter) => letter.charCodeAt(0))
const word = (text: string): Word => ({ text, codes: codes(text), closing: `</${text}>` })

const typeIs = codes('type="')
const nameIs = codes('name="')
const nothing = word("")
const block = word("block")
const command = word("command")
const json = word("json")
const final = word("final")
const plan = word("plan")
const result = word("result")
const error = word("error")

/** Returns the only word of a tag that can start with this letter. */
const wordOf = (letter: number): Word => {
  switch (letter) {
    case 98:
      return block
    case 99:
      return command
    case 101:
      return error
    case 102:
      return final
    case 106:
      return json
    case 112:
      return plan
    case 114:
      return result
    default:
      return nothing
  }
}
