import { assert, describe, it } from "@effect/vitest"
import * as Grams from "../../src/sql/internal/grams.ts"

const texts = ["an invoice about fibers", "这张发票的金额", "🎉", "a", "", 'if (userid !== "x9") { throw }']

/** Returns the places of texts that may contain all words. */
const placesOf = (length: number, words: ReadonlyArray<string>) => {
  const { bits, count } = texts.reduce((slices, text, place) => {
    Grams.add(slices, place, text)
    return slices
  }, Grams.make(length))
  const slices = Grams.slicesOf(words).map((slice) => slice & (count - 1))
  return Grams.placesIn(slices.map((slice) => bits.subarray(slice * Grams.sliceBytes, (slice + 1) * Grams.sliceBytes)))
}

describe("Grams", () => {
  it("name the text that contains words, parts of words, and words of any script", () => {
    for (const length of [1, 100_000]) {
      assert.deepStrictEqual(placesOf(length, ["voice", "fibers"]), [0])
      assert.deepStrictEqual(placesOf(length, ["发票"]), [1])
      assert.include(placesOf(length, ["🎉"]), 2)
      assert.deepStrictEqual(placesOf(length, ['id !== "x9']), [5])
      assert.deepStrictEqual(placesOf(length, ["fibers", "发票"]), [])
    }
  })

  it("leave out no part of a text, however long the part is", () => {
    const text = texts[0] ?? ""
    for (let from = 0; from < text.length; from++) {
      for (let to = from + 2; to <= text.length; to++) assert.include(placesOf(100, [text.slice(from, to)]), 0)
    }
  })

  it("read few slices of many words, and none for single characters", () => {
    assert.isAtMost(Grams.slicesOf([texts.join(), "another", "word"]).length, 8)
    assert.isAtLeast(Grams.slicesOf([texts.join()]).length, 4)
    assert.deepStrictEqual(Grams.slicesOf(["a", "票"]), [])
  })
})
