/**
 * Productions of JSON strings: plain ones, bounded ones, and those of a pattern.
 *
 * A `<` is escaped wherever it could begin a tag, so no string can open or close the block that contains it.
 */

import type { Node as Pattern, Range } from "../../../kit/patternSyntax.ts"
import { parse } from "../../../kit/patternSyntax.ts"
import { chars, choice, empty, except, type Node, repeat, rule, type Rules, sequence, text } from "./productions.ts"

const quote = 0x22
const less = 0x3c
const backslash = 0x5c
const controls: Range = [0, 0x1f]
const one = (code: number): Range => [code, code]
/** Characters that a string must escape, or that are left out. */
export const special: ReadonlyArray<Range> = [controls, one(quote), one(less), one(backslash), one(0x7f)]
const hex = chars([0x30, 0x39], [0x41, 0x46], [0x61, 0x66])

/** Writes a value as JSON that opens no tag. */
export const literal = (value: unknown): string => JSON.stringify(value).replaceAll("<", "\\u003c")

/** Any string. */
export const any = (rules: Rules): Node => rules.shared("string", () => sequence(text('"'), rest(rules), text('"')))

/** Any text inside the quotes. A `<` is literal unless `/` or `b` follows, which begin a tag. */
export const rest = (rules: Rules): Node =>
  rules.shared("text", () =>
    choice(
      empty,
      sequence(chars(...except(...special)), rule("text")),
      sequence(escaped(rules), rule("text")),
      sequence(
        text("<"),
        rules.shared("after-less", () =>
          choice(
            empty,
            sequence(chars(...except(...special, one(0x2f), one(0x62))), rule("text")),
            sequence(escaped(rules), rule("text")),
            sequence(text("<"), rule("after-less"))
          )
        )
      )
    )
  )

const escaped = (rules: Rules): Node =>
  rules.shared("escape", () =>
    sequence(
      text("\\"),
      choice(
        chars(one(quote), one(backslash), one(0x2f), one(0x62), one(0x66), one(0x6e), one(0x72), one(0x74)),
        // Half of a surrogate pair is not a character.
        sequence(
          text("u"),
          choice(
            sequence(chars([0x30, 0x39], [0x41, 0x43], [0x61, 0x63], [0x45, 0x46], [0x65, 0x66]), hex, hex, hex),
            sequence(chars(one(0x44), one(0x64)), chars([0x30, 0x37]), hex, hex)
          )
        )
      )
    )
  )

/** One character of a string, escaped where necessary. */
const letter = (rules: Rules): Node =>
  rules.shared("letter", () => choice(chars(...except(...special)), escaped(rules)))

/** Strings with a limited number of characters. */
export const sized = (rules: Rules, min: number, max: number | undefined): Node => {
  if (min === 0 && max === undefined) return any(rules)
  const from = Math.min(min, maxCount)
  return max === undefined || max > maxCount
    ? sequence(text('"'), repeat(letter(rules), from, from), rest(rules), text('"'))
    : sequence(text('"'), repeat(letter(rules), from, max), text('"'))
}

/** Readers of grammars reject more than some thousand repetitions. */
const maxCount = 1_000

/** Strings that fit a pattern. Undefined if productions cannot express it. */
export const fitting = (rules: Rules, source: string): Node | undefined => {
  if (source.length > maxCount) return undefined
  try {
    return sequence(text('"'), whole(rules, parse(source)), text('"'))
  } catch {
    return undefined
  }
}

const whole = (rules: Rules, pattern: Pattern): Node => {
  if (pattern.kind === "choice") return choice(...pattern.items.map((item) => whole(rules, item)))
  const items = pattern.kind === "sequence" ? pattern.items : [pattern]
  const starts = isAssert(items[0], "start")
  const ends = isAssert(items.at(-1), "end")
  const inner = items.slice(starts ? 1 : 0, ends ? -1 : undefined)
  return sequence(
    starts ? empty : repeat(letter(rules), 0),
    ...inner.map((item) => part(item, 1)),
    ends ? empty : repeat(letter(rules), 0)
  )
}

const isAssert = (pattern: Pattern | undefined, what: "start" | "end") =>
  pattern?.kind === "assert" && pattern.what === what

const part = (pattern: Pattern, times: number): Node => {
  switch (pattern.kind) {
    case "chars":
      return written(pattern.ranges)
    case "assert":
      throw new Error("an assertion is not a character")
    case "sequence":
      return sequence(...pattern.items.map((item) => part(item, times)))
    case "choice":
      return choice(...pattern.items.map((item) => part(item, times)))
    case "repeat": {
      const count = times * Math.max(pattern.max ?? pattern.min, 1)
      if (count > maxCount) throw new Error("too many repetitions")
      return repeat(part(pattern.item, count), pattern.min, pattern.max)
    }
  }
}

/** Characters of a set, escaped where JSON requires it, without halves of surrogate pairs. */
const written = (ranges: ReadonlyArray<Range>): Node => {
  const has = (code: number) => ranges.some(([from, to]) => from <= code && code <= to)
  const outside = except(...ranges)
  const plain = except(...outside, ...special, [0x10000, 0x10ffff])
  const codes = [...Array.from({ length: 32 }, (_, code) => code), quote, less, backslash, 0x7f].filter(has)
  return choice(plain.length === 0 ? choice() : chars(...plain), ...codes.map((code) => text(escapeOf(code))))
}

const escapeOf = (code: number): string =>
  code === less || code === 0x7f ? `\\u00${code.toString(16)}` : JSON.stringify(String.fromCharCode(code)).slice(1, -1)
