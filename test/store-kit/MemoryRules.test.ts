import { assert, describe, it } from "@effect/vitest"
import { MemoryRules } from "kernai/store-kit"

const all = { limit: 10, minScore: 0 }
const ids = (found: ReturnType<typeof MemoryRules.ranked>) => found.map(({ id }) => id)

describe("MemoryRules.ranked", () => {
  it("puts a text that is good by words and by meaning before one that is best by words alone", () => {
    const words = new Map([
      [1, 1],
      [2, 0.3],
      [3, 0.2]
    ])
    const meanings = new Map([
      [3, 0.3],
      [2, 0.4]
    ])
    assert.deepStrictEqual(ids(MemoryRules.ranked(words, meanings, all)), [2, 3, 1])
    assert.deepStrictEqual(ids(MemoryRules.ranked(words, undefined, all)), [1, 2, 3])
  })

  it("scores by the mean of words and meaning, and leaves out texts below the smallest score", () => {
    const words = new Map([[1, 0.8]])
    const meanings = new Map([
      [1, 0.4],
      [2, 0.6]
    ])
    const [first, second] = MemoryRules.ranked(words, meanings, all)
    assert.strictEqual(first?.id, 1)
    assert.closeTo(first?.score ?? 0, 0.6, 1e-9)
    assert.deepStrictEqual(second, { id: 2, score: 0.3 })
    assert.deepStrictEqual(ids(MemoryRules.ranked(words, meanings, { limit: 10, minScore: 0.5 })), [1])
    assert.deepStrictEqual(ids(MemoryRules.ranked(words, meanings, { limit: 1, minScore: 0 })), [1])
  })

  it("puts the older one of equals first", () => {
    const scores = new Map([
      [7, 0.5],
      [3, 0.5]
    ])
    assert.deepStrictEqual(ids(MemoryRules.ranked(scores, scores, all)), [3, 7])
  })
})
