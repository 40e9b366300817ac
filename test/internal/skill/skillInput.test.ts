import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, SchemaGetter, SchemaIssue } from "effect"
import * as Content from "../../../src/Content.ts"
import { paramsOf } from "../../../src/internal/skill/skillInput.ts"
import * as Skill from "../../../src/Skill.ts"
import { scope } from "../../support/skillSpec.ts"
import { misfit, sentence, skillOf } from "../../support/skills.ts"

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
