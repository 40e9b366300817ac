import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Schema } from "effect"
import { Pieces } from "../../../src/internal/base/pieces.ts"
import { cases } from "../../support/property.ts"

const filled = (pieces: ReadonlyArray<string>) => {
  const all = new Pieces()
  for (const piece of pieces) all.add(piece, piece.length)
  return all
}

describe("Pieces", () => {
  it("gives back what it was given, in its order, whatever the sizes", () => {
    for (const sizes of [[1], [4], [31], [32], [33], [64], [700], [2048], [5000], [1, 3000], [3000, 1, 1, 1, 40]]) {
      const pieces = Array.from({ length: 3000 }, (_, i) => `${i % 10}`.repeat(sizes[i % sizes.length] ?? 1))
      assert.isTrue(filled(pieces).take("end") === `${pieces.join("")}end`, `sizes ${sizes.join(" ")}`)
    }
  })

  it.prop(
    "gives back any mix of short and long pieces",
    [Arbitrary.array(Arbitrary.schema(Schema.Literals([1, 7, 100, 1500, 4000])), { maxLength: 40 })],
    ([sizes]) => {
      const pieces = sizes.flatMap((size, i) => Array.from({ length: size < 100 ? 90 : 1 }, () => `${i}|`.repeat(size)))
      assert.isTrue(filled(pieces).take("") === pieces.join(""))
    },
    cases()
  )

  it("is empty again once taken", () => {
    for (const count of [1, 100, 5000]) {
      const pieces = filled(Array.from({ length: count }, () => "abc"))
      pieces.take("")
      assert.strictEqual(pieces.take("next"), "next")
      pieces.add("a", 1)
      assert.strictEqual(pieces.take("b"), "ab")
    }
  })
})
