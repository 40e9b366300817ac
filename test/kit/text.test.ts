import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Effect, Schema } from "effect"
import { Pieces, quote, visible } from "../../src/kit/text.ts"
import { cases } from "../support/property.ts"

describe("visible", () => {
  it("escapes characters that move the cursor, change the direction or are invisible (S-19)", () => {
    assert.strictEqual(visible("\u001b[2J\u0007\r\n\t"), "\\u{1b}[2J\\u{7}\\r\\n\\t")
    assert.strictEqual(
      visible("a\u202eb\u200bc\u{e0041}d\u2028e\u009bf"),
      "a\\u{202e}b\\u{200b}c\\u{e0041}d\\u{2028}e\\u{9b}f"
    )
    assert.strictEqual(visible("lone \udfff"), "lone \\u{dfff}")
  })

  it("leaves ordinary text unchanged", () => {
    for (const text of ["", "plain", "é, ß, 漢字, עברית", "🙂 ❤️", "a < b && c"])
      assert.strictEqual(visible(text), text)
  })

  it.effect.prop(
    "leaves no control character, and keeps quotes readable",
    [Schema.String],
    ([text]) =>
      Effect.sync(() => {
        assert.notMatch(visible(text), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u)
        const unescaped = quote(text)
          .slice(1, -1)
          .replace(/\\(?:u\{([0-9a-f]+)\}|(.))/g, (_, code: string | undefined, char: string) =>
            code === undefined
              ? (new Map([
                  ["n", "\n"],
                  ["r", "\r"],
                  ["t", "\t"]
                ]).get(char) ?? char)
              : String.fromCodePoint(Number.parseInt(code, 16))
          )
        assert.strictEqual(unescaped, text)
      }),
    cases()
  )
})

const filled = (pieces: ReadonlyArray<string>) => {
  const all = new Pieces()
  for (const piece of pieces) all.add(piece, piece.length)
  return all
}

describe("Pieces", () => {
  it("joins to the text that was added, whatever the sizes of the pieces", () => {
    for (const sizes of [[1], [4], [31], [32], [33], [64], [700], [2048], [5000], [1, 3000], [3000, 1, 1, 1, 40]]) {
      const pieces = Array.from({ length: 3000 }, (_, i) => `${i % 10}`.repeat(sizes[i % sizes.length] ?? 1))
      assert.isTrue(filled(pieces).take("end") === `${pieces.join("")}end`, `sizes ${sizes.join(" ")}`)
    }
  })

  it.prop(
    "joins any mix of short and long pieces",
    [Arbitrary.array(Arbitrary.schema(Schema.Literals([1, 7, 100, 1500, 4000])), { maxLength: 40 })],
    ([sizes]) => {
      const pieces = sizes.flatMap((size, i) => Array.from({ length: size < 100 ? 90 : 1 }, () => `${i}|`.repeat(size)))
      assert.isTrue(filled(pieces).take("") === pieces.join(""))
    },
    cases()
  )

  it("is empty after its text was taken", () => {
    for (const count of [1, 100, 5000]) {
      const pieces = filled(Array.from({ length: count }, () => "abc"))
      pieces.take("")
      assert.strictEqual(pieces.take("next"), "next")
      pieces.add("a", 1)
      assert.strictEqual(pieces.take("b"), "ab")
    }
  })
})
