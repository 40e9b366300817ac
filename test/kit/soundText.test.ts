import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { soundJson, soundJsonText, soundText, wellFormedJson } from "../../src/kit/soundText.ts"
import { cases } from "../support/property.ts"

const half = "\u{1f3af}".slice(0, 1)

describe("soundText", () => {
  it("replaces halves of surrogate pairs and NUL, and keeps every other character", () => {
    assert.strictEqual(soundText(`a${half}b\0c`), "a\ufffdb\ufffdc")
    for (const text of ["", "plain", "漢字 🙂", "\\ud83c", "a\tb\nc"]) assert.strictEqual(soundText(text), text)
  })
})

describe("soundJson", () => {
  it("replaces them in texts and keys at any depth, and returns sound JSON as the same object", () => {
    assert.deepStrictEqual(soundJson({ [half]: [{ text: `x${half}` }] }), { "\ufffd": [{ text: "x\ufffd" }] })
    const sound = { a: [{ b: "🙂" }], n: 1 }
    assert.strictEqual(soundJson(sound), sound)
  })
})

describe("soundJsonText", () => {
  it.prop(
    "gives the JSON text of sound JSON, also where the text holds written escapes",
    [Schema.Array(Schema.Literals(["a", half, "\udfaf", "\u{1f3af}", "\0", "\\", "\\ud83c", "\\u0000", '"']))],
    ([pieces]) => {
      // Joined halves may form a pair.
      const text = pieces.join("")
      assert.strictEqual(soundJsonText(JSON.stringify({ text })), JSON.stringify({ text: soundText(text) }))
      const kept = text.toWellFormed()
      assert.strictEqual(wellFormedJson(JSON.stringify({ text })), JSON.stringify({ text: kept }))
    },
    cases()
  )
})
