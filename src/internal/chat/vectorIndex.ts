/**
 * The vectors of a memory, by slot, and the search for the nearest ones.
 *
 * Beside each vector its sketch is kept: one bit for each of 512 random directions, set where the vector points that
 * way. Sketches of similar vectors differ in few bits, and comparing them takes a fraction of the time, so a search of
 * many vectors compares sketches first, and exactly only the vectors whose sketches are nearest.
 */

import { likeness } from "../../store-kit/MemoryRules.ts"

/** Keeps unit vectors, which may have different lengths: those of another length than the query have no similarity. */
export class VectorIndex {
  private readonly vectors: Array<Float32Array | undefined> = []
  private lengths = new Uint16Array(64)
  private sketches = new Int32Array(64 * sketchWords)

  /** Sets the vector of a slot, or removes it. Slots grow one by one. */
  set(slot: number, vector: Float32Array | undefined): void {
    if (slot >= this.lengths.length) {
      this.lengths = doubled(this.lengths, new Uint16Array(this.lengths.length * 2))
      this.sketches = doubled(this.sketches, new Int32Array(this.sketches.length * 2))
    }
    this.vectors[slot] = vector
    this.lengths[slot] = vector?.length ?? 0
    if (vector !== undefined) sketch(vector, this.sketches, slot * sketchWords)
  }

  /** Keeps these slots alone, and numbers them anew in this order, which is that of the slots. */
  keep(slots: ReadonlyArray<number>): void {
    for (const [to, from] of slots.entries()) {
      this.vectors[to] = this.vectors[from]
      this.lengths[to] = this.lengths[from] ?? 0
      this.sketches.copyWithin(to * sketchWords, from * sketchWords, (from + 1) * sketchWords)
    }
    this.vectors.length = slots.length
  }

  /** Returns the similarity of a slot's vector, from 0 to 1. */
  likeness(vector: Float32Array, slot: number): number {
    return likeness(vector, this.vectors[slot])
  }

  /** Returns slots among which the nearest `count` vectors are: all slots that pass if they are few. */
  near(vector: Float32Array, passes: (slot: number) => boolean, count: number): ReadonlyArray<number> {
    const slots: Array<number> = []
    for (let slot = 0; slot < this.vectors.length; slot++) {
      if (this.lengths[slot] === vector.length && passes(slot)) slots.push(slot)
    }
    const compared = Math.max(leastCompared, count * 4)
    return slots.length <= compared ? slots : this.nearSketches(vector, slots, compared)
  }

  /** Returns the slots whose sketches differ in the fewest bits, a few more than `count` if many differ in as many. */
  private nearSketches(vector: Float32Array, slots: ReadonlyArray<number>, count: number): ReadonlyArray<number> {
    const asked = new Int32Array(sketchWords)
    sketch(vector, asked, 0)
    const distances = new Uint16Array(slots.length)
    const having = new Uint32Array(sketchWords * 32 + 1)
    for (const [place, slot] of slots.entries()) {
      const distance = this.distance(asked, slot)
      distances[place] = distance
      having[distance] = (having[distance] ?? 0) + 1
    }
    let most = -1
    for (let within = 0; within < count; within += having[most] ?? count) most++
    return slots.filter((_, place) => (distances[place] ?? 0) <= most)
  }

  private distance(asked: Int32Array, slot: number): number {
    let count = 0
    for (let word = 0, at = slot * sketchWords; word < sketchWords; word++, at++) {
      count += bits((asked[word] ?? 0) ^ (this.sketches[at] ?? 0))
    }
    return count
  }
}

/** The number of vectors that are compared exactly, at least. */
const leastCompared = 2_000

/** The 32-bit numbers of a sketch. */
const sketchWords = 16

const doubled = <A extends Uint16Array | Int32Array>(from: A, to: A): A => {
  to.set(from)
  return to
}

/** Counts the bits of a 32-bit number that are set. */
const bits = (value: number): number => {
  const pairs = value - ((value >>> 1) & 0x55555555)
  const fours = (pairs & 0x33333333) + ((pairs >>> 2) & 0x33333333)
  return Math.imul((fours + (fours >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24
}

/**
 * Writes the sketch of a vector: turned twice by random signs and a Hadamard transform, which is as good as random
 * directions and takes no table of them.
 */
const sketch = (vector: Float32Array, into: Int32Array, at: number): void => {
  let size = sketchWords * 32
  while (size < vector.length) size *= 2
  const turned = new Float32Array(size)
  turned.set(vector)
  for (const seed of [0x9e3779b1, 0x85ebca6b]) {
    for (let index = 0; index < size; index++) {
      if (isFlipped(index, seed)) turned[index] = -(turned[index] ?? 0)
    }
    transform(turned)
  }
  for (let word = 0; word < sketchWords; word++) {
    let value = 0
    for (let bit = 0; bit < 32; bit++) if ((turned[word * 32 + bit] ?? 0) > 0) value |= 1 << bit
    into[at + word] = value
  }
}

const isFlipped = (index: number, seed: number): boolean => {
  const mixed = Math.imul(index ^ (index >>> 7) ^ seed, seed)
  return ((mixed ^ (mixed >>> 15)) & 1) === 1
}

/** Applies the Hadamard transform, in place. */
const transform = (values: Float32Array): void => {
  for (let half = 1; half < values.length; half *= 2) {
    for (let start = 0; start < values.length; start += half * 2) {
      for (let index = start; index < start + half; index++) {
        const [a, b] = [values[index] ?? 0, values[index + half] ?? 0]
        values[index] = a + b
        values[index + half] = a - b
      }
    }
  }
}
