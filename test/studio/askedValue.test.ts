import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { valueSchema } from "../../src/kit/jsonSchema.ts"
import { jsonObject } from "../../src/kit/json.ts"
import { askedBy } from "../../src/studio/page/askedValue.ts"

const schemaOf = (schema: Schema.Constraint) => jsonObject(valueSchema(schema))

describe("the form of a running call in the studio", () => {
  it("asks for the result of an external call, an object by its fields", () => {
    const asked = askedBy({ output: schemaOf(Schema.Struct({ url: Schema.String, isSharp: Schema.Boolean })) })
    assert.deepStrictEqual(asked?.start, { isSharp: false })
    assert.deepStrictEqual(asked?.give({ url: "x", isSharp: true }), { output: { url: "x", isSharp: true } })
  })

  it("asks for a result that is no object by one field", () => {
    const asked = askedBy({ output: schemaOf(Schema.Literals(["red", "green"])) })
    assert.deepStrictEqual(asked?.start, { result: "red" })
    assert.deepStrictEqual(asked?.give({ result: "green" }), { output: "green" })
  })

  it("asks for the values of a form, and for nothing where a person only agrees", () => {
    const asked = askedBy({ form: schemaOf(Schema.Struct({ account: Schema.String })) })
    assert.deepStrictEqual(asked?.give({ account: "7" }), { approved: true, values: { account: "7" } })
    assert.isUndefined(askedBy({}))
    assert.isUndefined(askedBy())
  })
})
