import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { PartialJson } from "../../../src/internal/words/partialJson.ts"
import { cases } from "../../support/property.ts"

/** Returns all partial values of a text that arrives in these chunks. */
const told = (...pieces: ReadonlyArray<string>) => {
  const json = new PartialJson()
  const values = pieces.flatMap((piece) => {
    const value = json.push(piece)
    return value === undefined ? [] : [value]
  })
  const last = json.end()
  return last === undefined ? values : [...values, last]
}

describe("PartialJson", () => {
  it("returns whole members, open lists and partial strings", () => {
    assert.deepStrictEqual(told('{"title":"So', 'up","serves":4', ',"steps":["cu', 't","co', 'ok"]}'), [
      { title: "So" },
      { title: "Soup" },
      { title: "Soup", serves: 4, steps: ["cu"] },
      { title: "Soup", serves: 4, steps: ["cut", "co"] },
      { title: "Soup", serves: 4, steps: ["cut", "cook"] }
    ])
  })

  it("omits a key, number or literal that may continue, and an incomplete escape", () => {
    assert.deepStrictEqual(told('{"a', '":1', "2", ',"b":tr', "ue}"), [{}, { a: 12 }, { a: 12, b: true }])
    assert.deepStrictEqual(told('["x\\', "n", "\\u00", 'e9"]'), [["x"], ["x\n"], ["x\né"]])
    assert.deepStrictEqual(told("[1 ", ",2]"), [[1], [1, 2]])
    assert.deepStrictEqual(told("\n ", '{"a"', ":1}"), [{}, { a: 1 }])
    assert.deepStrictEqual(told("12", "3\n"), [123])
    assert.deepStrictEqual(told('{"a":1,"b" ', ":2}"), [{ a: 1 }, { a: 1, b: 2 }])
    assert.deepStrictEqual(told('["\\nabcde', '"]'), [["\nabcde"]])
    assert.deepStrictEqual(told('["a\\n', '"]'), [["a\n"]])
    assert.deepStrictEqual(told('["\\\\', '\\"', '"]'), [["\\"], ['\\"']])
    assert.deepStrictEqual(told('["a\ud83d', '\ude00"]'), [["a"], ["a\u{1f600}"]])
    assert.deepStrictEqual(told('["a\\ud83d', "\\ude", '00"]'), [["a"], ["a\u{1f600}"]])
    assert.deepStrictEqual(told('["\\\\ud83d', '"]'), [["\\ud83d"]])
  })

  it("returns nothing for prose or for text that turns out not to be JSON", () => {
    for (const text of ["Here it is: {}", "{a:1}", "[1,,2]", "{]", "nothing"]) {
      assert.deepStrictEqual(
        told(...text).filter((value) => JSON.stringify(value).length > 4),
        [],
        text
      )
    }
  })

  it("reads each character once, so a long text in small chunks takes linear time (R-21)", () => {
    const count = 100_000
    const json = new PartialJson()
    json.push('{"a":"')
    // Looking at all of it each time took a minute, which no test is given.
    for (let index = 0; index < count; index++) json.push("word")
    assert.deepStrictEqual(json.end(), { a: "word".repeat(count) })
  })

  it.prop(
    "ends with the written value, for any chunking",
    [Schema.Json, Schema.Array(Schema.Natural)],
    ([value, cuts]) => {
      const text = JSON.stringify(value)
      const places = [...new Set(cuts.map((cut) => cut % (text.length + 1)))].toSorted((a, b) => a - b)
      const pieces = [0, ...places].map((place, index) => text.slice(place, places[index] ?? text.length))
      const values = told(...pieces)
      // A bare number or literal at the root ends with the text, so it is never known to be complete before.
      const isOpen = typeof value === "object" && value !== null
      if (isOpen || typeof value === "string") assert.deepStrictEqual(values.at(-1), JSON.parse(text))
      for (const partial of values) assert.isTrue(JSON.stringify(partial).length <= text.length)
    },
    cases()
  )
})
