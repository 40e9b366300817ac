import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Skill, SkillRegistry } from "kernai"
import { Grammar } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import * as Gbnf from "../support/gbnf.ts"
import { kernel } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"

const add = Skill.make("add", {
  description: "Adds",
  input: Schema.Struct({ a: Schema.Int, b: Schema.Int }),
  effects: "read",
  execute: ({ a, b }) => Effect.succeed(String(a + b))
})
const hidden = Skill.make("hidden", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed("") })
const layer = kernel(add, hidden)
const options = { instructions: "", model: "m", grammar: true }
const call = '<block type="command" name="add">{"a":1,"b":2}</block>'
const final = '<block type="final">3</block>'

describe("an agent held to a grammar", () => {
  it.effect("passes its provider the grammar of what it may call, built once, in every form", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(call, final)
      const run = yield* told(Agent.make({ ...options, skills: ["add"] }), "?", { provider })
      assert.strictEqual(run.text, "3")
      const [first, second] = provider.calls.map((request) => request.grammar)
      assert.isDefined(first)
      assert.strictEqual(first, second)
      assert.strictEqual(first._tag, "Blocks")
      const fits = Gbnf.matcher(Gbnf.read(Grammar.gbnfOf(first)))
      assert.isTrue(fits(call))
      assert.isTrue(fits(final))
      assert.isFalse(fits('<block type="command" name="hidden">{}</block>'))
      assert.include(JSON.stringify(Grammar.jsonSchemaOf(first)), '"enum":["add"]')
      assert.include(JSON.stringify(Grammar.structuralTagOf(first)), 'name=\\"add\\"')
    }).pipe(Effect.provide(layer))
  )

  it.effect("may call a skill that was registered after its grammar was built", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ ...options, skills: "all" })
      const provider = MockProvider.make(final)
      yield* told(agent, "?", { provider })
      const late = Skill.make("late", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed("") })
      yield* SkillRegistry.SkillRegistry.use((registry) => registry.register(late))
      yield* told(agent, "?", { provider })
      const grammars = provider.calls.map(({ grammar }) => JSON.stringify(grammar && Grammar.structuralTagOf(grammar)))
      assert.deepStrictEqual(
        grammars.map((grammar) => grammar.includes('name=\\"late\\"')),
        [false, true]
      )
    }).pipe(Effect.scoped, Effect.provide(layer))
  )

  it.effect("is understood when a server that accepts only JSON Schemas returns the JSON form", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(
        '{"blocks":[{"type":"plan","content":"I add."},{"type":"command","name":"add","content":{"a":1,"b":2}}]}',
        '{"blocks":[{"type":"final","content":"three"}]}'
      )
      const run = yield* told(Agent.make({ ...options, skills: "all" }), "?", { provider })
      assert.strictEqual(run.text, "three")
      assert.include(JSON.stringify(provider.messagesAt(0)?.[0]), "Where you can write JSON only")
      assert.deepStrictEqual(
        provider
          .messagesAt(1)
          ?.at(-1)
          ?.content.map((part) => (part.type === "text" ? part.text : "")),
        ['<block type="result" name="add">3</block>']
      )
    }).pipe(Effect.provide(layer))
  )

  it.effect("is held only to the schema of its answer when it cannot act, and its answer is no call", () =>
    Effect.gen(function* () {
      const output = Schema.Struct({ name: Schema.String, input: Schema.String })
      const provider = MockProvider.make('{"name": "add", "input": "{}"}')
      const run = yield* told(Agent.make({ ...options, output }), "?", { provider })
      assert.strictEqual(run.text, '{"name": "add", "input": "{}"}')
      const grammar = provider.lastCall?.grammar
      assert.isDefined(grammar)
      assert.isTrue(Gbnf.matcher(Gbnf.read(Grammar.gbnfOf(grammar)))('{"name":"","input":"x"}'))
      assert.deepInclude(Grammar.jsonSchemaOf(grammar), { type: "object", required: ["name", "input"] })
    }).pipe(Effect.provide(layer))
  )

  it.effect("passes no grammar unless it is requested, nor beside native calls, nor for free text", () =>
    Effect.gen(function* () {
      const agents = [
        Agent.make({ ...options, grammar: false, skills: "all" }),
        Agent.make({ ...options, dialect: "tools", skills: "all" }),
        Agent.make(options)
      ]
      for (const agent of agents) {
        const provider = MockProvider.make(final)
        yield* told(agent, "?", { provider })
        assert.notProperty(provider.lastCall, "grammar")
        assert.notInclude(JSON.stringify(provider.messagesAt(0)), "Where you can write JSON only")
      }
    }).pipe(Effect.provide(layer))
  )

  it.effect("shows the model the whole recursive schema of an answer, and decodes its dates", () => {
    interface Node {
      readonly at: Date
      readonly next: Node | null
    }
    const Node = Schema.Struct({
      at: Schema.Date,
      next: Schema.NullOr(Schema.suspend((): Schema.Codec<Node, unknown> => Node))
    }).annotate({ identifier: "Node" })
    return Effect.gen(function* () {
      const answer = '{"at":"2026-01-02T00:00:00.000Z","next":null}'
      const provider = MockProvider.make(`<block type="final">${answer}</block>`)
      const agent = Agent.make({ ...options, skills: "all", output: Node })
      const run = yield* told(agent, "?", { provider })
      assert.isUndefined(run.failure)
      const completed = run.events.findLast((event) => event.type === "run_completed")
      assert.deepStrictEqual(completed?.result?.output, { at: new Date("2026-01-02T00:00:00.000Z"), next: null })
      const [system] = provider.lastCall?.messages ?? []
      const said = system?.content[0]?.type === "text" ? system.content[0].text : ""
      assert.include(said, '{"type":"object","properties":{"at":{"type":"string","format":"date-time"}')
      assert.include(said, '"$defs"')
      const grammar = provider.lastCall?.grammar
      assert.isDefined(grammar)
      assert.isTrue(Gbnf.matcher(Gbnf.read(Grammar.gbnfOf(grammar)))(`<block type="final">${answer}</block>`))
    }).pipe(Effect.provide(layer))
  })
})
