import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Effect, FileSystem, Path, Result, Schema } from "effect"
import { Agent, Kernel } from "kernai"
import { AgentFile } from "kernai/file"
import { McpConfig } from "kernai/mcp"
import { MockProvider } from "kernai/testing"
import { readFileSync } from "node:fs"
import { kernel } from "../support/kernel.ts"
import { Config } from "../../src/internal/agent/agentConfig.ts"

const yaml = `
name: librarian
system_prompt: |
  You answer from the library.
  Never guess.
model: anthropic/claude-sonnet-4-20250514
skills: [search, read]
max_steps: 5
budget:
  max_tokens: 1000
output_schema:
  type: object
  required: [title]
  properties:
    title: { type: string, minLength: 2 }
x_owner: books
`

describe("AgentFile", () => {
  it.effect("reads an agent from YAML and from JSON alike", () =>
    Effect.gen(function* () {
      const agent = yield* AgentFile.parse(yaml)
      assert.strictEqual(agent.name, "librarian")
      assert.strictEqual(agent.instructions, "You answer from the library.\nNever guess.\n")
      assert.deepStrictEqual(agent.skills, ["search", "read"])
      assert.deepStrictEqual(agent.budget, { maxTokens: 1000 })
      assert.deepStrictEqual(agent.extra, { x_owner: "books" })
      const text = yield* Effect.fromResult(AgentFile.stringify(agent))
      const again = yield* AgentFile.parse(text, "json")
      assert.strictEqual(yield* Effect.fromResult(AgentFile.stringify(again)), text)
    })
  )

  it.effect("keeps its MCP servers as they are written, and is their config", () =>
    Effect.gen(function* () {
      const servers = { files: { command: "npx", args: ["-y", "x"], env: { API_KEY: "${API_KEY}" } } }
      const text = JSON.stringify({ system_prompt: "x", model: "m", mcpServers: servers })
      const agent = yield* AgentFile.parse(text)
      assert.deepStrictEqual(agent.mcpServers, servers)
      assert.deepStrictEqual(agent.extra, {})
      const again = yield* AgentFile.parse(yield* Effect.fromResult(AgentFile.stringify(agent)))
      assert.deepStrictEqual(again.mcpServers, servers)
      const config = yield* McpConfig.fromYaml(text, { env: { API_KEY: "k" } })
      assert.deepStrictEqual([...config.servers.keys()], ["files"])
      const wrong = yield* Effect.flip(AgentFile.parse("system_prompt: x\nmodel: m\nmcpServers: {files: npx}"))
      assert.strictEqual(wrong.path, "mcpServers.files")
    })
  )

  it.effect("decodes answers with the schema in the file, and reports errors to the model", () =>
    Effect.gen(function* () {
      const agent = { ...(yield* AgentFile.parse(yaml)), skills: "all" as const }
      const provider = MockProvider.make(
        '<block type="final">{"title":"x"}</block>',
        '<block type="final">{"title":"Emma"}</block>'
      )
      const result = yield* Kernel.run(agent, "Which book?", { provider })
      assert.deepStrictEqual(result.output, { title: "Emma" })
      assert.include(JSON.stringify(provider.messagesAt(0)?.[0]), "minLength")
      assert.include(JSON.stringify(provider.messagesAt(1)?.at(-1)), "required shape")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("rejects an invalid file with the path: bombs, tags, prototypes, patterns, wrong values (S-3, S-12)", () =>
    Effect.gen(function* () {
      const bomb = Array.from({ length: 9 }, (_, index) => {
        const item = index === 0 ? "x" : `*a${index - 1}`
        return `a${index}: &a${index} [${Array.from({ length: 9 }, () => item).join(", ")}]`
      }).join("\n")
      for (const [text, tag, path] of [
        [bomb, "ConfigInvalid", ""],
        ["system_prompt: !!js/function 'x'\nmodel: m", "ConfigInvalid", ""],
        ["system_prompt: x\nmodel: m\n__proto__: {a: 1}", "ConfigInvalid", ""],
        ["- a", "AgentConfigInvalid", ""],
        ["system_prompt: x\nmodel: m\nmax_steps: many", "AgentConfigInvalid", "max_steps"],
        [
          "system_prompt: x\nmodel: m\noutput_schema: {type: string, pattern: '(a+)+$'}",
          "AgentConfigInvalid",
          "output_schema"
        ],
        [
          "system_prompt: x\nmodel: m\noutput_schema: {$ref: '#/$defs/a', $defs: {a: {$ref: '#/$defs/b'}, b: {$ref: '#/$defs/a'}}}",
          "AgentConfigInvalid",
          "output_schema"
        ],
        ["system_prompt: x\nmodel: m\noutput_schema: 3", "AgentConfigInvalid", "output_schema"],
        ["system_prompt: x\nmodel: m\noutput_schema: {$ref: 'http://evil/x'}", "AgentConfigInvalid", "output_schema"]
      ] as const) {
        const error = yield* Effect.flip(AgentFile.parse(text))
        assert.strictEqual(error._tag, tag, text)
        assert.strictEqual(error.path, path, text)
      }
      for (const [value, name] of [
        [".inf", "Infinity"],
        ["-.inf", "-Infinity"],
        [".nan", "NaN"]
      ] as const) {
        const { message } = yield* Effect.flip(AgentFile.parse(`system_prompt: x\nmodel: m\ntemperature: ${value}`))
        assert.strictEqual(
          message,
          `the agent cannot be read: at 'temperature' it contains ${name}, which is not a valid number`
        )
      }
      const within = yield* Effect.flip(AgentFile.parse("a: 1\nb: [0, {c: .inf}]\nd: 2"))
      assert.include(within.message, "at 'b.1.c' it contains Infinity")
      const pattern = "system_prompt: x\nmodel: m\noutput_schema: {properties: {a: {type: string, pattern: '^a'}}}"
      assert.strictEqual(
        (yield* Effect.flip(AgentFile.parse(pattern))).message,
        "invalid agent at 'output_schema': it has a 'pattern', which would be matched against what a model writes in whatever time that takes: leave it out"
      )
      const deep = `${"[".repeat(200)}${"]".repeat(200)}`
      const long = JSON.stringify({ system_prompt: "x".repeat(300_000), model: "m" })
      // Measured in bytes, as the file would be.
      const wide = JSON.stringify({ system_prompt: "€".repeat(100_000), model: "m" })
      for (const text of ["[", deep, long, wide]) {
        assert.strictEqual((yield* Effect.flip(AgentFile.parse(text, "json")))._tag, "ConfigInvalid")
      }
    })
  )

  it.effect("fails for an unknown key with its place and the nearest right one", () =>
    Effect.gen(function* () {
      const base = "system_prompt: x\nmodel: m\n"
      for (const [text, path, advice] of [
        [`${base}max_step: 3`, "max_step", "did you mean 'max_steps'?"],
        [`${base}maxSteps: 3`, "maxSteps", "did you mean 'max_steps'?"],
        ["system_prompt: x\nmodle: m", "modle", "did you mean 'model'?"],
        ["system_promt: x\nmodel: m", "system_promt", "did you mean 'system_prompt'?"],
        [`${base}budget: {max_token: 3}`, "budget.max_token", "did you mean 'max_tokens'?"],
        [`${base}spawn: {depth: 3}`, "spawn.depth", "known keys: max_agents, max_concurrent, max_depth"],
        [`${base}thinking: {efort: high}`, "thinking.efort", "did you mean 'effort'?"],
        ["system_prompt: x\nmodel: {id: m, privider: openai}", "model.privider", "did you mean 'provider'?"],
        [
          "system_prompt: x\nmodel: {id: m, price: {input_per_milion: 1, output_per_million: 2}}",
          "model.price.input_per_milion",
          "did you mean 'input_per_million'?"
        ]
      ] as const) {
        const error = yield* Effect.flip(AgentFile.parse(text))
        assert.strictEqual(error.path, path)
        assert.strictEqual(error.message, `invalid agent at '${path}': is not a known key; ${advice}`)
      }
      const own = `${base}x_owner: me\nx-tag: 1\n$schema: s\nprovider_options: {any: {thing: 1}}`
      assert.deepStrictEqual((yield* AgentFile.parse(own)).extra, { x_owner: "me", "x-tag": 1, $schema: "s" })
    })
  )

  it.effect("suggests the right key when the file uses its name in code (AC-23)", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(AgentFile.parse("instructions: You help.\nmodel: m"))
      assert.strictEqual(
        error.message,
        "invalid agent at 'system_prompt': Missing key; a config has system_prompt instead of instructions"
      )
    })
  )

  it.effect("reports an answer that nests too deeply for its schema to the model, and continues", () =>
    Effect.gen(function* () {
      const list = { type: "object", properties: { next: { $ref: "#/$defs/list" } } }
      const config = { system_prompt: "", model: "m", output_schema: { $ref: "#/$defs/list", $defs: { list } } }
      // An editor may put a mark before the text.
      const agent = yield* AgentFile.parse(`\uFEFF${JSON.stringify(config)}`, "json")
      const deep = `${'{"next":'.repeat(100_000)}{}${"}".repeat(100_000)}`
      const provider = MockProvider.make(deep, '{"next":{}}')
      const result = yield* Kernel.run(agent, "?", { provider })
      assert.deepStrictEqual(result.output, { next: {} })
      assert.include(JSON.stringify(provider.messagesAt(1)?.at(-1)), "required shape")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("loads one agent, or a folder of them by name", () =>
    Effect.gen(function* () {
      const fs = yield* FileSystem.FileSystem
      const path = yield* Path.Path
      const folder = yield* fs.makeTempDirectoryScoped()
      yield* fs.writeFileString(path.join(folder, "b.YAML"), yaml)
      yield* fs.writeFileString(path.join(folder, "a.json"), '{"name":"a","system_prompt":"A","model":"m"}')
      yield* fs.writeFileString(path.join(folder, "notes.txt"), "nothing")
      assert.strictEqual((yield* AgentFile.load(path.join(folder, "a.json"))).instructions, "A")
      const agents = yield* AgentFile.loadAll(folder)
      assert.deepStrictEqual([...agents.keys()], ["a", "librarian"])
      yield* fs.writeFileString(path.join(folder, "c.yml"), "name: a\nsystem_prompt: C\nmodel: m")
      assert.include((yield* Effect.flip(AgentFile.loadAll(folder))).message, "called 'a'")
      yield* fs.writeFileString(path.join(folder, "c.yml"), "name: c\nmodel: m")
      assert.include((yield* Effect.flip(AgentFile.loadAll(folder))).message, `(in '${path.join(folder, "c.yml")}')`)
      yield* fs.writeFileString(path.join(folder, "c.yml"), "a: [")
      assert.include((yield* Effect.flip(AgentFile.loadAll(folder))).message, `(in '${path.join(folder, "c.yml")}')`)
      for (const wrong of [folder, path.join(folder, "none.yaml")]) {
        assert.strictEqual((yield* Effect.flip(AgentFile.load(wrong)))._tag, "ConfigInvalid")
      }
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it("publishes a JSON Schema that describes every key, and allows none but a user's own", () => {
    const schema = AgentFile.jsonSchema()
    const published: unknown = JSON.parse(readFileSync(new URL("../../agent.schema.json", import.meta.url), "utf8"))
    assert.deepStrictEqual(published, schema, "agent.schema.json is not what AgentFile.jsonSchema() gives")
    assert.strictEqual(schema["title"], "kernai agent")
    assert.deepStrictEqual(schema["required"], ["system_prompt", "model"])
    assert.isFalse(schema["additionalProperties"])
    const Described = Schema.Struct({ description: Schema.NonEmptyString })
    const { properties } = Schema.decodeUnknownSync(
      Schema.Struct({ properties: Schema.Record(Schema.String, Described) })
    )(schema)
    assert.deepStrictEqual(Object.keys(properties), Object.keys(Config.fields))
    assert.isTrue(Result.isSuccess(Agent.fromConfig({ system_prompt: "", model: "m" })))
  })
})
