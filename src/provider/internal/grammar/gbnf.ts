/**
 * Writes a grammar as GBNF, the format of llama.cpp, which vLLM also reads.
 *
 * Only syntax that all readers share is used: names of letters, digits and dashes, literals, character sets, groups and
 * repetitions. Anything but plain ASCII is written as a code, so no name or value can end its literal.
 */

import type { Grammar, Node, Range } from "./productions.ts"
import { empty, except } from "./productions.ts"

/** Writes a grammar. Its first rule is `root`, as readers require. */
export const render = ({ root, rules }: Grammar): string => {
  const lines: Array<string> = []
  const write = (name: string, node: Node) => lines.push(`${name} ::= ${alternatives(node)}`)
  const body = rules.get(root)
  if (body !== undefined) write("root", body)
  for (const [name, node] of rules) if (name !== root) write(name, node)
  return `${lines.join("\n")}\n`
}

/** Puts the empty text last, because not every reader accepts it earlier. */
const alternatives = (node: Node): string =>
  node.kind === "choice"
    ? node.items
        .toSorted((a, b) => Number(a === empty) - Number(b === empty))
        .map(sequence)
        .join(" | ")
    : sequence(node)

const sequence = (node: Node): string => (node.kind === "sequence" ? node.items.map(atom).join(" ") : atom(node))

const atom = (node: Node): string => {
  switch (node.kind) {
    case "text":
      return `"${Array.from(node.text, literal).join("")}"`
    case "chars":
      return set(node.ranges)
    case "rule":
      return node.name
    case "repeat":
      return `${atom(node.item)}${count(node.min, node.max)}`
    default:
      return `(${alternatives(node)})`
  }
}

const count = (min: number, max: number | undefined): string => {
  if (max === undefined) return min === 0 ? "*" : min === 1 ? "+" : `{${min},}`
  if (min === 0 && max === 1) return "?"
  return min === max ? `{${min}}` : `{${min},${max}}`
}

const set = (ranges: ReadonlyArray<Range>): string => {
  if (ranges.length === 1) return `[${members(ranges)}]`
  const others = except(...ranges)
  return others.length < ranges.length && others.length > 0 ? `[^${members(others)}]` : `[${members(ranges)}]`
}

const members = (ranges: ReadonlyArray<Range>): string =>
  ranges.map(([from, to]) => (from === to ? member(from) : `${member(from)}-${member(to)}`)).join("")

const member = (code: number): string => {
  const letter = String.fromCodePoint(code)
  return /[ -~]/.test(letter) && !/[[\]\\^"-]/.test(letter) ? letter : coded(code)
}

const literal = (letter: string): string => {
  if (letter === '"' || letter === "\\") return `\\${letter}`
  if (letter === "\n") return "\\n"
  return /[ -~]/.test(letter) ? letter : coded(letter.codePointAt(0) ?? 0)
}

const coded = (code: number): string => {
  const hex = code.toString(16).toUpperCase()
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`
}
