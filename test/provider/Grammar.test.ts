import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema } from "effect"
import { BlockParser, type Content, Dialect, Limits } from "kernai"
import { Grammar } from "kernai/provider"
import { final } from "../support/blocks.ts"
import * as Gbnf from "../support/gbnf.ts"
import { cases } from "../support/property.ts"
import { byName, output, replyFault, scope, skills } from "../support/spoken.ts"
import { times } from "../support/longRun.ts"

const options: Grammar.Options = { skills, protocols: [{ name: "mcp" }, { name: "graphql" }], workflows: true, output }
const grammar = Grammar.make(options)
const faultOf = replyFault(true)
const listener = { text: () => {}, block: () => {}, part: () => {} }
describe("Grammar", () => {
  const samples = times(10_000, 1_000)
  it(`samples ${samples.toLocaleString("en")} replies that parse as blocks and fit the skills they call, using every production`, () => {
    const drawn = Grammar.sampler(grammar, 42)
    const kinds = new Set<string>()
    for (let count = 0; count < samples; count++) {
      const reply = drawn.next()
      const fault = faultOf(reply)
      if (fault !== undefined) assert.fail(`${fault}\n${reply}`)
      for (const { name, type } of BlockParser.parse(reply).blocks) kinds.add(`${type} ${name}`)
    }
    assert.deepStrictEqual(drawn.untaken(), [])
    assert.isAtLeast(kinds.size, skills.length + 4 + 2 + 2)
  })

  it("is written as GBNF that a GBNF parser reads, and matches the samples and nothing else", () => {
    const fits = Gbnf.matcher(Gbnf.read(Grammar.toGbnf(grammar)))
    const drawn = Grammar.sampler(grammar, 7)
    for (let count = 0; count < times(2_000, 150); count++) {
      const reply = drawn.next()
      assert.isTrue(fits(reply), reply)
    }
    const search = (params: string) => `<block type="command" name="search">${params}</block>`
    assert.isTrue(fits(search('{"query": "a < b, x<y", "limit": 120, "order": "new"}')))
    assert.isTrue(fits(`<block type="plan">First I look.</block>\n${search('{"query":"x","order":"old \\"est\\""}')}`))
    const wrong = [
      "Hello.",
      search('{"query": "", "order": "new"}'),
      search('{"query": "x", "order": "older"}'),
      search('{"query": "x", "limit": 121, "order": "new"}'),
      search('{"query": "x", "limit": 0, "order": "new"}'),
      search('{"order": "new", "query": "x"}'),
      search('{"query": "x", "order": "new", "more": 1}'),
      search('{"query": "</block>", "order": "new"}'),
      `${search('{"query": "x", "order": "new"}')} and so on`,
      `<block type="command" name="find">{}</block>`,
      `<block type="plan">First I look.</block>`,
      `<block type="final">{"title": "x", "score": 6}</block>`,
      `<block type="mcp"><block type="final">1</block></block>`,
      `<block type="mcp">unclosed`
    ]
    for (const reply of wrong) assert.isFalse(fits(reply), reply)
  })

  it("allows any text in an answer except text that would close or nest its block (BP-8, BP-10)", () => {
    const fits = Gbnf.matcher(Gbnf.read(Grammar.toGbnf(Grammar.make({ skills: [] }))))
    for (const text of [
      "",
      "a < b",
      "<<<",
      "<b>bold</b>",
      "</blockquote>",
      "<blocks",
      "</bloc",
      "😀 \n<",
      "<block/",
      "</",
      "<<block"
    ]) {
      assert.isTrue(fits(final(text)), text)
      assert.strictEqual(BlockParser.parse(final(text)).blocks[0]?.content, text)
    }
    for (const text of ["</block>", "x</block>y", "<block >", "<<block>", "</</block>", "<block\n"])
      assert.isFalse(fits(final(text)), text)
  })

  it("escapes hostile names and values inside literals", () => {
    const name = 'x" | root ::= "pwned'
    const hostile = Grammar.make({
      skills: [
        { name, inputSchema: { type: "object" } },
        {
          name: "ok",
          inputSchema: {
            type: "object",
            properties: { [name]: { enum: [name, '"', "\\", "]", "\u0000", "\ud800"] } },
            required: [name]
          }
        }
      ],
      protocols: [{ name: "a\nb ::= c" }]
    })
    const text = Grammar.toGbnf(hostile)
    const fits = Gbnf.matcher(Gbnf.read(text))
    assert.isFalse(fits("pwned"))
    const params = JSON.stringify({ [name]: name })
    assert.isTrue(fits(`<block type="command" name="ok">${params}</block>`))
    assert.strictEqual(
      text.split("\n").filter((line) => line !== "" && !/^[a-z]+(?:-[a-z]+)* ::= [ -~]*$/.test(line)).length,
      0
    )
  })

  it("reads untrusted schemas within bounds: cycles, large sizes, nonsense and deep nesting", () => {
    const deep = (depth: number): { readonly [key: string]: Schema.Json } =>
      depth === 0 ? { type: "string" } : { type: "array", items: deep(depth - 1), minItems: 1 }
    const wide = {
      anyOf: Array.from({ length: 300 }, () => ({
        anyOf: Array.from({ length: 300 }, () => ({
          type: "object",
          properties: { a: { type: "integer", minimum: 0, maximum: 7 } }
        }))
      }))
    }
    const tuple = (depth: number): { readonly [key: string]: Schema.Json } =>
      depth === 0
        ? { type: "string" }
        : { type: "array", prefixItems: [...Array.from({ length: 90 }, () => ({ type: "null" })), tuple(depth - 1)] }
    const schemas: ReadonlyArray<{ readonly [key: string]: Schema.Json }> = [
      { type: "object", properties: { ["k".repeat(20_000)]: {} }, additionalProperties: { type: "string" } },
      tuple(39),
      { $ref: "#" },
      { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } },
      { $ref: "https://example.com/schema" },
      { type: "object", properties: { self: { $ref: "#" } }, required: ["self"] },
      { allOf: [{ allOf: [{ $ref: "#" }] }] },
      { type: ["string", "null", 7] },
      { type: "string", pattern: "(a{1000}){1000}" },
      { type: "string", pattern: "(", minLength: 1e9 },
      { type: "number", minimum: 3, maximum: 2 },
      { type: "integer", minimum: 1e300, maximum: -1e300, multipleOf: 0 },
      { type: "array", minItems: 1e9, items: false },
      { type: "object", properties: Object.fromEntries(Array.from({ length: 2_000 }, (_, key) => [`k${key}`, {}])) },
      { type: "object", properties: { ["__proto__"]: { type: "string" }, constructor: true, "": { const: {} } } },
      { enum: Array.from({ length: times(5_000, 500) }, (_, index) => index) },
      deep(200),
      wide
    ]
    for (const schema of schemas) {
      const text = Grammar.toGbnf(Grammar.fromJsonSchema(schema))
      assert.doesNotThrow(() => Gbnf.read(text), JSON.stringify(schema).slice(0, 80))
      assert.isBelow(text.length, 2_000_000)
    }
  })

  it("samples no number that a double rounds to an excluded bound", () => {
    const bounds: ReadonlyArray<readonly [low: number, high: number]> = [
      [-346997.3437, -346995.0937],
      [0.000000001, 0.000000002],
      [0.1 + 0.2, 0.4],
      [123456789.123456, 123456789.123458],
      [99999999999999.5, 99999999999999.9]
    ]
    for (const [low, high] of bounds) {
      for (const sign of [1, -1]) {
        const [from, to] = sign === 1 ? [low, high] : [-high, -low]
        const drawn = Grammar.sampler(
          Grammar.fromJsonSchema({ type: "number", exclusiveMinimum: from, exclusiveMaximum: to }),
          7
        )
        const isWithin = (text: string) => text !== "" && +text > from && +text < to
        const texts = Array.from({ length: 5_000 }, () => drawn.next())
        assert.deepStrictEqual(
          texts.filter((text) => !isWithin(text)),
          [],
          `${from} to ${to}`
        )
      }
    }
  })

  it.prop(
    "samples numbers within any bounds and rejects those outside",
    [Schema.Finite, Schema.Natural, Schema.Boolean, Schema.Boolean],
    ([start, width, noLow, noHigh]) => {
      const low = Math.round((start % 1e6) * 1e4) / 1e4
      const high = low + (width % 1_000) / 8
      const schema = {
        type: "number",
        [noLow ? "exclusiveMinimum" : "minimum"]: low,
        [noHigh ? "exclusiveMaximum" : "maximum"]: high
      }
      const drawn = Grammar.sampler(Grammar.fromJsonSchema(schema), width)
      const isWithin = (text: string) =>
        text === ""
          ? low === high && (noLow || noHigh)
          : (noLow ? +text > low : +text >= low) && (noHigh ? +text < high : +text <= high)
      const texts = Array.from({ length: 20 }, () => drawn.next())
      assert.deepStrictEqual(
        texts.filter((text) => !isWithin(text)),
        []
      )
      const fits = Gbnf.matcher(
        Gbnf.read(Grammar.toGbnf(Grammar.fromJsonSchema({ type: "integer", minimum: low, maximum: high })))
      )
      const [first, last] = [Math.ceil(low), Math.floor(high)]
      for (const whole of [first, last]) assert.strictEqual(fits(String(whole)), first <= last, String(whole))
      for (const beyond of [first - 1, last + 1]) assert.isFalse(fits(String(beyond)), String(beyond))
    },
    cases()
  )

  it("allows nine decimal digits, also with a single or an exclusive bound", () => {
    for (const [bounds, texts] of [
      [{ minimum: 0 }, ["19.99", "0.123456789", "0"]],
      [{ maximum: -85.015 }, ["-86.015", "-85.015", "-1000000.5"]],
      [{ exclusiveMinimum: 0 }, ["0.999999999", "0.000000001", "3.25"]],
      [{ minimum: 0, exclusiveMaximum: 1 }, ["0.999999999", "0.05"]]
    ] as const) {
      const fits = Gbnf.matcher(Gbnf.read(Grammar.toGbnf(Grammar.fromJsonSchema({ type: "number", ...bounds }))))
      for (const text of texts) assert.isTrue(fits(text), `${JSON.stringify(bounds)} ${text}`)
      for (const text of ["0.1234567891", "-86."]) assert.isFalse(fits(text), text)
    }
  })

  it("demands required properties, even without a schema of their own, and none that is impossible", () => {
    const fits = (schema: Content.JsonObject, text: string) =>
      Gbnf.matcher(Gbnf.read(Grammar.toGbnf(Grammar.fromJsonSchema(schema))))(text)
    const open: Content.JsonObject = { type: "object", properties: { a: { type: "null" } }, required: ["b"] }
    for (const [text, ok] of [
      ['{"a": null,"b": 1}', true],
      ['{"b": []}', true],
      ['{"a": null}', false],
      ["{}", false]
    ] as const) {
      assert.strictEqual(fits(open, text), ok, text)
    }
    assert.isTrue(fits({ ...open, additionalProperties: { type: "integer" } }, '{"b": 1}'))
    assert.isFalse(fits({ ...open, additionalProperties: { type: "integer" } }, '{"b": "x"}'))
    const both: Content.JsonObject = { allOf: [open, { required: ["c"] }] }
    assert.isTrue(fits(both, '{"b": 1,"c": 2}'))
    assert.isFalse(fits(both, '{"b": 1}'))
    const tooFew: Content.JsonObject = { type: "array", prefixItems: [{ type: "null" }], items: false, minItems: 2 }
    assert.isTrue(fits({ anyOf: [tooFew, { type: "null" }] }, "null"))
    assert.isFalse(fits({ anyOf: [tooFew, { type: "null" }] }, "[null]"))
  })

  it("distinguishes empty structs, additional keys and members that never occur", () => {
    const fits = (schema: { readonly [key: string]: Schema.Json }) =>
      Gbnf.matcher(Gbnf.read(Grammar.toGbnf(Grammar.fromJsonSchema(schema))))
    const notNull = fits({ not: { type: "null" } })
    assert.isTrue(notNull("{}") && notNull("[null]") && notNull("7"))
    assert.isFalse(notNull("null"))
    const open = fits({
      type: "object",
      properties: { ab: { type: "integer" }, 'a"': { type: "integer" } },
      required: ["ab"],
      additionalProperties: { type: "string" }
    })
    for (const text of ['{"ab":1}', '{"ab":1,"abc":"x"}', '{"ab":1,"a":"x"}', '{"ab":1,"":"x","x\\u0061":"y"}']) {
      assert.isTrue(open(text), text)
    }
    for (const text of ['{"ab":1,"ab":"x"}', '{"ab":1,"a\\"":"x"}', '{"ab":1,"\\u0061b":"x"}', '{"ab":1,"abc":2}']) {
      assert.isFalse(open(text), text)
    }
    const choice = fits({
      anyOf: [{ type: "object", properties: { a: { not: {} } }, required: ["a"] }, { type: "null" }]
    })
    assert.isTrue(choice("null"))
    assert.isFalse(choice("{}"))
  })

  it("has a JSON form that its JSON Schema describes and that the kernel reads as blocks", () => {
    const schema = Grammar.toJsonSchema(options)
    const drawn = Grammar.sampler(Grammar.fromJsonSchema(schema), 3)
    const reader = () =>
      Dialect.of("blocks", ["json"]).reader(listener, Limits.defaults, {
        provider: "p",
        model: "m"
      })
    const kinds = new Set<string>()
    for (let count = 0; count < 500; count++) {
      const reading = reader()
      const text = drawn.next()
      reading.push([{ type: "text-delta", id: "0", delta: text }])
      const { blocks } = reading.end()
      assert.isNotEmpty(blocks, text)
      for (const block of blocks) {
        kinds.add(`${block.type} ${block.name}`)
        const skill =
          block.type === "command" && !block.name?.startsWith("/") ? byName.get(block.name ?? "") : undefined
        if (skill === undefined) continue
        const called = Effect.runSync(Effect.result(skill.call(skill.parameters(block.content), scope)))
        assert.isTrue(Result.isSuccess(called), `${block.name} ${block.content}`)
      }
    }
    assert.isAtLeast(kinds.size, skills.length + 4 + 2 + 2)
  })

  it("separates the definitions of skills in its JSON form, with their own references", () => {
    const input = (type: string) => ({
      type: "object",
      properties: { own: { $ref: "#/$defs/X" }, same: { $ref: "#/properties/own" }, all: { $ref: "#" } },
      $defs: { X: { type } }
    })
    const schema = Grammar.toJsonSchema({
      skills: [
        { name: "a.b", inputSchema: input("string") },
        { name: "a_b", inputSchema: input("number") },
        { name: "final", inputSchema: input("boolean") }
      ],
      output: input("null")
    })
    const { $defs } = schema
    const definitions = typeof $defs === "object" && $defs !== null ? $defs : {}
    const types = Object.values(definitions).flatMap((part: Schema.Json) =>
      typeof part === "object" && part !== null && "type" in part && part.type !== "object" ? [part.type] : []
    )
    assert.deepStrictEqual(types, ["string", "number", "boolean", "null"])
    const references = JSON.stringify(schema).match(/#\/\$defs\/[^"]*/g) ?? []
    assert.lengthOf(references, 4 * 3 * 2)
    for (const reference of references) {
      const path = reference.split("/").slice(1)
      const found = path.reduce<unknown>((at, key) => Object(at)[key], schema)
      assert.isObject(found, reference)
    }
  })

  it("has structural tags: a begin tag, the skill's schema and an end tag for each command", () => {
    const tag = Grammar.toStructuralTag({ skills: skills.slice(0, 1) })
    assert.deepStrictEqual(tag, {
      type: "structural_tag",
      structures: [
        { begin: '<block type="command" name="search">', schema: skills[0]?.inputSchema ?? {}, end: "</block>" }
      ],
      triggers: ['<block type="command" name="']
    })
  })
})
