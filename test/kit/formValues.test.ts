import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import * as FormValues from "../../src/kit/formValues.ts"

describe("the values of a form", () => {
  it("that do not fit are refused with a plain sentence", () => {
    const form = { type: "object", properties: { seats: { type: "integer" } }, required: ["seats"] }
    assert.deepStrictEqual(FormValues.decode(form, { seats: 2, more: true }), Result.succeed({ seats: 2 }))
    assert.deepStrictEqual(FormValues.decode(form, {}), Result.fail(`Missing key at ["seats"]`))
    assert.deepStrictEqual(FormValues.decode(form, { seats: "two" }), Result.fail(`Expected number at ["seats"]`))
  })

  it.each([
    [{ type: "string", minLength: 3 }, "ab", `Expected a string with at least 3 code points at ["x"]`],
    [{ type: "string", allOf: [{ maxLength: 1 }] }, "ab", `Expected a string with at most 1 code points at ["x"]`],
    [{ type: "integer" }, 2.5, `Expected an integer at ["x"]`],
    [{ type: "number", minimum: 3 }, 1, `Expected a value greater than or equal to 3 at ["x"]`],
    [{ type: "number", exclusiveMaximum: 3 }, 3, `Expected a value less than 3 at ["x"]`],
    [{ type: "number", multipleOf: 0.1 }, 0.25, `Expected a value that is a multiple of 0.1 at ["x"]`],
    [{ type: "string", enum: ["a", "b"] }, "c", `Expected "a" | "b" at ["x"]`],
    [{ oneOf: [{ const: "a", title: "A" }, { const: "b" }] }, "c", `Expected "a" | "b" at ["x"]`],
    [{ type: ["string", "null"] }, 5, `Expected string | null at ["x"]`],
    [{ type: "array", items: { enum: ["a"] } }, ["a", "b"], `Expected "a" at ["x"][1]`],
    [{ type: "array", uniqueItems: true }, ["a", "a"], `Expected an array with unique items at ["x"]`],
    [{ type: "object", required: ["y"] }, {}, `Missing key at ["x"]["y"]`],
    [{ enum: [{ y: 1 }] }, { y: 2 }, `Expected {"y":1} at ["x"]`],
    [{ not: {}, type: "string" }, 1, `Expected string at ["x"]`]
  ])("are refused by %j: %j", (field, value, reason) => {
    const form = { type: "object", properties: { x: field } }
    assert.deepStrictEqual(FormValues.decode(form, { x: value }), Result.fail(reason))
  })

  it.each([
    [{ type: "string", minLength: 2, maxLength: 2 }, "😀😀"],
    [{ type: "number", multipleOf: 0.1 }, 0.3],
    [{ anyOf: [{ type: "string" }, { type: "null" }] }, "a"],
    [{ enum: [{ y: 1 }] }, { y: 1 }],
    [{ type: "object", properties: {}, additionalProperties: false }, { y: 1 }],
    [{ not: { type: "string" } }, "a"],
    [{ type: "string", format: "email" }, "a"]
  ])("fit %j: %j", (field, value) => {
    const form = { type: "object", properties: { x: field } }
    assert.deepStrictEqual(FormValues.decode(form, { x: value }), Result.succeed({ x: value }))
  })

  it.each(["allOf", "anyOf"])("are refused when the schema has members in members without end: %s", (keyword) => {
    const field = { [keyword]: [{ $ref: "#/$defs/x" }, { $ref: "#/$defs/x" }] }
    const form = { type: "object", properties: { x: field }, $defs: { x: field } }
    assert.isTrue(Result.isFailure(FormValues.decode(form, { x: 1 })))
  })

  it("are accepted as they are if the schema of the form refers to itself", () => {
    const form = {
      type: "object",
      properties: { seats: { $ref: "#/$defs/seats" } },
      $defs: { seats: { $ref: "#/$defs/seats" } }
    }
    assert.deepStrictEqual(FormValues.decode(form, { seats: 2 }), Result.succeed({ seats: 2 }))
  })
})
