import { assert, describe, it } from "@effect/vitest"
import { Generation } from "kernai"

describe("Generation.merge (BP-111)", () => {
  it("lays what is given on top, extras by key", () => {
    const base = { temperature: 0.5, topP: 0.9, extra: { a: 1, b: 1 } }
    assert.deepStrictEqual(Generation.merge(base, { temperature: 0, extra: { b: 2 } }), {
      temperature: 0,
      topP: 0.9,
      extra: { a: 1, b: 2 }
    })
  })

  it("changes nothing by what is not given, as options read from JSON may hold it", () => {
    const read: Generation.Generation = JSON.parse('{"temperature":null,"maxTokens":5}')
    assert.deepStrictEqual(Generation.merge({ temperature: 0.5 }, read), { temperature: 0.5, maxTokens: 5 })
    assert.deepStrictEqual(Generation.merge({ temperature: 0.5 }, Generation.empty), { temperature: 0.5 })
  })
})
