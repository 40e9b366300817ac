import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer, Redacted, Result, Schema, SchemaGetter, SchemaIssue } from "effect"
import * as Content from "../src/Content.ts"
import * as Media from "../src/Media.ts"
import { paramsOf } from "../src/internal/skill/skillInput.ts"
import * as Skill from "../src/Skill.ts"
import { scope } from "./support/skillSpec.ts"
import { cases } from "./support/property.ts"

const skillOf = <S extends Schema.Constraint>(input: S) =>
  Skill.make("probe", { description: "Probe", input, execute: (value) => Effect.succeed(value) })

/** Returns the error a model receives for invalid input. */
const misfit = (skill: Skill.AnySkill, params: Content.JsonObject, where: Skill.CallScope = scope) =>
  Effect.map(Effect.flip(skill.call(params, where)), (error) => {
    if (!(error instanceof Skill.InvalidArguments)) throw error
    return error
  })

const sentence = (skill: Skill.AnySkill, params: Content.JsonObject) =>
  Effect.map(misfit(skill, params), (error) => error.message.split("\n\n")[0])

describe("Skill.make", () => {
  it.effect("passes execute the decoded input, without undeclared parameters (BP-86)", () =>
    Effect.gen(function* () {
      const skill = skillOf(Schema.Struct({ at: Schema.Date, nested: Schema.Struct({ a: Schema.Int }) }))
      const value = yield* skill.call({ at: "2026-11-21T00:00:00.000Z", nested: { a: 1, b: 2 }, c: 3 }, scope)
      assert.deepStrictEqual(value, { at: new Date("2026-11-21T00:00:00.000Z"), nested: { a: 1 } })
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

describe("Skill parameters (BP-68)", () => {
  const two = skillOf(Schema.Struct({ a: Schema.String, b: Schema.String }))

  it("keeps text as `input` when several parameters are declared", () => {
    assert.deepStrictEqual(two.parameters("hello"), { input: "hello" })
  })

  it("reads input of a person or hook that is not an object as text written by a model", () => {
    const one = skillOf(Schema.Struct({ to: Schema.String }))
    assert.deepStrictEqual(paramsOf(one, "Oslo"), { to: "Oslo" })
    assert.deepStrictEqual(paramsOf(one, ["Oslo"]), one.parameters(`["Oslo"]`))
    assert.deepStrictEqual(paramsOf(two, 5), { input: "5" })
    assert.deepStrictEqual(paramsOf(two, null), { input: "null" })
    assert.deepStrictEqual(paramsOf(two, { request: "b" }), { request: "b" })
  })

  it("treats JSON nested deeper than the limit as text", () => {
    const deep = `{"a":${"[".repeat(200)}${"]".repeat(200)}}`
    assert.deepStrictEqual(two.parameters(deep), { input: deep })
  })

  it("reads a number too large for JSON as text, never as Infinity (BP-69)", () => {
    assert.deepStrictEqual(two.parameters(`{"a":1e400,"b":[-1e999],"__proto__":1}`), {
      a: "Infinity",
      b: ["-Infinity"],
      ["__proto__"]: 1
    })
  })

  it.effect("rejects an integer that a double cannot represent (BP-69)", () =>
    Effect.gen(function* () {
      const skill = skillOf(Schema.Struct({ id: Schema.Int }))
      const error = yield* misfit(skill, skill.parameters(`{"id":9007199254740993}`))
      assert.include(error.message, "Expected id to be an integer")
    })
  )
})

describe("Skill input errors (BP-87)", () => {
  const Ticket = Schema.Struct({ priority: Schema.Int, tags: Schema.Array(Schema.String) })
  const skill = skillOf(
    Schema.Struct({
      tickets: Schema.Array(Ticket),
      mode: Schema.optionalKey(Schema.Literals(["fast", "slow"])),
      owner: Schema.optionalKey(Schema.NullOr(Schema.String)),
      limit: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThan(0))),
      due: Schema.optionalKey(Schema.Date)
    })
  )

  it.effect("report the path, the expected and the actual value", () =>
    Effect.gen(function* () {
      const said = (params: Content.JsonObject) => sentence(skill, { tickets: [], ...params })
      const ticket = { priority: 1, tags: [] }
      assert.strictEqual(
        yield* said({ tickets: [ticket, { priority: "high", tags: [] }] }),
        "Expected tickets[1].priority to be integer, got string."
      )
      assert.strictEqual(
        yield* said({ tickets: [{ priority: 1.5, tags: [] }] }),
        "Expected tickets[0].priority to be integer, got number."
      )
      assert.strictEqual(yield* said({ owner: true }), "Expected owner to be string or null, got boolean.")
      assert.strictEqual(yield* said({ mode: "slowly" }), `Expected mode to be "fast" or "slow", got "slowly".`)
      assert.strictEqual(yield* said({ limit: 0 }), "Expected limit to be a value greater than 0, got 0.")
      assert.strictEqual(yield* said({ due: "soon" }), `Expected due to be a valid Date, got "soon".`)
      assert.strictEqual(yield* said({ tickets: {} }), "Expected tickets to be array, got object.")
    })
  )

  it.effect("repeat names and usage, except for a deeply nested part", () =>
    Effect.gen(function* () {
      const top = yield* misfit(skill, { ticket: [] })
      assert.strictEqual(
        top.message,
        [
          "Missing required input: tickets for skill 'probe'.",
          "",
          "Got params:      ticket",
          "Expected params: tickets, mode, owner, limit, due",
          `Usage:           <block type="command" name="probe">{"tickets": "...", "mode": "...", "owner": "...", "limit": "...", "due": "..."}</block>`
        ].join("\n")
      )
      const nothing = yield* misfit(skill, {})
      const unnamed = yield* misfit(skill, { "": "x" })
      assert.include(unnamed.message, "Got params:      (none)")
      assert.include(nothing.message, "Got params:      (none)\n")
      const deep = yield* misfit(skill, { tickets: [{ priority: 1 }] })
      assert.strictEqual(deep.message, "Missing required input: tickets[0].tags for skill 'probe'.")
    })
  )

  it.effect("report only the first problem in declared order (BP-86)", () =>
    Effect.gen(function* () {
      const pair = skillOf(Schema.Struct({ a: Schema.Int, b: Schema.Int }))
      assert.strictEqual(yield* sentence(pair, { b: "x", a: "y" }), "Expected a to be integer, got string.")
    })
  )

  it.effect("report the message of a schema's own check", () =>
    Effect.gen(function* () {
      const ordered = skillOf(
        Schema.Struct({ from: Schema.Int, to: Schema.Int }).check(
          Schema.makeFilter(({ from, to }) => (from <= to ? undefined : "from is after to"))
        )
      )
      assert.strictEqual(
        yield* sentence(ordered, { from: 2, to: 1 }),
        "Invalid parameters for skill 'probe': from is after to"
      )
      const refusing = skillOf(
        Schema.Struct({
          image: Schema.String.pipe(
            Schema.decodeTo(Schema.String, {
              decode: SchemaGetter.transformEffect((id: string) =>
                Effect.fail(new SchemaIssue.InvalidValue({ message: `no media with id '${id}'` }))
              ),
              encode: SchemaGetter.passthrough()
            })
          )
        })
      )
      assert.strictEqual(
        yield* sentence(refusing, { image: "m1" }),
        "Invalid image for skill 'probe': no media with id 'm1'"
      )
    })
  )

  it.effect("show a model that wrote text how to write JSON (W-36)", () =>
    Effect.gen(function* () {
      const count = skillOf(Schema.Struct({ n: Schema.Int }))
      const plain = yield* misfit(count, count.parameters("5"))
      assert.isTrue(
        plain.message.endsWith(`\n\nHint: write it as JSON: <block type="command" name="probe">{"n": 1}</block>`)
      )
      const broken = yield* misfit(skill, skill.parameters(`{"tickets": "line\nbreak"}`))
      assert.include(broken.message, "\n\nHint: the content was read as text, for it is not JSON: ")
      const right = yield* misfit(count, { n: true })
      assert.notInclude(right.message, "Hint")
    })
  )

  it.effect("show arguments instead of a block to a model with native calls, which would write the block as text", () =>
    Effect.gen(function* () {
      const native = { ...scope, dialect: "tools" } as const
      const input = Schema.Struct({ path: Schema.String, lines: Schema.optionalKey(Schema.Array(Schema.Int)) })
      const missing = yield* misfit(skillOf(input), {}, native)
      assert.include(missing.message, `Usage:           {"path": <string>, "lines": <`)
      assert.notInclude(missing.message, `"..."`)
      const text = yield* misfit(skillOf(Schema.Struct({ n: Schema.Int })), { n: "5" }, native)
      assert.isTrue(text.message.endsWith(`Hint: write it as JSON: {"n": 1}`))
      assert.notInclude(missing.message + text.message, "<block")
    })
  )

  it.effect("quote only the start of a long value", () =>
    Effect.gen(function* () {
      const said = yield* misfit(skill, { tickets: [], mode: "x".repeat(10_000) })
      assert.isBelow(said.message.length, 500)
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

describe("Skill and hostile schemas", () => {
  it("reads a bounded part of a schema with exponentially many references", () => {
    const many = Array.from({ length: 30 }, () => ({ $ref: "#/$defs/a" }))
    const inputSchema = {
      type: "object",
      properties: { a: { anyOf: many }, b: { type: "array", items: { $ref: "#/$defs/o" } } },
      $defs: {
        a: { anyOf: many },
        o: { type: "object", properties: Object.fromEntries(many.map((_, at) => [`p${at}`, { $ref: "#/$defs/o" }])) }
      }
    }
    const skill = Skill.dynamic("foreign", { description: "", inputSchema, execute: () => Effect.succeed(null) })
    assert.isBelow(skill.listing.length, 100_000)
  })

  it.effect("quotes a bounded part of a call with many names", () =>
    Effect.gen(function* () {
      const params = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`name${at}`, at]))
      const error = yield* misfit(skillOf(Schema.Struct({ q: Schema.String })), params)
      assert.isBelow(error.message.length, 1_000)
    })
  )
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

describe("Skill settings (BP-92, BP-93)", () => {
  const asking = (ask: (context: Skill.SkillContext) => Effect.Effect<unknown, unknown>) =>
    Skill.make("mail-er", {
      description: "",
      input: Schema.Struct({}),
      config: {
        host: { default: "localhost" },
        port: { type: "integer" },
        ratio: { type: "number" },
        debug: { type: "boolean", default: false }
      },
      credentials: { token: { required: true }, hint: {} },
      execute: (_, context) => ask(context)
    }).call({}, scope)

  const env = (values: Record<string, string>) =>
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: values }))

  it.effect("reads KERNAI_SKILL_<SKILL>_<KEY> through the ConfigProvider", () =>
    Effect.gen(function* () {
      const token = yield* asking((context) => context.credential("token"))
      assert.isTrue(Redacted.isRedacted(token))
      assert.notInclude(String(token), "s3cret")
      assert.strictEqual(Redacted.isRedacted(token) ? Redacted.value(token) : undefined, "s3cret")
      assert.strictEqual(yield* asking((context) => context.config("port")), 25)
    }).pipe(env({ KERNAI_SKILL_MAIL_ER_TOKEN: "s3cret", KERNAI_SKILL_MAIL_ER_PORT: "25", TOKEN: "bare" }))
  )

  it.effect("treats a value the ConfigProvider cannot read as not set (BP-93)", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* asking((context) => context.config("host")), "localhost")
      assert.isNull(yield* asking((context) => context.credential("hint")))
    }).pipe(
      Effect.provideService(
        ConfigProvider.ConfigProvider,
        ConfigProvider.make(() => Effect.fail(new ConfigProvider.SourceError({ message: "the disk is gone" })))
      )
    )
  )

  it.effect("never falls back to the bare key, and names the variable that is missing", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(asking((context) => context.credential("token")))
      assert.strictEqual(
        String(error).replace(/^\w+: /, ""),
        "credential 'token' of skill 'mail-er' is missing: set KERNAI_SKILL_MAIL_ER_TOKEN"
      )
      assert.isNull(yield* asking((context) => context.credential("hint")))
    }).pipe(env({ TOKEN: "bare", HINT: "bare" }))
  )

  it.effect("returns the default, coerces strings, and rejects a string of another type", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* asking((context) => context.config("host")), "localhost")
      assert.isNull(yield* asking((context) => context.config("port")))
      const typed = asking((context) =>
        Effect.all([context.config("port"), context.config("ratio"), context.config("debug")])
      )
      const on = { port: "8080", ratio: "0.5", debug: "Yes" }
      assert.deepStrictEqual(yield* Effect.provide(typed, Skill.layerConfig(on)), [8080, 0.5, true])
      const off = { port: "80", ratio: "1e3", debug: "0" }
      assert.deepStrictEqual(yield* Effect.provide(typed, Skill.layerConfig(off)), [80, 1000, false])
      for (const bad of [{ port: "80x" }, { port: "1.5" }, { ratio: "" }, { ratio: "Infinity" }]) {
        const error = yield* Effect.flip(Effect.provide(typed, Skill.layerConfig({ ...on, ...bad })))
        assert.instanceOf(error, Skill.SkillSettingInvalid)
      }
    }).pipe(env({}))
  )

  it.effect("prefers nested values of a skill over flat ones", () =>
    Effect.gen(function* () {
      const hosts = Skill.layerConfig({ host: "flat", "mail-er": { host: "nested" }, other: { host: "foreign" } })
      assert.strictEqual(
        yield* Effect.provide(
          asking((context) => context.config("host")),
          hosts
        ),
        "nested"
      )
      const secret = Skill.layerCredentials({ token: Redacted.make("flat") })
      const token = yield* Effect.provide(
        asking((context) => context.credential("token")),
        secret
      )
      assert.strictEqual(Redacted.isRedacted(token) ? Redacted.value(token) : undefined, "flat")
    })
  )

  it.effect("lists the declared keys when an undeclared one is requested", () =>
    Effect.gen(function* () {
      const config = yield* Effect.flip(asking((context) => context.config("constructor")))
      assert.include(String(config), "declared: host, port, ratio, debug")
      const credential = yield* Effect.flip(asking((context) => context.credential("host")))
      assert.include(String(credential), "declared: token, hint")
    })
  )

  it.effect("treats an empty result of a resolver as not set (BP-92)", () =>
    Effect.gen(function* () {
      const nothing: null = Reflect.get({}, "absent")
      const resolver = { resolve: () => Effect.succeed(nothing) }
      const host = asking((context) => context.config("host"))
      assert.strictEqual(yield* Effect.provideService(host, Skill.ConfigResolver, resolver), "localhost")
      const token = asking((context) => context.credential("token"))
      const missing = yield* Effect.flip(Effect.provideService(token, Skill.CredentialResolver, resolver))
      assert.instanceOf(missing, Skill.CredentialMissing)
    }).pipe(env({}))
  )

  it.effect("calls the resolver once per key and execution, and not before", () =>
    Effect.gen(function* () {
      const asked: Array<string> = []
      const counting = Layer.succeed(Skill.CredentialResolver, {
        resolve: (skill, key) =>
          Effect.sync(() => {
            asked.push(`${skill}.${key}`)
            return null
          })
      })
      const twice = asking((context) => Effect.all([context.credential("hint"), context.credential("hint")]))
      assert.deepStrictEqual(asked, [])
      yield* Effect.provide(twice, counting)
      assert.deepStrictEqual(asked, ["mail-er.hint"])
      yield* Effect.provide(twice, counting)
      assert.deepStrictEqual(asked, ["mail-er.hint", "mail-er.hint"])
    })
  )
})

describe("Skill.toOutput (BP-72, BP-73)", () => {
  const png = Media.fromBytes(new Uint8Array([1, 2, 3]), "image/png")
  const output = (value: unknown) => Result.getOrThrow(Skill.toOutput(value))

  it("turns null into one empty text, and keeps a string", () => {
    assert.deepStrictEqual(output(null), { content: [Content.text("")], media: [], value: null })
    assert.deepStrictEqual(output("hi"), { content: [Content.text("hi")], media: [], value: "hi" })
  })

  it("returns an object as data and other JSON as its text (AC-14)", () => {
    assert.deepStrictEqual(output(0).content, [Content.text("0")])
    assert.deepStrictEqual(output(false).content, [Content.text("false")])
    assert.deepStrictEqual(output({ a: [1, null] }), {
      content: [Content.data({ a: [1, null] })],
      media: [],
      value: { a: [1, null] }
    })
  })

  it("keeps strings and media of a list, and converts other items to text", () => {
    const given = output(["a", png, 1, null, { b: 2 }])
    assert.deepStrictEqual(given.content.map(Content.toText).join(""), `a1{"b":2}`)
    assert.deepStrictEqual(given.media, [png])
    assert.deepStrictEqual(output([]), { content: [], media: [], value: [] })
  })

  it("splits a result into text, media and metadata (BP-154)", () => {
    const given = output(Skill.result("done", { media: png, metadata: { cost: 1 } }))
    assert.deepStrictEqual(given, {
      content: [Content.text("done")],
      media: [png],
      metadata: { cost: 1 },
      value: "done"
    })
    assert.deepStrictEqual(output(Skill.result()), { content: [Content.text("")], media: [], value: "" })
  })

  it("keeps contents, and leaves JSON with a `type` of its own unchanged", () => {
    assert.deepStrictEqual(output(Content.code("x", "ts")).content, [Content.code("x", "ts")])
    const video = { type: "video", url: "https://example.test/v", title: "V" }
    assert.deepStrictEqual(output(video).content, [Content.data(video)])
  })

  it("does not mistake frozen JSON for a content because of its `type` (R-22)", () => {
    const others: ReadonlyArray<Content.JsonObject> = [
      { type: "data", rows: [1] },
      { type: "text", text: 5 },
      { type: "error", error_type: "E", message: "m" },
      { type: "image", image: { url: "x" } },
      { type: "tool_use", callId: "c", toolName: "t" },
      { type: "tool_result", callId: "c", content: ["x"] },
      { type: "unknown" }
    ]
    for (const other of others) {
      assert.deepStrictEqual(output(Object.freeze({ ...other })).content, [Content.data(other)])
      assert.deepStrictEqual(output([Object.freeze({ ...other })]).content, [Content.data(other)])
    }
    const contents = [
      Content.data({}),
      Content.error("E", "m"),
      Content.image({ fileId: "f" }),
      Content.audio({ data: new Uint8Array([1]) }),
      Content.toolUse("c", "t"),
      Content.toolResult("c", [Content.thinking("t"), Content.uiResource("ui://a")]),
      Result.getOrThrow(Content.decode({ type: "weather" }))
    ]
    for (const content of contents) assert.deepStrictEqual(output(content).content, [content])
  })

  it("accepts only a complete medium as one, and treats others as JSON (R-22)", () => {
    const whole = { kind: "image", mimeType: "image/png", metadata: {} }
    const others: ReadonlyArray<Content.JsonObject> = [
      JSON.parse(JSON.stringify(png)),
      { ...whole, source: { _tag: "Url", url: 5 } },
      { ...whole, source: { _tag: "Zip" } },
      { ...whole, mimeType: 5, source: { _tag: "Url", url: "u" } },
      { ...whole, kind: "smell", source: { _tag: "Url", url: "u" } },
      { ...whole, metadata: null, source: { _tag: "Url", url: "u" } }
    ]
    for (const other of others) assert.deepStrictEqual(output(other).content, [Content.data(other)])
    for (const media of [png, Media.fromUrl("u"), Media.fromPath("p")]) {
      assert.deepStrictEqual(output(media).media, [media])
    }
  })

  it("rejects a result with invalid text or media, with the path (R-22)", () => {
    const result = Skill.result("done")
    const cases: ReadonlyArray<readonly [unknown, string]> = [
      [{ ...result, text: 5 }, "/text"],
      [{ ...result, text: null }, "/text"],
      [{ ...result, media: [png, "x"] }, "/media/1"],
      [[{ ...result, media: null }], "/0/media/0"]
    ]
    for (const [value, path] of cases) {
      const refused = Skill.toOutput(value)
      assert.isTrue(Result.isFailure(refused) && refused.failure.path === path, path)
    }
  })

  it("never prints the bytes of a medium", () => {
    const value = JSON.stringify(output(png).value)
    assert.include(value, "image/png")
    assert.notInclude(value, "[1,2,3]")
  })

  it("rejects values JSON cannot represent, with the path (R-22)", () => {
    const cycle: { self?: unknown } = {}
    cycle.self = cycle
    const cases: ReadonlyArray<readonly [unknown, string]> = [
      [[undefined], "/0"],
      [{ a: { b: undefined } }, "/a/b"],
      [{ a: [1n] }, "/a/0"],
      [[Number.NaN], "/0"],
      [{ n: Infinity }, "/n"],
      [{ e: new Error("secret") }, "/e"],
      [new Error("secret"), ""],
      [{ m: new Map() }, "/m"],
      [{ s: new Set() }, "/s"],
      [{ d: new Date() }, "/d"],
      [{ f: () => 1 }, "/f"],
      [{ f: Symbol("x") }, "/f"],
      [{ b: new Uint8Array(1) }, "/b"],
      [{ p: Promise.resolve(1) }, "/p"],
      [
        {
          j: {
            toJSON: () => {
              throw new Error("secret")
            }
          }
        },
        "/j"
      ],
      [
        {
          get g(): never {
            throw new Error("secret")
          }
        },
        "/g"
      ],
      [{ ...Skill.result("x"), metadata: { m: 1n } }, "/metadata/m"]
    ]
    for (const [value, path] of cases) {
      const result = Skill.toOutput(value)
      assert.isTrue(Result.isFailure(result), path)
      if (!Result.isFailure(result)) continue
      assert.strictEqual(result.failure.path, path)
      assert.notInclude(result.failure.message, "secret")
    }
    const looped = Skill.toOutput(cycle)
    assert.isTrue(Result.isFailure(looped) && looped.failure.path.startsWith("/self"))
    assert.isTrue(
      Result.isFailure(
        Skill.toOutput(
          new Proxy(
            {},
            {
              has: () => {
                throw new Error("secret")
              }
            }
          )
        )
      )
    )
  })

  it.prop(
    "returns any JSON unchanged (R-22)",
    [Schema.Json],
    ([json]) => {
      assert.deepStrictEqual(output(json).value, json)
    },
    cases()
  )

  it("copies the value, so later changes have no effect", () => {
    const value = { a: [1] }
    const given = output(value)
    value.a.push(2)
    assert.deepStrictEqual(given.value, { a: [1] })
  })
})
