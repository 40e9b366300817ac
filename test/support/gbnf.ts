/**
 * A reader of GBNF, written from its description and not from what writes it: it reads a grammar as llama.cpp does,
 * and tells whether a text fits by following every way at once.
 */

/** What a rule asks for next: a set of characters, or another rule. */
type Item =
  | {
      readonly kind: "set"
      readonly ranges: ReadonlyArray<readonly [from: number, to: number]>
      readonly inverted: boolean
    }
  | { readonly kind: "rule"; readonly name: string }

type Sequence = ReadonlyArray<Item>

/** A grammar that was read: alternatives by rule. */
export interface Gbnf {
  readonly rules: ReadonlyMap<string, ReadonlyArray<Sequence>>
}

/** Reads a grammar; throws a sentence where llama.cpp would refuse it. */
export const read = (source: string): Gbnf => new Reader(source).all()

const isWord = (letter: string) => /[A-Za-z0-9-]/.test(letter)

class Reader {
  readonly #source: string
  readonly #rules = new Map<string, ReadonlyArray<Sequence>>()
  #at = 0
  #made = 0

  constructor(source: string) {
    this.#source = source
  }

  all(): Gbnf {
    this.#space(true)
    while (this.#at < this.#source.length) this.#rule()
    for (const [name, alternatives] of this.#rules) {
      for (const item of alternatives.flat()) {
        if (item.kind === "rule" && !this.#rules.has(item.name))
          throw new Error(`${name} uses ${item.name}, which is nowhere`)
      }
    }
    if (!this.#rules.has("root")) throw new Error("there is no root")
    return { rules: this.#rules }
  }

  #peek(): string {
    return this.#source.charAt(this.#at)
  }

  #refuse(what: string): never {
    throw new Error(`${what} at ${JSON.stringify(this.#source.slice(this.#at, this.#at + 40))}`)
  }

  #space(lines: boolean): void {
    for (;;) {
      const next = this.#peek()
      if (next === "#") while (this.#at < this.#source.length && this.#peek() !== "\n") this.#at++
      else if (next === " " || next === "\t" || (lines && (next === "\n" || next === "\r"))) this.#at++
      else return
    }
  }

  #name(): string {
    const from = this.#at
    while (this.#peek() !== "" && isWord(this.#peek())) this.#at++
    return from === this.#at ? this.#refuse("no name") : this.#source.slice(from, this.#at)
  }

  #rule(): void {
    const name = this.#name()
    this.#space(false)
    if (!this.#source.startsWith("::=", this.#at)) this.#refuse("no ::=")
    this.#at += 3
    this.#space(true)
    if (this.#rules.has(name)) this.#refuse(`a second rule ${name}`)
    this.#rules.set(name, this.#alternatives(name, false))
    if (this.#peek() !== "" && this.#peek() !== "\n") this.#refuse("no end of the rule")
    this.#space(true)
  }

  #alternatives(name: string, nested: boolean): ReadonlyArray<Sequence> {
    const found = [this.#sequence(name, nested)]
    while (this.#peek() === "|") {
      this.#at++
      this.#space(true)
      found.push(this.#sequence(name, nested))
    }
    return found
  }

  #sequence(name: string, nested: boolean): Sequence {
    const items: Array<Item> = []
    let last: Array<Item> = []
    for (;;) {
      const next = this.#peek()
      if (next === '"') last = this.#literal()
      else if (next === "[") last = [this.#set()]
      else if (next === "(") {
        this.#at++
        this.#space(true)
        last = [this.#synthetic(name, this.#alternatives(name, true))]
        if (this.#peek() !== ")") this.#refuse("no ')'")
        this.#at++
      } else if (next !== "" && isWord(next)) last = [{ kind: "rule", name: this.#name() }]
      else {
        return items
      }
      this.#space(nested)
      items.push(...this.#repeated(name, last, nested))
    }
  }

  #synthetic(name: string, alternatives: ReadonlyArray<Sequence>): Item {
    const made = `${name}_${++this.#made}`
    this.#rules.set(made, alternatives)
    return { kind: "rule", name: made }
  }

  #repeated(name: string, item: Array<Item>, nested: boolean): Sequence {
    const next = this.#peek()
    if (next !== "*" && next !== "+" && next !== "?" && next !== "{") return item
    if (item.length === 0) this.#refuse("nothing to repeat")
    let [min, max]: [number, number | undefined] =
      next === "+" ? [1, undefined] : next === "?" ? [0, 1] : [0, undefined]
    this.#at++
    if (next === "{") {
      const found = /^(\d+)(?:(,)(\d+)?)?\}/.exec(this.#source.slice(this.#at, this.#at + 20))
      if (found === null) return this.#refuse("no count")
      this.#at += found[0].length
      min = Number(found[1])
      max = found[2] === undefined ? min : found[3] === undefined ? undefined : Number(found[3])
      if (Math.max(min, max ?? 0) >= 2_000) this.#refuse("too many repetitions")
    }
    this.#space(nested)
    const repeated: Array<Item> = []
    for (let count = 0; count < min; count++) repeated.push(...item)
    if (max === undefined) {
      const loop = `${name}_${++this.#made}`
      this.#rules.set(loop, [[...item, { kind: "rule", name: loop }], []])
      return [...repeated, { kind: "rule", name: loop }]
    }
    let rest: Sequence = []
    for (let count = min; count < max; count++) rest = [this.#synthetic(name, [[...item, ...rest], []])]
    return [...repeated, ...rest]
  }

  #literal(): Array<Item> {
    this.#at++
    const items: Array<Item> = []
    while (this.#peek() !== '"') {
      const code = this.#char()
      items.push({ kind: "set", ranges: [[code, code]], inverted: false })
    }
    this.#at++
    return items
  }

  #set(): Item {
    this.#at++
    const inverted = this.#peek() === "^"
    if (inverted) this.#at++
    const ranges: Array<readonly [number, number]> = []
    while (this.#peek() !== "]") {
      const from = this.#char()
      if (this.#peek() === "-" && this.#source.charAt(this.#at + 1) !== "]") {
        this.#at++
        ranges.push([from, this.#char()])
      } else ranges.push([from, from])
    }
    this.#at++
    return { kind: "set", ranges, inverted }
  }

  #char(): number {
    if (this.#at >= this.#source.length) this.#refuse("it ends too early")
    if (this.#peek() !== "\\") {
      const code = this.#source.codePointAt(this.#at) ?? 0
      this.#at += code > 0xffff ? 2 : 1
      return code
    }
    const letter = this.#source.charAt(this.#at + 1)
    const digits = letter === "x" ? 2 : letter === "u" ? 4 : letter === "U" ? 8 : 0
    if (digits > 0) {
      const hex = this.#source.slice(this.#at + 2, this.#at + 2 + digits)
      if (!/^[0-9A-Fa-f]+$/.test(hex) || hex.length < digits) this.#refuse("no code")
      this.#at += 2 + digits
      return Number.parseInt(hex, 16)
    }
    this.#at += 2
    const known = new Map([
      ["t", 9],
      ["r", 13],
      ["n", 10]
    ])
    if ('\\"[]-'.includes(letter)) return letter.charCodeAt(0)
    return known.get(letter) ?? this.#refuse("an unknown escape")
  }
}

// ---------------------------------------------------------------- matching

/** What is still to come: the rest of a sequence, and what follows it. Equal ones are one value. */
interface Stack {
  readonly id: number
  readonly items: Sequence
  readonly at: number
  readonly below: Stack | undefined
  /** The ways it can go on with a character. `true` stands for the end of the text. */
  tops: ReadonlyArray<Stack | true> | undefined
}

/** Tells whether texts fit a grammar. */
export const matcher = ({ rules }: Gbnf): ((text: string) => boolean) => {
  const known = new Map<number, Map<Sequence, Array<Stack | undefined>>>()
  let made = 0
  const stack = (items: Sequence, at: number, below: Stack | undefined): Stack | undefined => {
    // What is done needs no place: loops do not grow.
    if (at === items.length) return below
    const under = below?.id ?? -1
    let bySequence = known.get(under)
    if (bySequence === undefined) known.set(under, (bySequence = new Map()))
    let byPlace = bySequence.get(items)
    if (byPlace === undefined) bySequence.set(items, (byPlace = []))
    return (byPlace[at] ??= { id: made++, items, at, below, tops: undefined })
  }

  const topsOf = (start: Stack): ReadonlyArray<Stack | true> => {
    if (start.tops !== undefined) return start.tops
    const tops: Array<Stack | true> = []
    const seen = new Set<Stack>([start])
    const left: Array<Stack> = [start]
    for (let here = left.pop(); here !== undefined; here = left.pop()) {
      const item = here.items[here.at]
      if (item?.kind !== "rule") {
        tops.push(here)
        continue
      }
      const below = stack(here.items, here.at + 1, here.below)
      for (const sequence of rules.get(item.name) ?? []) {
        const next = stack(sequence, 0, below)
        if (next === undefined) tops.push(true)
        else if (!seen.has(next)) {
          seen.add(next)
          left.push(next)
        }
      }
    }
    start.tops = tops
    return tops
  }

  const fits = (item: Item | undefined, code: number): boolean =>
    item?.kind === "set" && item.ranges.some(([from, to]) => from <= code && code <= to) !== item.inverted

  const root: Sequence = [{ kind: "rule", name: "root" }]
  return (text) => {
    let states: ReadonlySet<Stack | true> = new Set(topsOf(stack(root, 0, undefined) ?? never()))
    for (const letter of text) {
      const code = letter.codePointAt(0) ?? 0
      const next = new Set<Stack | true>()
      for (const here of states) {
        if (here === true || !fits(here.items[here.at], code)) continue
        const after = stack(here.items, here.at + 1, here.below)
        if (after === undefined) next.add(true)
        else for (const top of topsOf(after)) next.add(top)
      }
      states = next
      if (states.size === 0) return false
    }
    return states.has(true)
  }
}

const never = (): never => {
  throw new Error("an empty root")
}
