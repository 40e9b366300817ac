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

  it("are accepted as they are if the schema of the form refers to itself", () => {
    const form = {
      type: "object",
      properties: { seats: { $ref: "#/$defs/seats" } },
      $defs: { seats: { $ref: "#/$defs/seats" } }
    }
    assert.deepStrictEqual(FormValues.decode(form, { seats: 2 }), Result.succeed({ seats: 2 }))
  })
})
