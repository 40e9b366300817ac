import { assert, describe, it } from "@effect/vitest"
import { Generation } from "kernai"

describe("Generation.merge (BP-111)", () => {
  it("overrides with the given settings, extras key by key", () => {
    const base = { temperature: 0.5, topP: 0.9, extra: { a: 1, b: 1 } }
    assert.deepStrictEqual(Generation.merge(base, { temperature: 0, extra: { b: 2 } }), {
      temperature: 0,
      topP: 0.9,
      extra: { a: 1, b: 2 }
    })
  })

  it("ignores undefined settings, which options read from JSON may contain", () => {
    const read: Generation.Generation = JSON.parse('{"temperature":null,"maxTokens":5}')
    assert.deepStrictEqual(Generation.merge({ temperature: 0.5 }, read), { temperature: 0.5, maxTokens: 5 })
    assert.deepStrictEqual(Generation.merge({ temperature: 0.5 }, Generation.empty), { temperature: 0.5 })
  })
})
