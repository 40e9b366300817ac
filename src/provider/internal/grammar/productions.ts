/**
 * Productions of a grammar, to be written or sampled.
 *
 * Characters are Unicode scalar values. A choice without members matches nothing. Rules that can never be completed are
 * pruned, so every remaining rule has a shortest text.
 */

/** Characters by their code points, both ends included. */
export type Range = readonly [from: number, to: number]

/** One node of a production. */
export type Node =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "chars"; readonly ranges: ReadonlyArray<Range> }
  | { readonly kind: "rule"; readonly name: string }
  | { readonly kind: "sequence"; readonly items: ReadonlyArray<Node> }
  | { readonly kind: "choice"; readonly items: ReadonlyArray<Node> }
  | { readonly kind: "repeat"; readonly item: Node; readonly min: number; readonly max: number | undefined }

/** Productions by name. Every text begins at `root`. */
export interface Grammar {
  readonly root: string
  readonly rules: ReadonlyMap<string, Node>
}

/** Matches the empty text. */
export const empty: Node = { kind: "text", text: "" }
/** Matches a literal text. */
export const text = (text: string): Node => (text === "" ? empty : { kind: "text", text })
/** Matches the named rule. */
export const rule = (name: string): Node => ({ kind: "rule", name })
/** Matches nothing. */
export const never: Node = { kind: "choice", items: [] }

/** Matches its parts one after the other. */
export const sequence = (...items: ReadonlyArray<Node>): Node => {
  const flat: Array<Node> = []
  for (const item of items) {
    for (const part of item.kind === "sequence" ? item.items : [item]) {
      const before = flat.at(-1)
      // Adjacent literals are joined.
      if (part.kind === "text" && before?.kind === "text") flat[flat.length - 1] = text(before.text + part.text)
      else if (part !== empty) flat.push(part)
    }
  }
  const [first, second] = flat
  return first === undefined ? empty : second === undefined ? first : { kind: "sequence", items: flat }
}

/** Matches one of its parts. */
export const choice = (...items: ReadonlyArray<Node>): Node => {
  const flat = items.filter((item) => item !== never)
  const [first, second] = flat
  return first === undefined ? never : second === undefined ? first : { kind: "choice", items: flat }
}

/** Matches at least `min` times, and at most `max` times if given. */
export const repeat = (item: Node, min: number, max?: number): Node =>
  max === 0 ? empty : min === 1 && max === 1 ? item : { kind: "repeat", item, min, max }

/** Matches once or not at all. */
export const optional = (item: Node): Node => repeat(item, 0, 1)

/** Matches one character of these ranges. */
export const chars = (...ranges: ReadonlyArray<Range>): Node =>
  ranges.length === 0 ? never : { kind: "chars", ranges: merged(ranges) }

/** Returns all scalar values that are in none of the ranges. */
export const except = (...ranges: ReadonlyArray<Range>): ReadonlyArray<Range> => {
  const rest: Array<Range> = []
  let from = 0
  for (const [a, b] of merged([...ranges, surrogates])) {
    if (a > from) rest.push([from, a - 1])
    from = b + 1
  }
  if (from <= last) rest.push([from, last])
  return rest
}

const last = 0x10ffff
const surrogates: Range = [0xd800, 0xdfff]

const merged = (ranges: ReadonlyArray<Range>): ReadonlyArray<Range> => {
  const all: Array<Range> = []
  for (const [from, to] of ranges.toSorted((a, b) => a[0] - b[0])) {
    const before = all.at(-1)
    if (before !== undefined && from <= before[1] + 1) all[all.length - 1] = [before[0], Math.max(before[1], to)]
    else all.push([from, to])
  }
  return all
}

/** Rules under construction, with unique names that every reader accepts. */
export class Rules {
  readonly map = new Map<string, Node>()
  readonly #counts = new Map<string, number>()
  #left = maxParts

  /** Returns true if another part of a schema may be read. The budget keeps the grammar of a foreign schema finite. */
  spend(): boolean {
    return this.#left-- > 0
  }

  get isSpent(): boolean {
    return this.#left <= 0
  }

  /** Returns a unique name of lower-case words with dashes, which every reader of grammars accepts. */
  name(wanted: string): string {
    const base = (
      wanted
        .slice(0, 40)
        .toLowerCase()
        .match(/[a-z]+/g) ?? ["rule"]
    ).join("-")
    let count = this.#counts.get(base) ?? 0
    let name = base
    while (this.map.has(name)) name = `${base}-${letters(count++)}`
    this.#counts.set(base, count)
    this.map.set(name, never)
    return name
  }

  add(wanted: string, body: Node): Node {
    const name = this.name(wanted)
    this.map.set(name, body)
    return rule(name)
  }

  /** Returns a shared rule, which is written on first use. */
  shared(name: string, body: () => Node): Node {
    if (!this.map.has(name)) {
      this.map.set(name, never)
      this.map.set(name, body())
    }
    return rule(name)
  }
}

const maxParts = 4_000

/** Writes a number in letters: a, b, …, z, ba, bb. */
const letters = (count: number): string =>
  Array.from(count.toString(26), (digit) => String.fromCharCode(0x61 + Number.parseInt(digit, 26))).join("")

/** Returns the depth in rules of the shortest text of a node, infinite if it has none. */
export const heightOf = (node: Node, heights: ReadonlyMap<string, number>): number => {
  switch (node.kind) {
    case "text":
      return 0
    case "chars":
      return node.ranges.length === 0 ? Infinity : 0
    case "rule":
      return 1 + (heights.get(node.name) ?? Infinity)
    case "sequence":
      return node.items.reduce((height, item) => Math.max(height, heightOf(item, heights)), 0)
    case "choice":
      return node.items.reduce((height, item) => Math.min(height, heightOf(item, heights)), Infinity)
    case "repeat":
      return node.min === 0 ? 0 : heightOf(node.item, heights)
  }
}

/** Returns the height of every rule. */
export const heightsOf = (rules: ReadonlyMap<string, Node>): ReadonlyMap<string, number> => {
  const heights = new Map<string, number>()
  const ordered = [...rules]
  for (let changed = true; changed;) {
    changed = false
    // Rules precede those they use, and optional members follow: iterating backwards takes only a few passes.
    for (const [name, node] of ordered.reverse()) {
      const height = heightOf(node, heights)
      if (height < (heights.get(name) ?? Infinity)) {
        heights.set(name, height)
        changed = true
      }
    }
  }
  return heights
}

/** Removes nodes that match nothing and rules that cannot be reached. Returns undefined if nothing is left. */
export const grammar = (root: string, rules: ReadonlyMap<string, Node>): Grammar | undefined => {
  const heights = heightsOf(rules)
  if (!heights.has(root)) return undefined
  const kept = new Map<string, Node>()
  const left = [root]
  for (let name = left.pop(); name !== undefined; name = left.pop()) {
    const body = rules.get(name)
    if (kept.has(name) || body === undefined) continue
    const pruned = prune(body, heights)
    kept.set(name, pruned)
    left.push(...namesOf(pruned).reverse())
  }
  return { root, rules: kept }
}

const prune = (node: Node, heights: ReadonlyMap<string, number>): Node => {
  switch (node.kind) {
    case "sequence":
      return sequence(...node.items.map((item) => prune(item, heights)))
    case "choice":
      return choice(
        ...node.items.filter((item) => heightOf(item, heights) < Infinity).map((item) => prune(item, heights))
      )
    case "repeat":
      return heightOf(node.item, heights) === Infinity ? empty : { ...node, item: prune(node.item, heights) }
    default:
      return node
  }
}

const namesOf = (node: Node): Array<string> => {
  switch (node.kind) {
    case "rule":
      return [node.name]
    case "sequence":
    case "choice":
      return node.items.flatMap(namesOf)
    case "repeat":
      return namesOf(node.item)
    default:
      return []
  }
}
