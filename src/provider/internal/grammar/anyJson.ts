/**
 * Productions of JSON without a schema: any value, any object, any key except some.
 */

import * as Numbers from "./numberRules.ts"
import type { Node, Range, Rules } from "./productions.ts"
import { chars, choice, empty, except, never, optional, repeat, sequence, text } from "./productions.ts"
import * as Strings from "./stringRules.ts"

/** The depth to which a grammar follows a schema, and the length to which a key differs from excluded names. */
export const maxDepth = 40

/** White space between tokens. Kept short, since small models otherwise write nothing else. */
export const blank = (rules: Rules): Node =>
  rules.shared("space", () => optional(choice(text(" "), sequence(text("\n"), repeat(text(" "), 0, 8)))))

/** Any value. */
export const anyValue = (rules: Rules): Node => rules.shared("value", () => anyBut(rules, []))

/** Any value except those of some types. */
export const anyBut = (rules: Rules, types: ReadonlyArray<unknown>): Node => {
  const unless = (type: string, node: () => Node) => (types.includes(type) ? never : node())
  return choice(
    unless("string", () => Strings.any(rules)),
    types.includes("number") || types.includes("integer") ? never : rules.shared("number", () => Numbers.numbers({})),
    unless("boolean", () => choice(text("true"), text("false"))),
    unless("null", () => text("null")),
    unless("array", () => rules.shared("list", () => enclosed(rules, "[", "]", anyValue(rules)))),
    unless("object", () => anyObject(rules))
  )
}

/** Any object. */
export const anyObject = (rules: Rules): Node =>
  rules.shared("object", () =>
    enclosed(rules, "{", "}", sequence(Strings.any(rules), text(":"), blank(rules), anyValue(rules)))
  )

const enclosed = (rules: Rules, open: string, close: string, item: Node): Node =>
  sequence(
    text(open),
    blank(rules),
    optional(sequence(item, repeat(sequence(text(","), blank(rules), item), 0))),
    blank(rules),
    text(close)
  )

/** Keys other than these names, as a tree of letters. */
export const keyExcept = (rules: Rules, names: ReadonlyArray<string>, name: string): Node => {
  if (names.length === 0) return Strings.any(rules)
  // A name with an escape can be spelled in many ways, so no key begins like it and continues with an escape.
  const remainders = names.map((name): Remainder => {
    const plain = name.replace(/["\\<\p{Cc}\p{Cs}].*$/su, "")
    return { rest: plain, isWhole: plain === name }
  })
  const branch = (remainders: ReadonlyArray<Remainder>, path: string, depth: number): Node => {
    const end = remainders.some(({ isWhole, rest }) => isWhole && rest === "") ? never : empty
    // No key begins like a name this long.
    if (depth > maxDepth || !rules.spend()) return end
    const letters = [...new Set(remainders.flatMap(({ rest }) => Array.from(rest)[0] ?? []))]
    const codes = letters.map((letter): Range => [letter.codePointAt(0) ?? 0, letter.codePointAt(0) ?? 0])
    const free = chars(...except(...Strings.special, ...codes))
    const after = (letter: string) =>
      remainders.flatMap(({ isWhole, rest }) =>
        rest.startsWith(letter) ? [{ rest: rest.slice(letter.length), isWhole }] : []
      )
    return rules.add(
      path,
      choice(
        end,
        sequence(free, Strings.rest(rules)),
        ...letters.map((letter) => sequence(text(letter), branch(after(letter), path, depth + 1)))
      )
    )
  }
  return sequence(text('"'), branch(remainders, `${name}-key`, 0), text('"'))
}

/** The rest of an excluded name. */
interface Remainder {
  readonly rest: string
  readonly isWhole: boolean
}
