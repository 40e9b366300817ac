import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Result, Schema } from "effect"
import { Agent, Kernel, Model, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { Config, unknownKey } from "../src/internal/agent/agentConfig.ts"
import { canonical } from "./support/canonical.ts"
import { kernel } from "./support/kernel.ts"
import { cases } from "./support/property.ts"

const full = Agent.make({
  name: "librarian",
  description: "Finds books",
  instructions: "You know every book.\n{{library}}",
  model: Model.make("m", {
    capabilities: ["text", "vision"],
    provider: "p",
    contextWindow: 1_000,
    maxOutputTokens: 100,
    price: { inputPerMillion: 1, outputPerMillion: 2.5, cachedPerMillion: 0.1 }
  }),
  skills: ["search", "read"],
  protocols: ["mcp"],
  gate: "listing",
  maxSteps: 3,
  prose: "final",
  dialect: "tools",
  markups: ["tool_call", "json"],
  grammar: true,
  concurrency: 2,
  taskConcurrency: 3,
  maxRepeats: 4,
  generation: {
    temperature: 0.5,
    maxTokens: 99,
    topP: 0.9,
    stopSequences: ["!"],
    seed: 7,
    thinking: { effort: "low" },
    extra: { openai: { logprobs: true } }
  },
  budget: { maxTokens: 1_000, maxCostUsd: 1.5, deadline: Duration.seconds(30) },
  spawn: { maxAgents: 4, maxDepth: 2 },
  contextWindow: 500,
  reservedOutputTokens: 50
})

const small = Agent.make({ instructions: "Answer.", model: "anthropic/claude-sonnet-4" })

const search = Skill.make("search", {
  description: "",
  input: Schema.Struct({}),
  execute: () => Effect.succeed("")
})

/** Without the schema, which is another one each time it is made. */
const comparable = (agent: Agent.Agent<unknown>) => {
  const { output: _, outputJsonSchema: __, ...rest } = agent
  return rest
}

describe("Agent.toConfig and fromConfig (AC-23)", () => {
  it("round-trip every setting of an agent", () => {
    for (const agent of [full, small]) {
      const again = Result.getOrThrow(Agent.fromConfig(Result.getOrThrow(Agent.toConfig(agent))))
      assert.deepStrictEqual(comparable(again), comparable(agent))
    }
  })

  it("round-trip every model of the catalogue, which a file then takes without an unknown key", () => {
    for (const model of Model.catalogue.flatMap(({ models }) => models)) {
      const config = Result.getOrThrow(Agent.toConfig({ ...small, model, dialect: "auto" }))
      const again = Result.getOrThrow(Agent.fromConfig(config))
      assert.deepStrictEqual(again.model, model)
      assert.strictEqual(again.dialect, "auto")
      assert.isUndefined(unknownKey(config))
    }
  })

  it("write snake_case with a version and omit defaults", () => {
    assert.deepStrictEqual(Result.getOrThrow(Agent.toConfig(small)), {
      version: 1,
      system_prompt: "Answer.",
      model: "anthropic/claude-sonnet-4"
    })
    assert.deepStrictEqual(Result.getOrThrow(Agent.toConfig(full)), {
      version: 1,
      name: "librarian",
      description: "Finds books",
      system_prompt: "You know every book.\n{{library}}",
      model: {
        id: "m",
        capabilities: ["text", "vision"],
        provider: "p",
        context_window: 1_000,
        max_output_tokens: 100,
        price: { input_per_million: 1, output_per_million: 2.5, cached_per_million: 0.1 }
      },
      skills: ["search", "read"],
      protocols: ["mcp"],
      gate: "listing",
      max_steps: 3,
      prose: "final",
      dialect: "tools",
      markups: ["tool_call", "json"],
      grammar: true,
      concurrency: 2,
      task_concurrency: 3,
      max_repeats: 4,
      temperature: 0.5,
      max_tokens: 99,
      top_p: 0.9,
      stop_sequences: ["!"],
      seed: 7,
      thinking: { effort: "low" },
      provider_options: { openai: { logprobs: true } },
      budget: { max_tokens: 1_000, max_cost_usd: 1.5, deadline_s: 30 },
      spawn: { max_agents: 4, max_depth: 2 },
      context_window: 500,
      reserved_output_tokens: 50
    })
  })

  it.effect.prop(
    "round-trip every valid config",
    [Config],
    ([config]) =>
      Effect.gen(function* () {
        // A cost limit needs a price, and a typed answer needs a schema.
        const { budget: { max_cost_usd: _, ...budget } = {}, output_schema: __, ...rest } = config
        const given = { ...rest, budget }
        const agent = yield* Effect.fromResult(Agent.fromConfig(given))
        const written = yield* Effect.fromResult(Agent.toConfig(agent))
        const again = yield* Effect.fromResult(Agent.fromConfig(written))
        assert.deepStrictEqual(comparable(again), comparable(agent))
        assert.deepStrictEqual(yield* Effect.fromResult(Agent.toConfig(again)), written)
      }),
    cases()
  )

  it("keep unknown keys as plain data (S-10)", () => {
    const config = JSON.parse(
      '{"system_prompt":"","model":"m","x_owner":{"team":["a"]},"__proto__":{"polluted":1},"constructor":1}'
    ) as unknown
    const agent = Result.getOrThrow(Agent.fromConfig(config))
    const written = Result.getOrThrow(Agent.toConfig(agent))
    assert.deepStrictEqual(written["x_owner"], { team: ["a"] })
    assert.strictEqual(JSON.stringify(Object.getOwnPropertyDescriptor(written, "__proto__")?.value), '{"polluted":1}')
    assert.isUndefined(({} as { readonly polluted?: unknown }).polluted)
  })

  it("accept an unlimited value for a limit and for thinking", () => {
    const budget = { maxTokens: Infinity, maxCostUsd: Infinity, deadline: Infinity }
    const open = Agent.make({
      instructions: "",
      model: { id: "m", capabilities: ["text"], price: { inputPerMillion: 1, outputPerMillion: 1 } },
      budget,
      spawn: { maxAgents: Infinity, maxDepth: 1 },
      generation: { thinking: { budget: -1 } }
    })
    assert.isUndefined(Agent.problem(open))
  })

  it("omit an unlimited value, which means the same (AC-23)", () => {
    const budget = { maxTokens: Infinity, maxCostUsd: Infinity, deadline: Infinity }
    const open = Agent.make({ instructions: "", model: "m", budget: { ...budget, maxTokens: 3 } })
    const config = Result.getOrThrow(Agent.toConfig(open))
    assert.deepStrictEqual(config["budget"], { max_tokens: 3 })
    assert.deepStrictEqual(Result.getOrThrow(Agent.fromConfig(config)).budget, { maxTokens: 3 })
  })

  it("write a deadline to the microsecond and omit one that a config cannot express (AC-23)", () => {
    const again = (deadline: number) => {
      const agent = Agent.make({ instructions: "", model: "m", budget: { deadline } })
      return Result.getOrThrow(Agent.fromConfig(Result.getOrThrow(Agent.toConfig(agent)))).budget.deadline
    }
    for (const deadline of [0, 0.4, 1_500.5, 2_000.001, 1e12])
      assert.strictEqual(Duration.toMillis(again(deadline) ?? 0), deadline)
    assert.isUndefined(again(Number.MAX_SAFE_INTEGER))
  })

  it("write only fields of an agent, and none that is undefined", () => {
    const settings = { temperature: 0.5, model: "another", system_prompt: "Be another." }
    const price = { inputPerMillion: 1, outputPerMillion: 2 }
    Object.defineProperty(price, "cachedPerMillion", { value: undefined, enumerable: true })
    const agent = Agent.make({ instructions: "Answer.", model: Model.make("m", { price }), generation: settings })
    assert.deepStrictEqual(Result.getOrThrow(Agent.toConfig(agent)), {
      version: 1,
      temperature: 0.5,
      system_prompt: "Answer.",
      model: { id: "m", capabilities: ["text"], price: { input_per_million: 1, output_per_million: 2 } }
    })
  })

  it("keep unknown keys of nested objects in their place (AC-23)", () => {
    const config = JSON.parse(`{
      "version": 1,
      "system_prompt": "",
      "model": {
        "id": "m", "capabilities": ["text"], "x_region": "eu", "constructor": 1,
        "price": { "input_per_million": 1, "output_per_million": 2, "x_batch": { "input": 0.5 } }
      },
      "thinking": { "effort": "high", "x_shown": false },
      "budget": { "max_token": 5 },
      "spawn": { "max_agents": 3, "max_depth": 1, "__proto__": { "polluted": 1 } }
    }`) as unknown
    const agent = Result.getOrThrow(Agent.fromConfig(config))
    assert.deepStrictEqual(agent.budget, {})
    const written = Result.getOrThrow(Agent.toConfig(agent))
    assert.strictEqual(canonical(written), canonical(config))
    assert.deepStrictEqual(comparable(Result.getOrThrow(Agent.fromConfig(written))), comparable(agent))
    // A model given by name has no fields for foreign keys.
    assert.strictEqual(Result.getOrThrow(Agent.toConfig({ ...agent, model: "n" }))["model"], "n")
  })

  it("read max_turns as an alias of max_steps, also within the budget", () => {
    const budget = { max_turns: 3, max_tokens: 5 }
    const within = Result.getOrThrow(Agent.fromConfig({ system_prompt: "", model: "m", budget }))
    assert.deepStrictEqual([within.maxSteps, within.budget], [3, { maxTokens: 5 }])
    const agent = Result.getOrThrow(Agent.fromConfig({ system_prompt: "", model: "m", max_turns: 7 }))
    assert.strictEqual(agent.maxSteps, 7)
    const both = Result.getOrThrow(Agent.fromConfig({ system_prompt: "", model: "m", max_turns: 7, max_steps: 2 }))
    assert.strictEqual(both.maxSteps, 2)
  })

  it("reads null as if the field were omitted: no skills, all protocols (AC-18)", () => {
    const agent = Result.getOrThrow(Agent.fromConfig({ system_prompt: "", model: "m", skills: null, protocols: null }))
    assert.isUndefined(agent.skills)
    assert.isUndefined(agent.protocols)
    assert.notProperty(Result.getOrThrow(Agent.toConfig(agent)), "skills")
    const none = Result.getOrThrow(Agent.fromConfig({ system_prompt: "", model: "m", skills: [], protocols: [] }))
    assert.deepStrictEqual([none.skills, none.protocols], [[], []])
  })

  it("write skill values as their names", () => {
    const agent = Agent.make({ instructions: "", model: "m", skills: [search] })
    assert.deepStrictEqual(Result.getOrThrow(Agent.toConfig(agent))["skills"], ["search"])
  })

  it("reject an invalid config with the path of the error (AC-22)", () => {
    const base = { system_prompt: "", model: "m" }
    for (const [path, config] of [
      ["", []],
      ["system_prompt", { model: "m" }],
      ["model", { system_prompt: "" }],
      ["model", { system_prompt: "", instructions: "x" }],
      ["x_since[0]", { ...base, x_since: [new Date(0)] }],
      ["model", { ...base, model: "" }],
      ["max_steps", { ...base, max_steps: 0 }],
      ["max_steps", { ...base, max_steps: "3" }],
      ["skills[1]", { ...base, skills: ["a", 2] }],
      ["dialect", { ...base, dialect: "xml" }],
      ["budget.max_tokens", { ...base, budget: { max_tokens: -1 } }],
      ["budget.deadline_s", { ...base, budget: { deadline_s: 1e10 } }],
      ["budget.max_cost_usd", { ...base, model: { id: "m" }, budget: { max_cost_usd: 1 } }],
      ["version", { ...base, version: 2 }],
      ["name", { ...base, name: "" }],
      ["temperature", { ...base, temperature: -1 }],
      ["top_p", { ...base, top_p: 1.5 }],
      ["output_schema", { ...base, output_schema: { type: "object" } }]
    ] as const) {
      const read = Agent.fromConfig(config)
      assert.isTrue(Result.isFailure(read), path)
      if (Result.isFailure(read)) {
        assert.deepInclude(read.failure, { _tag: "AgentConfigInvalid", path })
        // Only a config with `instructions` gets the hint about the name.
        assert.notInclude(read.failure.message, "instructions")
      }
    }
  })

  it("reject an invalid agent made in code (AC-22)", () => {
    const base = { instructions: "", model: "m" }
    for (const [path, options] of [
      ["temperature", { generation: { temperature: Number.NaN } }],
      ["temperature", { generation: { temperature: Infinity } }],
      ["topP", { generation: { topP: 2 } }],
      ["maxTokens", { generation: { maxTokens: 0 } }],
      ["seed", { generation: { seed: 1.5 } }],
      ["thinking.budget", { generation: { thinking: { budget: -2 } } }],
      ["thinking.budget", { generation: { thinking: { budget: 0.5 } } }],
      ["budget.maxTokens", { budget: { maxTokens: -1 } }],
      ["budget.maxTokens", { budget: { maxTokens: 100.5 } }],
      ["budget.deadline", { budget: { deadline: Number.NaN } }],
      ["spawn.maxAgents", { spawn: { maxAgents: 1.5, maxDepth: 1 } }],
      ["spawn.maxDepth", { spawn: { maxAgents: 1, maxDepth: -1 } }],
      ["spawn.maxDepth", { spawn: { maxAgents: 1, maxDepth: 0.5 } }],
      ["contextWindow", { contextWindow: 0.5 }],
      ["maxSteps", { maxSteps: 0 }],
      ["agents[0]", { skills: ["search"], agents: [Agent.make({ ...base, name: "search" })] }],
      ["handoffs[0]", { skills: ["transfer_to_b"], handoffs: [Agent.make({ ...base, name: "b" })] }],
      ["model", { model: "" }],
      ["model.id", { model: { id: "", capabilities: ["text"] } }],
      [
        "budget.maxCostUsd",
        { model: Model.make("m", { price: { inputPerMillion: NaN, outputPerMillion: 1 } }), budget: { maxCostUsd: 1 } }
      ]
    ] as const) {
      assert.strictEqual(Agent.problem(Agent.make({ ...base, ...options }))?.path, path)
    }
    assert.isUndefined(Agent.problem(full))
  })

  it("refuse to write what is not data, such as instructions that are an Effect, or NaN", () => {
    for (const [path, agent] of [
      ["instructions", Agent.make({ instructions: Effect.succeed("now"), model: "m" })],
      ["temperature", Agent.make({ instructions: "", model: "m", generation: { temperature: Number.NaN } })]
    ] as const) {
      const written = Agent.toConfig(agent)
      assert.isTrue(Result.isFailure(written), path)
      if (Result.isFailure(written)) assert.deepInclude(written.failure, { _tag: "AgentConfigInvalid", path })
    }
  })

  it("write the JSON Schema of a typed answer and read it back", () => {
    const output = Schema.Struct({ title: Schema.String })
    const config = Result.getOrThrow(Agent.toConfig(Agent.make({ instructions: "", model: "m", output })))
    assert.deepInclude(config["output_schema"], { type: "object", required: ["title"] })
    const agent = Result.getOrThrow(Agent.fromConfig(config, { output }))
    assert.isTrue(agent.typed)
  })

  it.effect("produce an agent that can run", () =>
    Effect.gen(function* () {
      const agent = yield* Effect.fromResult(Agent.fromConfig({ system_prompt: "Shout.", model: "m", skills: "all" }))
      const provider = MockProvider.make('<block type="final">HI</block>')
      const result = yield* Kernel.run(agent, "hi", { provider })
      assert.strictEqual(result.text, "HI")
      assert.include(JSON.stringify(provider.messagesAt(0)?.[0]), "Shout.")
    }).pipe(Effect.provide(kernel(search)))
  )
})

describe("the JSON Schema of an answer", () => {
  class City extends Schema.Class<City>("City")({ name: Schema.String }) {}
  class Trip extends Schema.Class<Trip>("Trip")({ from: City, via: Schema.Array(City) }) {}
  interface Tree {
    readonly name: string
    readonly below: ReadonlyArray<Tree>
  }
  const Tree = Schema.Struct({
    name: Schema.String,
    below: Schema.Array(Schema.suspend((): Schema.Codec<Tree> => Tree))
  }).annotate({ identifier: "Tree" })

  const schemaOf = (output: Schema.ConstraintDecoder<unknown>) =>
    Agent.make({ instructions: "", model: "m", output }).outputJsonSchema?.() ?? {}

  const keysOf = (value: unknown) => (typeof value === "object" && value !== null ? Object.keys(value) : [])

  it("inlines its root once and contains the definitions it refers to", () => {
    assert.notProperty(schemaOf(City), "$defs")
    assert.deepInclude(schemaOf(City), { type: "object", required: ["name"] })
    const { $defs, ...trip } = schemaOf(Trip)
    assert.deepStrictEqual(keysOf($defs), ["CityEncoded"])
    assert.include(JSON.stringify(trip), `{"$ref":"#/$defs/CityEncoded"}`)
  })

  it("keeps the definition of a recursive type", () => {
    const { $defs, type } = schemaOf(Tree)
    assert.strictEqual(type, "object")
    assert.deepStrictEqual(keysOf($defs), ["Tree"])
  })

  it("is equally short as the input of a skill", () => {
    const make = (input: Schema.Codec<object, object>) =>
      Skill.make("s", { description: "", input, execute: () => Effect.succeed("") }).inputSchema
    assert.notProperty(make(City), "$defs")
    assert.deepStrictEqual(keysOf(make(Trip)["$defs"]), ["CityEncoded"])
  })
})
