/**
 * The kept index of a memory in this process: its entries by word, by field of their metadata, and by vector.
 *
 * Every entry has a slot, a number that grows with time. Slots of entries that are gone stay empty until they are as
 * many as the others; then all entries move together.
 */

import type { JsonObject } from "../../kit/json.ts"
import { wordsOf } from "../../kit/text.ts"
import * as Memories from "../../store-kit/MemoryRules.ts"
import { VectorIndex } from "./vectorIndex.ts"

/** What the index knows of an entry. */
interface Entry {
  readonly id: string
  readonly content: string
  readonly metadata: JsonObject
}

/** An entry with the key under which it was stored. */
interface Kept<E> {
  readonly entry: E
  readonly key: string | undefined
}

/** Slots in which something occurs, in their order. Some may be empty by now. */
type Slots = Map<string, Array<number>>

/** The entries that a filter lets pass. */
interface Within {
  readonly count: number
  readonly passes: (slot: number) => boolean
}

/** Finds the entries of a memory without looking at all of them. */
export class MemoryIndex<E extends Entry> {
  private kept: Array<Kept<E> | undefined> = []
  private readonly slots = new Map<string, number>()
  private readonly keys = new Map<string, E>()
  private readonly words: Slots = new Map()
  private readonly facts: Slots = new Map()
  private readonly vectors = new VectorIndex()

  /** Returns the entry that was stored under a key. */
  known(key: string | undefined): E | undefined {
    return key === undefined ? undefined : this.keys.get(key)
  }

  /** Adds an entry whose id and key are new. */
  add(entry: E, key: string | undefined, vector: Float32Array | undefined): void {
    const slot = this.kept.push({ entry, key }) - 1
    this.slots.set(entry.id, slot)
    this.vectors.set(slot, vector)
    for (const word of wordsOf(entry.content)) append(this.words, word, slot)
    for (const [name, value] of Object.entries(entry.metadata)) append(this.facts, factOf(name, value), slot)
    if (key !== undefined) this.keys.set(key, entry)
  }

  /** Removes an entry, if its metadata pass the filter. Returns whether there was such an entry. */
  remove(id: string, filter: JsonObject | undefined): boolean {
    const slot = this.slots.get(id)
    const found = slot === undefined ? undefined : this.kept[slot]
    if (slot === undefined || found === undefined || !Memories.passes(found.entry.metadata, filter)) return false
    this.clear(slot, found)
    this.compact()
    return true
  }

  /** Removes the entries that pass a filter, except those to keep. Returns how many. */
  prune(filter: JsonObject, keep: ReadonlySet<string> | undefined): number {
    let count = 0
    for (const slot of this.passing(filter)) {
      const found = this.kept[slot]
      if (found === undefined || keep?.has(found.entry.id) === true) continue
      this.clear(slot, found)
      count++
    }
    this.compact()
    return count
  }

  /** Returns the best matches first. */
  search(
    asked: Memories.Asked,
    filter: JsonObject | undefined,
    vector: Float32Array | undefined
  ): ReadonlyArray<E & { readonly score: number }> {
    const within = this.within(filter)
    const fits = this.overlaps(asked.words, within)
    const count = Memories.depth(asked)
    const words = best(fits.slots, (slot) => fits.scores[slot] ?? 0, count)
    const meanings = vector === undefined ? undefined : this.nearest(vector, within, count)
    if (vector !== undefined && meanings !== undefined) {
      // A score is the mean of both, so each list gets the scores of the other one's entries.
      for (const slot of meanings.keys()) if ((fits.scores[slot] ?? 0) > 0) words.set(slot, fits.scores[slot] ?? 0)
      for (const slot of words.keys()) meanings.set(slot, this.vectors.likeness(vector, slot))
    }
    return Memories.ranked(words, meanings, asked).flatMap(({ id, score }) => {
      const entry = this.kept[id]?.entry
      return entry === undefined ? [] : [{ ...entry, score }]
    })
  }

  // -------------------------------------------------------------- filters

  private within(filter: JsonObject | undefined): Within {
    if (filter === undefined || Object.keys(filter).length === 0) {
      return { count: this.slots.size, passes: (slot) => this.kept[slot] !== undefined }
    }
    const slots = this.passing(filter)
    const marks = new Uint8Array(this.kept.length)
    for (const slot of slots) marks[slot] = 1
    return { count: slots.length, passes: (slot) => marks[slot] === 1 }
  }

  /** Returns the slots of the entries that pass a filter: of those with its rarest field, those with the others. */
  private passing(filter: JsonObject): ReadonlyArray<number> {
    const lists = Object.entries(filter).map(([name, value]) => this.facts.get(factOf(name, value)) ?? [])
    const [rarest = this.slots.values()] = lists.toSorted((a, b) => a.length - b.length)
    return [...rarest].filter((slot) => {
      const found = this.kept[slot]
      return found !== undefined && Memories.passes(found.entry.metadata, filter)
    })
  }

  // -------------------------------------------------------------- scores

  /**
   * Returns the share of the query's words that each entry contains. A word counts the more, the fewer entries contain
   * it.
   */
  private overlaps(asked: ReadonlyArray<string>, { count, passes }: Within) {
    const scores = new Float64Array(this.kept.length)
    const slots: Array<number> = []
    let total = 0
    for (const word of asked) {
      const having = (this.words.get(word) ?? []).filter(passes)
      const weight = Math.log(1 + (count - having.length + 0.5) / (having.length + 0.5))
      total += weight
      for (const slot of having) {
        if (scores[slot] === 0) slots.push(slot)
        scores[slot] = (scores[slot] ?? 0) + weight
      }
    }
    for (const slot of slots) scores[slot] = (scores[slot] ?? 0) / total
    return { scores, slots: slots.sort((a, b) => a - b) }
  }

  private nearest(vector: Float32Array, { passes }: Within, count: number): Map<number, number> {
    const slots = this.vectors.near(vector, passes, count)
    return best(slots, (slot) => this.vectors.likeness(vector, slot), count)
  }

  // -------------------------------------------------------------- slots

  private clear(slot: number, { entry, key }: Kept<E>): void {
    this.kept[slot] = undefined
    this.slots.delete(entry.id)
    this.vectors.set(slot, undefined)
    if (key !== undefined) this.keys.delete(key)
  }

  /** Moves all entries together once most slots are empty. */
  private compact(): void {
    if (this.kept.length < 64 || this.kept.length < this.slots.size * 2) return
    const left = [...this.slots.values()]
    const moved = new Map(left.map((slot, to) => [slot, to]))
    this.kept = left.map((slot) => this.kept[slot])
    this.vectors.keep(left)
    for (const [id, slot] of this.slots) this.slots.set(id, moved.get(slot) ?? slot)
    for (const lists of [this.words, this.facts]) {
      for (const [name, slots] of lists) {
        const kept = slots.flatMap((slot) => moved.get(slot) ?? [])
        if (kept.length === 0) lists.delete(name)
        else lists.set(name, kept)
      }
    }
  }
}

const factOf = (name: string, value: unknown): string => `${name}\0${Memories.canonical(value)}`

const append = (lists: Slots, name: string, slot: number): void => {
  const slots = lists.get(name)
  if (slots === undefined) lists.set(name, [slot])
  else slots.push(slot)
}

/** Returns the best scores, of equal ones those of the lowest slots. The slots are given in their order. */
const best = (slots: ReadonlyArray<number>, scoreOf: (slot: number) => number, count: number): Map<number, number> => {
  let found: Array<readonly [slot: number, score: number]> = []
  let floor = -1
  const shrink = () => {
    found = found.toSorted(([a, x], [b, y]) => y - x || a - b).slice(0, count)
    if (found.length === count) floor = found.at(-1)?.[1] ?? floor
  }
  for (const slot of slots) {
    const score = scoreOf(slot)
    if (score <= floor) continue
    found.push([slot, score])
    if (found.length >= count * 2) shrink()
  }
  shrink()
  return new Map(found)
}
