import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Schema, SchemaGetter } from "effect"
import * as Skill from "../src/Skill.ts"
import { scope } from "./support/skillSpec.ts"
import { misfit, sentence, skillOf } from "./support/skills.ts"

describe("Skill.make", () => {
  it.effect("passes execute the decoded input, without undeclared parameters (BP-86)", () =>
    Effect.gen(function* () {
      const skill = skillOf(Schema.Struct({ at: Schema.Date, nested: Schema.Struct({ a: Schema.Int }) }))
      const value = yield* skill.call({ at: "2026-11-21T00:00:00.000Z", nested: { a: 1, b: 2 }, c: 3 }, scope)
      assert.deepStrictEqual(value, { at: new Date("2026-11-21T00:00:00.000Z"), nested: { a: 1 } })
    })
  )

  it.effect("encodes a result by the schema of its output, without undeclared fields", () =>
    Effect.gen(function* () {
      const skill = Skill.make("probe", {
        description: "",
        input: Schema.Struct({}),
        output: Schema.Struct({ at: Schema.Date }),
        execute: () => Effect.succeed({ at: new Date(0), secret: "1234" })
      })
      assert.deepStrictEqual(yield* skill.call({}, scope), { at: "1970-01-01T00:00:00.000Z" })
      assert.isTrue(Schema.isSchema(skill.output))
    })
  )

  it.effect("does not execute on invalid input (AC-14)", () =>
    Effect.gen(function* () {
      let calls = 0
      const skill = Skill.make("probe", {
        description: "",
        input: Schema.Struct({ n: Schema.Int }),
        execute: () => Effect.sync(() => ++calls)
      })
      const error = yield* misfit(skill, { n: "one" })
      assert.deepStrictEqual([calls, error.skill, error.path], [0, "probe", "n"])
      yield* skill.call({ n: 1 }, scope)
      assert.strictEqual(calls, 1)
    })
  )

  it.effect("passes execute the context of its call", () =>
    Effect.gen(function* () {
      const skill = Skill.make("where", {
        description: "",
        input: Schema.Struct({}),
        execute: (_, context) => Effect.succeed([context.runId, context.callId, context.step, context.runContext])
      })
      const value = yield* skill.call({}, { ...scope, runId: "r", callId: "c", step: 3, runContext: { actor: "me" } })
      assert.deepStrictEqual(value, ["r", "c", 3, { actor: "me" }])
    })
  )

  it("has write effects by default, and matching annotations (AC-15)", () => {
    const write = skillOf(Schema.Struct({}))
    const read = Skill.make("r", {
      description: "",
      input: Schema.Struct({}),
      effects: "read",
      annotations: { title: "Read", openWorld: false },
      execute: () => Effect.succeed(null)
    })
    assert.deepStrictEqual(
      [write.effects, write.annotations],
      ["write", { readonly: false, destructive: true, idempotent: false, openWorld: true }]
    )
    assert.deepStrictEqual(read.annotations, {
      title: "Read",
      readonly: true,
      destructive: false,
      idempotent: true,
      openWorld: false
    })
  })

  it("lists constant defaults as a model would write them, without running the code of others", () => {
    let ran = 0
    const skill = skillOf(
      Schema.Struct({
        since: Schema.Date.pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(new Date(0)))),
        owner: Schema.NullOr(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed(null))),
        id: Schema.String.pipe(Schema.withDecodingDefaultKey(Effect.sync(() => `id-${++ran}`)))
      })
    )
    assert.include(
      skill.listing,
      "since (string) default: 1970-01-01T00:00:00.000Z, owner (string|null) default: null, id (string) optional"
    )
    assert.strictEqual(ran, 0)
  })

  it("describes its input as one JSON Schema object, with defaults", () => {
    const skill = skillOf(
      Schema.Struct({
        sql: Schema.String,
        timeout: Schema.Finite.pipe(Schema.withDecodingDefaultKey(Effect.succeed(30)))
      })
    )
    assert.deepStrictEqual(skill.inputSchema, {
      type: "object",
      properties: { sql: { type: "string" }, timeout: { type: "number", default: 30 } },
      required: ["sql"],
      additionalProperties: false
    })
  })

  it("merges a union of structs into one object that requires their common fields", () => {
    const skill = skillOf(
      Schema.Union([
        Schema.Struct({ op: Schema.Literal("add"), text: Schema.String }),
        Schema.Struct({ op: Schema.Literal("drop"), id: Schema.String })
      ])
    )
    assert.strictEqual(skill.inputSchema["type"], "object")
    assert.deepStrictEqual(skill.inputSchema["required"], ["op"])
    assert.strictEqual(
      skill.listing,
      `- probe: Probe\n  Inputs: op ("add"|"drop"), text (string) optional, id (string) optional\n` +
        `  Usage: <block type="command" name="probe">{"op": "...", "text": "...", "id": "..."}</block>`
    )
  })

  it.effect("accepts a recursive class as input", () =>
    Effect.gen(function* () {
      interface Tree {
        readonly name: string
        readonly kids: ReadonlyArray<Tree>
      }
      const Tree = Schema.Struct({
        name: Schema.String,
        kids: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
      })
      const skill = skillOf(Tree)
      assert.deepStrictEqual(skill.inputSchema["required"], ["name", "kids"])
      const value = yield* skill.call({ name: "a", kids: [{ name: "b", kids: [] }] }, scope)
      assert.deepStrictEqual(value, { name: "a", kids: [{ name: "b", kids: [] }] })
      assert.strictEqual(
        yield* sentence(skill, { name: "a", kids: [{ name: 1, kids: [] }] }),
        "Expected kids[0].name to be string, got integer."
      )
    })
  )

  it.effect("wraps a schema that is not an object as the single parameter `input`", () =>
    Effect.gen(function* () {
      const skill = skillOf(Schema.String)
      assert.deepStrictEqual(skill.parameters(" hello "), { input: "hello" })
      assert.strictEqual(yield* skill.call(skill.parameters("hello"), scope), "hello")
      assert.deepStrictEqual(skill.inputSchema["required"], ["input"])
      assert.strictEqual(yield* sentence(skill, { input: 5 }), "Expected input to be string, got integer.")
      assert.strictEqual(yield* sentence(skill, {}), "Missing required input: input for skill 'probe'.")
    })
  )

  it.effect("drops all parameters when none is declared (BP-86)", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* skillOf(Schema.Struct({})).call({ more: 1 }, scope), {})
    })
  )

  it.effect("needs no parameters when its input is void", () =>
    Effect.gen(function* () {
      const skill = Skill.make("now", { description: "Now", input: Schema.Void, execute: () => Effect.succeed("now") })
      assert.strictEqual(yield* skill.call(skill.parameters(""), scope), "now")
      assert.deepStrictEqual([skill.inputSchema, skill.listing], [{ type: "object", properties: {} }, "- now: Now"])
    })
  )

  it.effect("keeps undeclared parameters when the schema says so, prototype keys as plain data (S-10)", () =>
    Effect.gen(function* () {
      const skill = skillOf(Schema.Record(Schema.String, Schema.Json))
      const params = skill.parameters(`{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}`)
      assert.deepStrictEqual(Object.keys(params), ["__proto__", "constructor"])
      const value = yield* skill.call(params, scope)
      assert.deepStrictEqual(Object.keys(value ?? {}), ["__proto__", "constructor"])
      assert.isUndefined(Reflect.get({}, "polluted"))
    })
  )

  it.effect("reports a missing parameter that is named like a member of Object.prototype (S-10)", () =>
    Effect.gen(function* () {
      const skill = skillOf(Schema.Struct({ constructor: Schema.optionalKey(Schema.String), toString: Schema.String }))
      assert.strictEqual(yield* sentence(skill, {}), "Missing required input: toString for skill 'probe'.")
      assert.deepStrictEqual(yield* skill.call({ toString: "x" }, scope), { toString: "x" })
      const inner = skillOf(Schema.Struct({ list: Schema.Array(Schema.Struct({ constructor: Schema.String })) }))
      const told = "Missing required input: list[0].constructor for skill 'probe'."
      assert.strictEqual(yield* sentence(inner, { list: [{}] }), told)
    })
  )

  it.effect("decodes with the services its schema requires", () =>
    Effect.gen(function* () {
      class Names extends Context.Service<Names, { readonly of: (id: string) => Effect.Effect<string> }>()("Names") {}
      const Named = Schema.String.pipe(
        Schema.decodeTo(Schema.String, {
          decode: SchemaGetter.transformEffect((id: string) => Names.use((names) => names.of(id))),
          encode: SchemaGetter.passthrough()
        })
      )
      const skill = skillOf(Schema.Struct({ who: Named }))
      const value = yield* skill
        .call({ who: "1" }, scope)
        .pipe(Effect.provideService(Names, { of: (id) => Effect.succeed(`name of ${id}`) }))
      assert.deepStrictEqual(value, { who: "name of 1" })
    })
  )
})

describe("Skill listing (BP-94)", () => {
  it("shows names, types and defaults, and declared settings without values", () => {
    const skill = Skill.make("report", {
      description: "Write a report",
      input: Schema.Struct({
        rows: Schema.Array(Schema.Struct({ id: Schema.Int, note: Schema.NullOr(Schema.String) })),
        format: Schema.Literals(["pdf", "md"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("md"))),
        limit: Schema.optionalKey(Schema.Finite),
        tags: Schema.NullOr(Schema.Array(Schema.String))
      }),
      config: { endpoint: { default: "http://localhost" }, retries: { type: "integer" } },
      credentials: { token: { required: true }, user: {} },
      execute: () => Effect.succeed("ok")
    })
    assert.strictEqual(
      skill.listing,
      [
        "- report: Write a report",
        `  Inputs: rows (array<object{id: integer, note: string|null}>), format ("pdf"|"md") default: md, limit (number) optional, tags (array|null)`,
        `  Usage: <block type="command" name="report">{"rows": "...", "format": "...", "limit": "...", "tags": "..."}</block>`,
        "  Config: endpoint (string) default: http://localhost, retries (integer)",
        "  Credentials: token (required), user"
      ].join("\n")
    )
  })

  it("accepts a foreign schema of any shape", () => {
    const loop = { type: "object", properties: { a: { $ref: "#/$defs/a" } }, $defs: { a: { $ref: "#/$defs/a" } } }
    for (const inputSchema of [
      loop,
      {},
      { type: ["object", "null"] },
      { properties: { x: 1, y: null, z: { anyOf: [] } } }
    ]) {
      const skill = Skill.dynamic("foreign", { description: "", inputSchema, execute: () => Effect.succeed(null) })
      assert.isTrue(skill.listing.startsWith("- foreign"))
      assert.deepStrictEqual(Object.keys(skill.parameters("text")).length, 1)
    }
  })
})

describe("Skill.dynamic", () => {
  it.effect("passes parameters through unchanged", () =>
    Effect.gen(function* () {
      const skill = Skill.dynamic("remote", {
        description: "",
        source: "mcp",
        inputSchema: { type: "object", properties: { path: { type: "string" } } },
        execute: (input) => Effect.succeed(input)
      })
      assert.strictEqual(skill.source, "mcp")
      assert.deepStrictEqual(skill.parameters("/tmp"), { path: "/tmp" })
      assert.deepStrictEqual(yield* skill.call({ path: 1, more: true }, scope), { path: 1, more: true })
    })
  )
})
