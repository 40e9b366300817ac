/** With native tools, a vendor that can do so holds the answer of a typed agent to its schema. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Model, type Provider } from "kernai"
import { RequestRules } from "kernai/testing"
import type { JsonObject } from "../../src/kit/json.ts"
import { MockProvider } from "kernai/testing"
import { kernel, of } from "../support/kernel.ts"
import { bodyOf, message, request, tool } from "../support/provider.ts"
import { told } from "../support/toolbox.ts"
import { targets } from "../support/wires.ts"

const schemaOf = (output: Schema.ConstraintDecoder<unknown>): JsonObject => {
  const schema = Agent.make({ instructions: "", model: Model.textOnly, output }).outputJsonSchema?.()
  return JSON.parse(JSON.stringify(schema ?? {}))
}

/** The vendors, their format, and where a schema stands in their requests. */
const wires: ReadonlyArray<readonly [vendor: string, RequestRules.Wire, where: ReadonlyArray<string>]> = [
  ["anthropic", "anthropic", ["output_config", "format", "schema"]],
  ["openai", "chat", ["response_format", "json_schema", "schema"]],
  ["compatible", "chat", ["response_format", "json_schema", "schema"]],
  ["openai-responses", "responses", ["text", "format", "schema"]],
  ["google", "gemini", ["generationConfig", "responseJsonSchema"]],
  ["google-interactions", "gemini-interactions", ["response_format", "schema"]]
]

const at = (body: unknown, path: ReadonlyArray<string>): unknown =>
  path.reduce<unknown>(
    (value, key) => (typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined),
    body
  )

const asking = (schema: JsonObject, model: Partial<Model.Model>, tools: Provider.Request["tools"] = [tool]) =>
  request({
    model: Model.make("m", model),
    messages: [message("user", "go")],
    tools,
    grammar: { _tag: "Json", schema }
  })

const able = { structuredOutput: "with_tools" } as const

const order = Schema.Struct({
  id: Schema.String.check(Schema.isMinLength(3), Schema.isPattern(/^[a-z]+$/)),
  count: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 9 })),
  note: Schema.optionalKey(Schema.String),
  state: Schema.Literals(["open", "done"]),
  lines: Schema.Array(Schema.Struct({ name: Schema.String, at: Schema.NullOr(Schema.Date) })),
  by: Schema.Union([Schema.Struct({ person: Schema.String }), Schema.Struct({ machine: Schema.Int })])
})

interface Tree {
  readonly name: string
  readonly below: ReadonlyArray<Tree>
}
const tree: Schema.Codec<Tree> = Schema.Struct({
  name: Schema.String,
  below: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => tree).annotate({ identifier: "Tree" }))
}).annotate({ identifier: "Tree" })

const wide = Schema.Struct(
  Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`key${index}`, Schema.optionalKey(Schema.String)]))
)

describe("the schema of a typed answer", () => {
  for (const [vendor, wire, where] of wires) {
    it.effect(`is sent beside tools in the form of ${vendor}, and satisfies its rules`, () =>
      Effect.gen(function* () {
        const body = yield* bodyOf(vendor, asking(schemaOf(order), able))
        const schema = at(body, where)
        assert.containsSubset(schema, { type: "object", additionalProperties: false })
        assert.deepStrictEqual(at(schema, ["properties", "state"]), { type: "string", enum: ["open", "done"] })
        assert.deepStrictEqual(RequestRules.check(wire, body), [])
        assert.isNotEmpty(RequestRules.sourcesOf(wire, "schemas"))
      })
    )

    it.effect(`is not sent to ${vendor} for a model that cannot be held to it, or not beside tools`, () =>
      Effect.gen(function* () {
        const schema = schemaOf(order)
        const held = (model: Partial<Model.Model>, tools?: Provider.Request["tools"]) =>
          Effect.map(bodyOf(vendor, asking(schema, model, tools)), (body) => at(body, where) !== undefined)
        assert.isFalse(yield* held({ structuredOutput: "without_tools" }))
        assert.isTrue(yield* held({ structuredOutput: "without_tools" }, []))
        if (vendor !== "openai" && vendor !== "openai-responses") assert.isFalse(yield* held({}))
      })
    )

    it.effect(`that ${vendor} cannot express is not sent`, () =>
      Effect.gen(function* () {
        const shapes: ReadonlyArray<Schema.ConstraintDecoder<unknown>> = [
          Schema.Record(Schema.String, Schema.String),
          Schema.Struct({ any: Schema.Unknown }),
          Schema.Struct({ pair: Schema.Tuple([Schema.String, Schema.String]) }),
          Schema.Union([Schema.Struct({ a: Schema.String }), Schema.Struct({ b: Schema.String })]),
          Schema.Array(Schema.String),
          ...(wire === "anthropic" ? [tree, wide] : wire.startsWith("gemini") ? [tree] : [])
        ]
        for (const shape of shapes) {
          const schema = schemaOf(shape)
          const body = yield* bodyOf(vendor, asking(schema, able))
          assert.isUndefined(at(body, where), JSON.stringify(schema))
        }
      })
    )
  }

  for (const name of ["ai-sdk v2", "ai-sdk v3", "ai-sdk v4"]) {
    it.effect(`is sent to a model of another package, over ${name}, if its model says so`, () =>
      Effect.gen(function* () {
        const target = (yield* targets).find((one) => one.name === name) ?? assert.fail(name)
        const body = yield* target.bodyOf(asking(schemaOf(order), able))
        assert.containsSubset(at(body, ["responseFormat"]), { type: "json", schema: { type: "object" } })
        assert.deepStrictEqual(at(body, ["responseFormat", "schema", "properties", "count"]), { type: "integer" })
        assert.deepStrictEqual(RequestRules.check("ai-sdk", body), [])
        assert.isUndefined(at(yield* target.bodyOf(asking(schemaOf(order), {})), ["responseFormat"]))
      })
    )
  }

  it.effect("goes to Ollama without tools alone, since its models cannot follow both", () =>
    Effect.gen(function* () {
      const held = (tools: Provider.Request["tools"]) =>
        Effect.map(bodyOf("ollama", asking(schemaOf(order), able, tools)), (body) => at(body, ["format"]))
      assert.isUndefined(yield* held([tool]))
      assert.containsSubset(yield* held([]), { type: "object" })
    })
  )

  it.effect("keeps the constraints that OpenAI knows, and lets a key that may be absent be null", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf("openai", asking(schemaOf(order), able))
      const properties = at(body, ["response_format", "json_schema", "schema", "properties"])
      assert.deepStrictEqual(at(properties, ["id"]), { type: "string" })
      assert.deepStrictEqual(at(properties, ["count"]), { type: "integer", minimum: 1, maximum: 9 })
      assert.deepStrictEqual(at(properties, ["note"]), { anyOf: [{ type: "string" }, { type: "null" }] })
      const recursive = yield* bodyOf("openai", asking(schemaOf(tree), able))
      assert.isDefined(at(recursive, ["response_format"]))
      assert.deepStrictEqual(RequestRules.check("chat", recursive), [])
    })
  )

  it.effect("loses for Anthropic the constraints that it refuses, and keeps what may be absent", () =>
    Effect.gen(function* () {
      const body = yield* bodyOf("anthropic", asking(schemaOf(order), able))
      const schema = at(body, ["output_config", "format", "schema"])
      assert.deepStrictEqual(at(schema, ["properties", "count"]), { type: "integer" })
      assert.deepStrictEqual(at(schema, ["required"]), ["id", "count", "state", "lines", "by"])
    })
  )

  it("is held against the rules by the checker", () => {
    const closed = (properties: JsonObject, more: JsonObject = {}): JsonObject => ({
      type: "object",
      properties,
      required: Object.keys(properties),
      additionalProperties: false,
      ...more
    })
    const faults: ReadonlyArray<readonly [what: string, schema: JsonObject]> = [
      ["is not the schema of an object", { type: "string" }],
      ["is open", closed({}, { additionalProperties: true })],
      ["has 'minLength'", closed({ a: { type: "string", minLength: 3 } })],
      ["has format 'color'", closed({ a: { type: "string", format: "color" } })],
      ["has no type", closed({ a: {} })],
      [
        "refers to itself",
        closed({ a: { $ref: "#/$defs/A" } }, { $defs: { A: closed({ a: { $ref: "#/$defs/A" } }) } })
      ],
      ["has 25 properties that are not required", { ...schemaOf(wide), required: [], additionalProperties: false }]
    ]
    const turns = { messages: [{ role: "user", content: "go" }] }
    for (const [what, schema] of faults) {
      const found = RequestRules.check("anthropic", {
        ...turns,
        output_config: { format: { type: "json_schema", schema } }
      })
      assert.include(
        found.map(({ rule, detail }) => `${rule} ${detail}`),
        `schemas ${what}`
      )
    }
    const strict = { response_format: { type: "json_schema", json_schema: { strict: true, schema: schemaOf(wide) } } }
    assert.include(
      RequestRules.check("chat", { ...turns, ...strict }).map(({ detail }) => detail),
      "does not require 'key0'"
    )
    assert.isNotEmpty(RequestRules.check("mistral", { ...turns, ...strict }))
  })
})

describe("an agent with a typed output and native tools", () => {
  const agent = Agent.make({
    instructions: "Count.",
    model: Model.textOnly,
    output: Schema.Struct({ count: Schema.Int }),
    dialect: "tools"
  })
  const answer = MockProvider.make('{"count":3}')

  /** Runs the agent on a model, and returns the grammar of its request, its answer and what it dropped. */
  const asked = (model: Model.Model, constrains?: boolean, one = agent) =>
    Effect.gen(function* () {
      const requests: Array<Provider.Request> = []
      const provider: Provider.ProviderShape = {
        name: "mock",
        stream: (request) => {
          requests.push(request)
          return answer.stream(request)
        },
        ...(constrains === undefined ? {} : { constrains: () => constrains })
      }
      const run = yield* told({ ...one, model }, "go", { provider })
      return { grammar: requests[0]?.grammar, run, dropped: of(run.events, "llm_response")[0]?.dropped?.options }
    }).pipe(Effect.provide(kernel()))

  it.effect("asks for the schema by default, where the model can be held to it", () =>
    Effect.gen(function* () {
      const first = yield* asked(Model.claudeSonnet45)
      assert.strictEqual(first.grammar?._tag, "Json")
      assert.deepStrictEqual(first.run.text, '{"count":3}')
      assert.isUndefined((yield* asked(Model.claudeSonnet4)).grammar)
      assert.isUndefined((yield* asked(Model.make("m"))).grammar)
      const untyped = { ...agent, typed: false }
      assert.isUndefined((yield* asked(Model.claudeSonnet45, undefined, untyped)).grammar)
    })
  )

  it.effect("is told that the schema was not sent, if the vendor cannot express it", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* asked(Model.gpt5, false)).dropped, ["output"])
      assert.isUndefined((yield* asked(Model.gpt5, true)).dropped)
    })
  )
})
