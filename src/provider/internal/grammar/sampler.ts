/**
 * Draws texts from a grammar: every second one at random, the others along alternatives that were never taken, until
 * all have been.
 */

import type { Grammar, Node, Range } from "./productions.ts"
import { heightOf, heightsOf } from "./productions.ts"

// At this depth a text takes the shortest way to its end.
const maxDepth = 24
const maxLength = 400
const maxExtra = 3

/** A choice or a repetition, and how often each of its alternatives was taken. */
interface Fork {
  readonly rule: string
  readonly taken: Array<number>
}

/** Draws from one grammar, and remembers which of its alternatives were taken. */
export class Sampler {
  readonly #grammar: Grammar
  readonly #heights: ReadonlyMap<string, number>
  readonly #forks = new Map<Node, Fork>()
  #state: number
  /** The distance in rules to the nearest untaken alternative, or undefined once all were taken. */
  #distances: ReadonlyMap<Node | string, number> | undefined = new Map()
  #isAimed = false
  #hasNews = true
  #out: Array<string> = []
  #length = 0

  constructor(grammar: Grammar, seed: number) {
    this.#grammar = grammar
    this.#heights = heightsOf(grammar.rules)
    this.#state = seed >>> 0
    for (const [name, node] of grammar.rules) this.#note(node, name)
  }

  next(): string {
    if (this.#hasNews && this.#distances !== undefined) this.#measure()
    // Every second text aims for an untaken alternative.
    this.#isAimed = !this.#isAimed && this.#distances !== undefined
    this.#out = []
    this.#length = 0
    this.#rule(this.#grammar.root, 0)
    return this.#out.join("")
  }

  untaken(): ReadonlyArray<string> {
    return [...this.#forks.values()].flatMap(({ rule, taken }) =>
      taken.flatMap((count, index) => (count === 0 ? [`${rule}: ${index}`] : []))
    )
  }

  #note(node: Node, rule: string): void {
    if (node.kind === "choice" || node.kind === "sequence") for (const item of node.items) this.#note(item, rule)
    if (node.kind === "repeat") this.#note(node.item, rule)
    if (node.kind === "choice") this.#forks.set(node, { rule, taken: node.items.map(() => 0) })
    // Either the minimum or more.
    if (node.kind === "repeat" && node.max !== node.min) this.#forks.set(node, { rule, taken: [0, 0] })
  }

  #rule(name: string, depth: number): void {
    const node = this.#grammar.rules.get(name)
    if (node !== undefined) this.#draw(node, depth)
  }

  #draw(node: Node, depth: number): void {
    const isLate = depth > maxDepth || this.#length > maxLength
    switch (node.kind) {
      case "text":
        return this.#write(node.text)
      case "chars":
        return this.#write(this.#letter(node.ranges))
      case "rule":
        return this.#rule(node.name, depth + 1)
      case "sequence":
        for (const item of node.items) this.#draw(item, depth)
        return
      case "choice": {
        const index = isLate ? this.#shortest(node.items) : this.#pick(node)
        this.#take(node, index)
        const item = node.items[index]
        if (item !== undefined) this.#draw(item, depth)
        return
      }
      case "repeat": {
        const more = isLate || node.max === node.min ? 0 : this.#pick(node)
        this.#take(node, more)
        const room = Math.min((node.max ?? Infinity) - node.min, maxExtra)
        const count = node.min + (more === 0 ? 0 : 1 + this.#below(room))
        for (let index = 0; index < count; index++) this.#draw(node.item, depth)
      }
    }
  }

  #take(node: Node, index: number): void {
    const taken = this.#forks.get(node)?.taken
    if (taken === undefined) return
    if (taken[index] === 0) this.#hasNews = true
    taken[index] = (taken[index] ?? 0) + 1
  }

  /** Picks the way towards an untaken alternative, or a random one. */
  #pick(node: Extract<Node, { kind: "choice" | "repeat" }>): number {
    const taken = this.#forks.get(node)?.taken ?? []
    const distances = this.#isAimed ? this.#distances : undefined
    if (distances === undefined) return this.#below(taken.length)
    const fresh = taken.indexOf(0)
    if (fresh >= 0) return fresh
    if (node.kind === "repeat") return distances.has(node.item) ? 1 : this.#below(2)
    const ways = node.items.map((item) => distances.get(item) ?? Infinity)
    const nearest = Math.min(...ways)
    return nearest === Infinity ? this.#below(taken.length) : ways.indexOf(nearest)
  }

  #measure(): void {
    this.#hasNews = false
    const distances = new Map<Node | string, number>()
    const measure = (node: Node): number => {
      const isFresh = this.#forks.get(node)?.taken.includes(0) === true
      const inner =
        node.kind === "rule"
          ? 1 + (distances.get(node.name) ?? Infinity)
          : node.kind === "repeat"
            ? measure(node.item)
            : node.kind === "sequence" || node.kind === "choice"
              ? node.items.reduce((nearest, item) => Math.min(nearest, measure(item)), Infinity)
              : Infinity
      const distance = isFresh ? 0 : inner
      if (distance < Infinity) distances.set(node, distance)
      return distance
    }
    for (let changed = true; changed;) {
      changed = false
      for (const [name, node] of this.#grammar.rules) {
        const distance = measure(node)
        if (distance >= (distances.get(name) ?? Infinity)) continue
        distances.set(name, distance)
        changed = true
      }
    }
    this.#distances = distances.size === 0 ? undefined : distances
  }

  #shortest(items: ReadonlyArray<Node>): number {
    const heights = items.map((item) => heightOf(item, this.#heights))
    return heights.indexOf(Math.min(...heights))
  }

  #letter(ranges: ReadonlyArray<Range>): string {
    // Mostly printable ASCII, sometimes anything.
    const near = this.#below(8) === 0 ? [] : ranges.filter(([from]) => from < 0x7f)
    const [from, to] = (near.length > 0 ? near : ranges)[
      this.#below(near.length > 0 ? near.length : ranges.length)
    ] ?? [0x20, 0x20]
    const end = near.length > 0 ? Math.min(to, Math.max(from, 0x7e)) : to
    return String.fromCodePoint(from + this.#below(end - from + 1))
  }

  #write(text: string): void {
    this.#out.push(text)
    this.#length += text.length
  }

  /** Returns an integer from 0 to `bound`, exclusive (mulberry32). */
  #below(bound: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = this.#state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound)
  }
}
