/**
 * Parses globs, and the subset of JavaScript's regular expressions that needs no backtracking.
 *
 * Expressions have the meaning of a `RegExp` without flags. Lookaround, backreferences, Unicode properties and invalid
 * expressions are rejected.
 */

/** Characters by their UTF-16 codes, both ends included. */
export type Range = readonly [from: number, to: number]

/** One node of a pattern. */
export type Node =
  | { readonly kind: "chars"; readonly ranges: ReadonlyArray<Range> }
  | { readonly kind: "assert"; readonly what: "start" | "end" | "word" | "inside" }
  | { readonly kind: "sequence"; readonly items: ReadonlyArray<Node> }
  | { readonly kind: "choice"; readonly items: readonly [Node, ...ReadonlyArray<Node>] }
  | { readonly kind: "repeat"; readonly item: Node; readonly min: number; readonly max: number | undefined }

const maxDepth = 50
const maxCount = 1_000
const last = 0xffff

/** Parses a regular expression. Throws an error with a sentence. */
export const parse = (source: string): Node => new Reader(source).whole()

/** Parses a glob for a whole name. Throws an error with a sentence. */
export const parseGlob = (source: string): Node => new GlobReader(source).whole()

const char = (code: number): Node => ({ kind: "chars", ranges: [[code, code]] })
const anything: Node = { kind: "chars", ranges: [[0, last]] }

/** Returns the characters that are in none of the ranges. */
const except = (ranges: ReadonlyArray<Range>): ReadonlyArray<Range> => {
  const rest: Array<Range> = []
  let from = 0
  for (const [a, b] of ranges.toSorted((x, y) => x[0] - y[0])) {
    if (a > from) rest.push([from, a - 1])
    from = Math.max(from, b + 1)
  }
  if (from <= last) rest.push([from, last])
  return rest
}

const digits: ReadonlyArray<Range> = [[0x30, 0x39]]
/** The characters of words: letters, digits and `_`. */
export const words: ReadonlyArray<Range> = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a]
]
const spaces: ReadonlyArray<Range> = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff]
]
const lineEnds: ReadonlyArray<Range> = [
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029]
]

const sets: ReadonlyMap<string, ReadonlyArray<Range>> = new Map([
  ["d", digits],
  ["D", except(digits)],
  ["w", words],
  ["W", except(words)],
  ["s", spaces],
  ["S", except(spaces)]
])

const controls: ReadonlyMap<string, number> = new Map([
  ["t", 9],
  ["n", 10],
  ["v", 11],
  ["f", 12],
  ["r", 13],
  ["0", 0]
])

/** A position in a pattern. */
class Cursor {
  readonly source: string
  at = 0

  constructor(source: string) {
    this.source = source
  }

  get isDone(): boolean {
    return this.at >= this.source.length
  }

  peek(): string {
    return this.source.charAt(this.at)
  }

  take(): string {
    return this.source.charAt(this.at++)
  }

  skip(text: string): boolean {
    if (!this.source.startsWith(text, this.at)) return false
    this.at += text.length
    return true
  }

  /** Consumes the match of an expression at this position. */
  read(what: RegExp): RegExpExecArray | null {
    what.lastIndex = this.at
    const found = what.exec(this.source)
    if (found !== null) this.at += found[0].length
    return found
  }

  refuse(what: string): never {
    throw new Error(`${what} at character ${this.at + 1} of the pattern`)
  }
}

class Reader extends Cursor {
  #depth = 0

  whole(): Node {
    const node = this.#choice()
    if (!this.isDone) this.refuse("unmatched ')'")
    return node
  }

  #choice(): Node {
    if (++this.#depth > maxDepth) this.refuse("groups nested too deeply")
    const first = this.#sequence()
    const items: [Node, ...Array<Node>] = [first]
    while (this.skip("|")) items.push(this.#sequence())
    this.#depth--
    return items.length === 1 ? first : { kind: "choice", items }
  }

  #sequence(): Node {
    const items: Array<Node> = []
    while (!this.isDone && this.peek() !== "|" && this.peek() !== ")") items.push(this.#repeated(this.#atom()))
    return { kind: "sequence", items }
  }

  #repeated(item: Node): Node {
    const count = this.#count()
    if (count === undefined) return item
    if (item.kind === "assert") this.refuse("nothing to repeat")
    // Greedy and lazy make no difference to whether a text matches.
    this.skip("?")
    return { kind: "repeat", item, min: count[0], max: count[1] }
  }

  #count(): readonly [number, number | undefined] | undefined {
    if (this.skip("*")) return [0, undefined]
    if (this.skip("+")) return [1, undefined]
    if (this.skip("?")) return [0, 1]
    const found = this.read(/\{(\d{1,9})(?:(,)(\d{1,9})?)?\}/y)
    if (found === null) return undefined
    const min = Number(found[1])
    const max = found[2] === undefined ? min : found[3] === undefined ? undefined : Number(found[3])
    if (max !== undefined && max < min) this.refuse("a minimum above its maximum")
    if (Math.max(min, max ?? 0) > maxCount) this.refuse(`more than ${maxCount} repetitions`)
    return [min, max]
  }

  #atom(): Node {
    const taken = this.take()
    switch (taken) {
      case "^":
        return { kind: "assert", what: "start" }
      case "$":
        return { kind: "assert", what: "end" }
      case ".":
        return { kind: "chars", ranges: except(lineEnds) }
      case "(":
        return this.#group()
      case "[":
        return this.#set()
      case "\\":
        return this.#escape()
      case "*":
      case "+":
      case "?":
        return this.refuse("nothing to repeat")
      case "{":
        // A brace without a count is literal.
        this.at--
        if (this.#count() !== undefined) this.refuse("nothing to repeat")
        this.at++
        return char(0x7b)
      default:
        return char(taken.charCodeAt(0))
    }
  }

  #group(): Node {
    if (this.peek() === "?" && !this.skip("?:") && this.read(/\?<[A-Za-z_$][\w$]*>/y) === null) {
      this.refuse("unsupported lookaround or flags")
    }
    const node = this.#choice()
    if (!this.skip(")")) this.refuse("unclosed '('")
    return node
  }

  #escape(): Node {
    if (this.skip("b")) return { kind: "assert", what: "word" }
    if (this.skip("B")) return { kind: "assert", what: "inside" }
    return { kind: "chars", ranges: this.#escaped() }
  }

  /** Returns the characters of an escape, behind its backslash. */
  #escaped(): ReadonlyArray<Range> {
    if (this.isDone) this.refuse("nothing to escape")
    const hex = this.read(/x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})/y)
    if (hex !== null) return one(Number.parseInt(hex[1] ?? hex[2] ?? "", 16))
    if (this.read(/0\d|[1-9kpPcux]/y) !== null) {
      this.at--
      this.refuse("unsupported backreference or escape")
    }
    const taken = this.take()
    const set = sets.get(taken)
    if (set !== undefined) return set
    return one(controls.get(taken) ?? taken.charCodeAt(0))
  }

  #set(): Node {
    const inverted = this.skip("^")
    const ranges: Array<Range> = []
    while (!this.skip("]")) {
      if (this.isDone) this.refuse("unclosed '['")
      const from = this.#member()
      if (this.peek() !== "-" || this.source.charAt(this.at + 1) === "]" || this.at + 1 >= this.source.length) {
        ranges.push(...from)
        continue
      }
      this.at++
      const to = this.#member()
      const [a, b] = [single(from), single(to)]
      // A set cannot end a range, so the dash is literal.
      if (a === undefined || b === undefined) ranges.push(...from, ...one(0x2d), ...to)
      else if (a > b) this.refuse("a range out of order")
      else ranges.push([a, b])
    }
    return { kind: "chars", ranges: inverted ? except(ranges) : ranges }
  }

  #member(): ReadonlyArray<Range> {
    if (!this.skip("\\")) return one(this.take().charCodeAt(0))
    return this.skip("b") ? one(8) : this.#escaped()
  }
}

class GlobReader extends Cursor {
  #depth = 0

  whole(): Node {
    return this.#sequence("")
  }

  #sequence(until: string): Node {
    const items: Array<Node> = []
    while (!this.isDone && (until === "" || !until.includes(this.peek()))) items.push(this.#item())
    return { kind: "sequence", items }
  }

  #item(): Node {
    const taken = this.take()
    switch (taken) {
      case "*":
        while (this.skip("*"));
        return { kind: "repeat", item: anything, min: 0, max: undefined }
      case "?":
        return anything
      case "[":
        return this.#set()
      case "{":
        return this.#choice()
      case "\\":
        return this.isDone ? this.refuse("nothing to escape") : char(this.take().charCodeAt(0))
      default:
        return char(taken.charCodeAt(0))
    }
  }

  #set(): Node {
    const inverted = this.skip("!") || this.skip("^")
    const ranges: Array<Range> = []
    do {
      if (this.isDone) this.refuse("unclosed '['")
      const from = this.take().charCodeAt(0)
      const to = this.read(/-([^\]])/y)?.[1]?.charCodeAt(0) ?? from
      if (from > to) this.refuse("a range out of order")
      ranges.push([from, to])
    } while (!this.skip("]"))
    return { kind: "chars", ranges: inverted ? except(ranges) : ranges }
  }

  #choice(): Node {
    if (++this.#depth > maxDepth) this.refuse("braces nested too deeply")
    const items: [Node, ...Array<Node>] = [this.#sequence(",}")]
    while (this.skip(",")) items.push(this.#sequence(",}"))
    if (!this.skip("}")) this.refuse("unclosed '{'")
    this.#depth--
    return { kind: "choice", items }
  }
}

const one = (code: number): ReadonlyArray<Range> => [[code, code]]

const single = (ranges: ReadonlyArray<Range>): number | undefined => {
  const [range, more] = ranges
  return range !== undefined && more === undefined && range[0] === range[1] ? range[0] : undefined
}
