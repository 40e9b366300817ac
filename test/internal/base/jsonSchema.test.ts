import { assert, describe, it } from "@effect/vitest"
import { withDefinitions } from "../../../src/internal/base/jsonSchema.ts"

describe("jsonSchema.withDefinitions", () => {
  it("keeps what a schema leads to, also by way of another definition or of itself, and nothing else", () => {
    const [a, b, c] = [{ anyOf: [{ $ref: "#/$defs/b" }] }, { items: { $ref: "#/$defs/a" } }, { type: "null" }]
    const schema = { properties: { x: { $ref: "#/$defs/a" } } }
    assert.deepStrictEqual(withDefinitions(schema, { c, b, a }), { ...schema, $defs: { b, a } })
    assert.strictEqual(withDefinitions(c, { a, b }), c)
  })

  it("takes lists of any length", () => {
    const schema = { enum: Array.from({ length: 1_000_000 }, (_, index) => index) }
    assert.strictEqual(withDefinitions(schema, {}), schema)
  })
})
