import { assert, describe, it } from "@effect/vitest"
import { VectorIndex } from "../../../src/internal/chat/vectorIndex.ts"
import { likeness, unit } from "../../../src/store-kit/MemoryRules.ts"

/** Numbers between -1 and 1, the same each time. */
const numbers = () => {
  let seed = 1
  return () => {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff
    return (seed / 0x7fffffff) * 2 - 1
  }
}

const next = numbers()
const vectorOf = (dimensions: number): Float32Array =>
  unit(Array.from({ length: dimensions }, next)) ?? new Float32Array(dimensions)

/** Vectors around 200 topics, as those of texts are. */
const topics = Array.from({ length: 200 }, () => vectorOf(96))
const vectors = Array.from({ length: 6_000 }, (_, index) => {
  const noise = vectorOf(96)
  return unit([...(topics[index % 200] ?? [])].map((value, at) => value + (noise[at] ?? 0))) ?? noise
})

const indexOf = (all: ReadonlyArray<Float32Array | undefined>) => {
  const index = new VectorIndex()
  for (const [slot, vector] of all.entries()) index.set(slot, vector)
  return index
}

/** The nearest ten of these slots, by comparing all. */
const nearest = (query: Float32Array, slots: ReadonlyArray<number>) =>
  slots
    .map((slot) => ({ slot, score: likeness(query, vectors[slot]) }))
    .toSorted((a, b) => b.score - a.score)
    .slice(0, 10)
    .map(({ slot }) => slot)

const every = vectors.map((_, slot) => slot)

describe("VectorIndex", () => {
  it("compares a part of many vectors exactly, and finds the nearest ones among them", () => {
    const index = indexOf(vectors)
    let found = 0
    for (let at = 0; at < 50; at++) {
      const query = vectors[at * 100] ?? new Float32Array(96)
      const near = new Set(index.near(query, () => true, 50))
      assert.isBelow(near.size, 2_500)
      found += nearest(query, every).filter((slot) => near.has(slot)).length
    }
    assert.isAtLeast(found, 490)
  })

  it("compares all vectors that pass a filter if they are few", () => {
    const few = every.filter((slot) => slot % 10 === 0)
    const near = indexOf(vectors).near(vectors[5] ?? new Float32Array(96), (slot) => slot % 10 === 0, 50)
    assert.deepStrictEqual(near, few)
  })

  it("finds no vector of another length, none that was removed, and the others after they moved", () => {
    const short = unit([1, 2]) ?? new Float32Array(2)
    const index = indexOf([...vectors.slice(0, 3_000), short, undefined])
    assert.deepStrictEqual(
      index.near(short, () => true, 1),
      [3_000]
    )
    const left = every.slice(0, 3_000).filter((slot) => slot % 2 === 1)
    index.set(0, undefined)
    index.keep(left)
    const query = vectors[1_001] ?? short
    const near = index.near(query, () => true, 50)
    assert.lengthOf(near, left.length)
    assert.strictEqual(index.likeness(query, 500), likeness(query, query))
  })
})
