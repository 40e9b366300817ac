/**
 * Globs and regular expressions from configs, matched in linear time.
 *
 * A glob, or a regular expression without lookaround and backreferences, is compiled into a table of states. Matching
 * is one lookup per character, so no text can make it slow. An expression whose table would be too large is rejected
 * when it is compiled. Otherwise it matches like a JavaScript `RegExp` without flags.
 */

import * as Result from "effect/Result"
import { type Node, parse, parseGlob, type Range, words } from "./patternSyntax.ts"

/** Returns whether a text matches. */
export type Matcher = (text: string) => boolean

/** The cost allowed for one pattern, or for several compiled together. */
export interface Budget {
  /** Steps left for building tables. */
  steps: number
}

/** Creates a budget that is enough for hundreds of ordinary patterns. */
export const budget = (): Budget => ({ steps: 2_000_000 })

const maxLength = 1_000
const maxNodes = 4_000
const maxStates = 4_000

/** Compiles an expression that may match anywhere in a text. Fails with a sentence. */
export const regex = (source: string, spend: Budget = budget()): Result.Result<Matcher, string> =>
  attempt(source, () => compile(parse(source), false, spend))

/** Compiles a glob for a whole name: `*`, `?`, `[a-z]` and `{a,b}`. Fails with a sentence. */
export const glob = (source: string, spend: Budget = budget()): Result.Result<Matcher, string> =>
  attempt(source, () => compile(parseGlob(source), true, spend))

const attempt = (source: string, make: () => Matcher): Result.Result<Matcher, string> =>
  source.length > maxLength
    ? Result.fail(`the pattern is longer than ${maxLength} characters`)
    : Result.try({ try: make, catch: (cause) => (cause instanceof Error ? cause.message : String(cause)) })

const take = (spend: Budget): void => {
  if (--spend.steps < 0) throw new Error("the pattern is too complex")
}

// ---------------------------------------------------------------- a graph of states

/** One state of the graph. */
type State =
  | { readonly kind: "take"; readonly classes: ReadonlySet<number>; next: number }
  | { readonly kind: "fork"; next: number; other: number }
  | { readonly kind: "assert"; readonly what: "start" | "end" | "word" | "inside"; next: number }
  | { readonly kind: "match" }

class Graph {
  readonly states: Array<State> = [{ kind: "match" }]
  readonly #classesOf: (ranges: ReadonlyArray<Range>) => ReadonlySet<number>
  readonly #spend: Budget

  constructor(classesOf: (ranges: ReadonlyArray<Range>) => ReadonlySet<number>, spend: Budget) {
    this.#classesOf = classesOf
    this.#spend = spend
  }

  /** Builds a node that continues at `next`. Returns its first state. */
  build(node: Node, next: number): number {
    take(this.#spend)
    switch (node.kind) {
      case "chars":
        return this.#add({ kind: "take", classes: this.#classesOf(node.ranges), next })
      case "assert":
        return this.#add({ kind: "assert", what: node.what, next })
      case "sequence":
        return node.items.reduceRight((end, item) => this.build(item, end), next)
      case "choice":
        return node.items
          .map((item) => this.build(item, next))
          .reduceRight((other, first) => this.#add({ kind: "fork", next: first, other }))
      case "repeat":
        return this.#repeat(node, next)
    }
  }

  #repeat(node: Extract<Node, { kind: "repeat" }>, next: number): number {
    let end = next
    if (node.max === undefined) {
      const loop: State = { kind: "fork", next: 0, other: next }
      end = this.#add(loop)
      loop.next = this.build(node.item, end)
    } else {
      for (let extra = node.min; extra < node.max; extra++) {
        end = this.#add({ kind: "fork", next: this.build(node.item, end), other: next })
      }
    }
    for (let count = 0; count < node.min; count++) end = this.build(node.item, end)
    return end
  }

  #add(state: State): number {
    if (this.states.length >= maxNodes) throw new Error("the pattern is too large")
    this.states.push(state)
    return this.states.length - 1
  }
}

// ---------------------------------------------------------------- classes of characters

/** The classes of characters that a pattern does not distinguish. */
interface Alphabet {
  readonly size: number
  readonly classOf: (code: number) => number
  readonly classesOf: (ranges: ReadonlyArray<Range>) => ReadonlySet<number>
  readonly isWord: (index: number) => boolean
}

const alphabetOf = (node: Node): Alphabet => {
  const cuts = new Set<number>([0])
  const cut = (ranges: ReadonlyArray<Range>) => {
    for (const [from, to] of ranges) {
      cuts.add(from)
      cuts.add(to + 1)
    }
  }
  let asksForWords = false
  const visit = (node: Node): void => {
    if (node.kind === "chars") cut(node.ranges)
    else if (node.kind === "assert") asksForWords ||= node.what === "word" || node.what === "inside"
    else if (node.kind === "repeat") visit(node.item)
    else node.items.forEach(visit)
  }
  visit(node)
  if (asksForWords) cut(words)
  const starts = [...cuts].filter((start) => start <= 0xffff).toSorted((a, b) => a - b)
  // Classes are the ranges between two starts.
  const table = new Uint16Array(128)
  const find = (code: number): number => {
    let low = 0
    let high = starts.length - 1
    while (low < high) {
      const middle = (low + high + 1) >> 1
      if ((starts[middle] ?? 0) <= code) low = middle
      else high = middle - 1
    }
    return low
  }
  for (let code = 0; code < 128; code++) table[code] = find(code)
  return {
    size: starts.length,
    classOf: (code) => (code < 128 ? (table[code] ?? 0) : find(code)),
    classesOf: (ranges) =>
      new Set(starts.flatMap((start, index) => (ranges.some(([a, b]) => a <= start && start <= b) ? [index] : []))),
    isWord: (index) => words.some(([a, b]) => a <= (starts[index] ?? 0) && (starts[index] ?? 0) <= b)
  }
}

// ---------------------------------------------------------------- the table

/** The kind of character before a position, as far as assertions depend on it. */
type Before = "start" | "word" | "other"

const dead = -1
const matched = -2

/** Compiles the graph into a complete table of sets of states. */
const compile = (node: Node, whole: boolean, spend: Budget): Matcher => {
  const alphabet = alphabetOf(node)
  const rows = new Table(node, alphabet, whole, spend).rows()
  return (text) => {
    let row = rows[0]
    for (let index = 0; index < text.length && row !== undefined; index++) {
      const next = row[alphabet.classOf(text.charCodeAt(index))] ?? dead
      if (next < 0) return next === matched
      row = rows[next]
    }
    return row?.[alphabet.size] === matched
  }
}

/** The states a matcher may be in at one position, before assertions are followed. */
interface Position {
  readonly kernel: ReadonlyArray<number>
  readonly before: Before
}

/** Builds the table: a row per position, with an entry per class of the next character and one for the end of the text. */
class Table {
  readonly #alphabet: Alphabet
  readonly #whole: boolean
  readonly #spend: Budget
  readonly #states: ReadonlyArray<State>
  readonly #first: number
  readonly #usesWords: boolean
  readonly #known = new Map<string, number>()
  readonly #positions: Array<Position> = []

  constructor(node: Node, alphabet: Alphabet, whole: boolean, spend: Budget) {
    const graph = new Graph(alphabet.classesOf, spend)
    this.#alphabet = alphabet
    this.#whole = whole
    this.#spend = spend
    this.#first = graph.build(whole ? { kind: "sequence", items: [atStart, node, atEnd] } : node, 0)
    this.#states = graph.states
    this.#usesWords = graph.states.some(
      (state) => state.kind === "assert" && (state.what === "word" || state.what === "inside")
    )
  }

  rows(): ReadonlyArray<Int16Array> {
    const rows: Array<Int16Array> = []
    this.#idOf([this.#first], "start")
    // The list of positions grows while their rows are built.
    for (const position of this.#positions) {
      const row = new Int16Array(this.#alphabet.size + 1)
      for (let after = 0; after < row.length; after++) row[after] = this.#entry(position, after)
      rows.push(row)
    }
    return rows
  }

  #entry({ before, kernel }: Position, after: number): number {
    const reached = this.#closure(kernel, before, after)
    if (reached.has(0)) return matched
    if (after === this.#alphabet.size) return dead
    const next = new Set<number>(this.#whole ? [] : [this.#first])
    for (const index of reached) {
      const state = this.#states[index]
      if (state?.kind === "take" && state.classes.has(after)) next.add(state.next)
    }
    if (next.size === 0) return dead
    const sorted = [...next].toSorted((a, b) => a - b)
    return this.#idOf(sorted, this.#usesWords && this.#alphabet.isWord(after) ? "word" : "other")
  }

  /** Returns the states reachable without consuming a character, given the characters on both sides. */
  #closure(kernel: ReadonlyArray<number>, before: Before, after: number): Set<number> {
    const seen = new Set<number>()
    const left = kernel.slice()
    const isEnd = after === this.#alphabet.size
    const isAfterWord = !isEnd && this.#alphabet.isWord(after)
    for (let index = left.pop(); index !== undefined; index = left.pop()) {
      take(this.#spend)
      if (seen.has(index)) continue
      seen.add(index)
      const state = this.#states[index]
      if (state?.kind === "fork") left.push(state.next, state.other)
      else if (state?.kind === "assert" && holds(state.what, before, isEnd, isAfterWord)) left.push(state.next)
    }
    return seen
  }

  #idOf(kernel: ReadonlyArray<number>, before: Before): number {
    const key = `${before}:${kernel.join()}`
    const id = this.#known.get(key)
    if (id !== undefined) return id
    if (this.#positions.length >= maxStates) throw new Error("the pattern is too complex")
    this.#known.set(key, this.#positions.length)
    return this.#positions.push({ kernel, before }) - 1
  }
}

const atStart: Node = { kind: "assert", what: "start" }
const atEnd: Node = { kind: "assert", what: "end" }

const holds = (
  what: "start" | "end" | "word" | "inside",
  before: Before,
  isEnd: boolean,
  isAfterWord: boolean
): boolean => {
  switch (what) {
    case "start":
      return before === "start"
    case "end":
      return isEnd
    case "word":
      return (before === "word") !== isAfterWord
    case "inside":
      return (before === "word") === isAfterWord
  }
}
