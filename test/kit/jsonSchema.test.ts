import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, SchemaGetter } from "effect"
import { Agent, Model, Skill } from "kernai"
import { Grammar } from "kernai/provider"
import { withDefinitions } from "../../src/kit/jsonSchema.ts"
import { times } from "../support/longRun.ts"

describe("jsonSchema.withDefinitions", () => {
  it("keeps the definitions that a schema refers to, also indirectly or recursively, and no others", () => {
    const [a, b, c] = [{ anyOf: [{ $ref: "#/$defs/b" }] }, { items: { $ref: "#/$defs/a" } }, { type: "null" }]
    const schema = { properties: { x: { $ref: "#/$defs/a" } } }
    assert.deepStrictEqual(withDefinitions(schema, { c, b, a }), { ...schema, $defs: { b, a } })
    assert.strictEqual(withDefinitions(c, { a, b }), c)
  })

  it("accepts lists of any length", () => {
    const schema = { enum: Array.from({ length: times(1_000_000, 200_000) }, (_, index) => index) }
    assert.strictEqual(withDefinitions(schema, {}), schema)
  })
})

class Visit extends Schema.Class<Visit>("Visit")({ at: Schema.Date }) {}

interface Tree {
  readonly at: Date
  readonly next: ReadonlyArray<Tree>
}
interface TreeEncoded {
  readonly at: string
  readonly next: ReadonlyArray<TreeEncoded>
}
const Tree: Schema.Codec<Tree, TreeEncoded> = Schema.Struct({
  at: Schema.DateFromString,
  next: Schema.Array(Schema.suspend((): Schema.Codec<Tree, TreeEncoded> => Tree))
})

const schemaOf = <S extends Schema.Constraint>(value: S) =>
  JSON.stringify(
    Skill.make("probe", {
      description: "",
      input: Schema.Struct({ value }),
      execute: () => Effect.succeed("")
    }).inputSchema
  )

const dateTime = '{"type":"string","format":"date-time"}'

describe("the JSON Schema shown to a model marks dates:", () => {
  const dates: ReadonlyArray<readonly [string, Schema.Constraint]> = [
    ["Date", Schema.Date],
    ["DateFromString", Schema.DateFromString],
    ["DateTimeUtc", Schema.DateTimeUtc],
    ["DateTimeUtcFromString", Schema.DateTimeUtcFromString],
    ["a date with a check", Schema.Date.check(Schema.makeFilter((date) => date.getTime() > 1_000_000_000_000))],
    ["a list", Schema.Array(Schema.Date)],
    ["a pair", Schema.Tuple([Schema.Date, Schema.Finite])],
    ["a record", Schema.Record(Schema.String, Schema.Date)],
    ["a date or null", Schema.NullOr(Schema.Date)],
    ["a date or a number", Schema.Union([Schema.Date, Schema.Finite])],
    ["an optional date", Schema.optional(Schema.Date)],
    ["a struct", Schema.Struct({ inner: Schema.Struct({ at: Schema.Date }) })],
    ["one struct of several", Schema.Union([Schema.Struct({ at: Schema.Date }), Schema.Struct({ no: Schema.Finite })])],
    ["a class", Visit],
    ["a tree", Tree],
    [
      "a date that becomes something else",
      Schema.Date.pipe(
        Schema.decodeTo(Schema.Finite, {
          decode: SchemaGetter.transform((date: Date) => date.getTime()),
          encode: SchemaGetter.transform((time: number) => new Date(time))
        })
      )
    ]
  ]
  for (const [name, schema] of dates) it(name, () => assert.include(schemaOf(schema), dateTime))

  const others: ReadonlyArray<readonly [string, Schema.Constraint]> = [
    ["text", Schema.String],
    ["a date or any text", Schema.Union([Schema.Date, Schema.String])],
    ["DateTimeZoned, which has a zone", Schema.DateTimeZoned],
    ["DateTimeUtcFromHttpDate, which is no ISO 8601", Schema.DateTimeUtcFromHttpDate],
    ["DateFromMillis", Schema.DateFromMillis],
    ["a big integer", Schema.BigInt]
  ]
  for (const [name, schema] of others) {
    it(`not ${name}`, () => assert.notInclude(schemaOf(schema), "date-time"))
  }

  it("samples of its grammar, which decode", () => {
    const input = Schema.Struct({ from: Schema.Date, to: Schema.NullOr(Schema.DateTimeUtc) })
    const skill = Skill.make("probe", { description: "", input, execute: () => Effect.succeed("") })
    const drawn = Grammar.sampler(Grammar.fromJsonSchema(skill.inputSchema), 3)
    const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.toCodecJson(input)))
    for (let index = 0; index < 100; index++) assert.isFalse(Number.isNaN(decode(drawn.next()).from.getTime()))
  })

  it("a date in a typed answer", () => {
    const agent = Agent.make({ instructions: "", model: Model.make("m"), output: Schema.Struct({ at: Schema.Date }) })
    assert.include(JSON.stringify(agent.outputJsonSchema?.()), dateTime)
  })
})
