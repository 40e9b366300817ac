/** One agent, one scenario: in both dialects, at four vendors (recorded where there is a recording, else synthetic). */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { HttpClient } from "effect/http"
import { Agent, Kernel, type Provider, Skill } from "kernai"
import { Cassette } from "kernai/testing"
import * as fs from "node:fs"
import { vendor } from "../support/provider.ts"
import { kernel, of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"

const degrees = new Map([
  ["Rome", "21 degrees, sunny"],
  ["Oslo", "3 degrees, snow"]
])

const weather = Skill.make("weather", {
  description: "Current weather of a city",
  input: Schema.Struct({ city: Schema.String }),
  effects: "read",
  execute: ({ city }) => Effect.succeed(degrees.get(city) ?? "11 degrees, rain")
})

const fixture = (file: string) =>
  Cassette.parse(fs.readFileSync(new URL(`../fixtures/${file}.json`, import.meta.url), "utf8"))

/** A provider that plays a cassette, and what it was asked. */
const played = Effect.fnUntraced(function* (cassette: Cassette.Cassette) {
  const asked: Array<Schema.Json> = []
  const client = Cassette.player(cassette.interactions, {
    cut: { seed: asked.length + 1 },
    check: (_, body) => Effect.sync(() => void asked.push(body))
  })
  const provider: Provider.ProviderShape = yield* Effect.provideService(
    vendor(cassette.vendor)({}),
    HttpClient.HttpClient,
    client
  )
  return { asked, provider }
})

const question = "Rome or Oslo for a walk today?"
const agentOf = (dialect: Agent.DialectName, model: string) =>
  Agent.make({
    name: "walker",
    instructions: "You know the weather.",
    model,
    skills: "all",
    dialect,
    concurrency: 2,
    generation: { maxTokens: 1024 }
  })

/** A request without what kernai itself words, and without the options that are not the vendor's format of tools. */
const essence = (body: Schema.Json): Schema.Json => unmarked(comparable(body))

/** Leaves out the marks of prompt caching, which the recordings do not have. */
const unmarked = (body: Schema.Json): Schema.Json =>
  JSON.parse(JSON.stringify(body, (key, value: unknown) => (key === "cache_control" ? undefined : value)))

const comparable = (body: Schema.Json): Schema.Json => {
  if (typeof body !== "object" || body === null || !("stream" in body || "contents" in body)) return body
  const {
    generationConfig: _,
    max_tokens: __,
    options: ___,
    system: ____,
    systemInstruction: _____,
    ...rest
  } = body as {
    readonly [key: string]: Schema.Json
  }
  const { messages } = rest
  if (!Array.isArray(messages)) return rest
  const isSystem = (message: Schema.Json) =>
    typeof message === "object" && message !== null && "role" in message && message.role === "system"
  return { ...rest, messages: messages.filter((message: Schema.Json) => !isSystem(message)) }
}

for (const name of ["anthropic", "openai", "google", "ollama"]) {
  describe(name, () => {
    for (const dialect of ["blocks", "tools"] as const) {
      it.effect(`answers the scenario in ${dialect}, with two calls in one reply`, () =>
        Effect.gen(function* () {
          const cassette = yield* fixture(`toolbox/${name}_${dialect}`)
          const { asked, provider } = yield* played(cassette)
          const run = yield* told(agentOf(dialect, cassette.model), question, { provider })
          assert.strictEqual(run.text, cassette.expected_result)
          assert.deepStrictEqual(
            of(run.events, "skill_result").map((event) => event.output),
            ["21 degrees, sunny", "3 degrees, snow"]
          )
          const [first, second] = of(run.events, "model_completed")
          assert.deepStrictEqual(first?.usage, {
            inputTokens: 50,
            cachedTokens: 0,
            outputTokens: 20,
            reasoningTokens: 0
          })
          assert.strictEqual(first?.finishReason, dialect === "tools" ? "tool-calls" : "stop")
          assert.strictEqual(second?.outcome.type, "final")
          assert.deepStrictEqual(
            asked.map(essence),
            cassette.interactions.map((exchange) => essence(exchange.request.body))
          )
        }).pipe(Effect.provide(kernel(weather)))
      )
    }
  })
}

describe("recordings of the block dialect", () => {
  for (const name of ["openai_scenario_weather", "ollama_scenario_weather"]) {
    it.effect(`${name} is played by the same agent`, () =>
      Effect.gen(function* () {
        const cassette = yield* fixture(`cassettes/${name}`)
        const { provider } = yield* played(cassette)
        const run = yield* told(
          agentOf("blocks", cassette.model),
          "I'm in London, should I go for a bike ride today?",
          {
            provider
          }
        )
        assert.isUndefined(run.failure)
        assert.include(of(run.events, "skill_result")[0]?.output, "11 degrees")
        assert.isNotEmpty(run.text)
      }).pipe(Effect.provide(kernel(weather)))
    )
  }
})

describe("one run", () => {
  it.effect("keeps its dialect when a resume sets another one", () =>
    Effect.gen(function* () {
      const cassette = yield* fixture("toolbox/anthropic_tools")
      const { asked, provider } = yield* played(cassette)
      const { name, stream } = provider
      let calls = 0
      const cutting: Provider.ProviderShape = {
        name,
        stream: (request) => (calls++ === 1 ? Stream.die("cut") : stream(request))
      }
      yield* Effect.exit(Kernel.run(agentOf("tools", cassette.model), question, { provider: cutting, runId: "r" }))
      const result = yield* Kernel.resume(agentOf("blocks", cassette.model), "r", { provider })
      assert.strictEqual(result.text, cassette.expected_result)
      assert.deepStrictEqual(asked.map(essence).at(-1), essence(cassette.interactions[1]?.request.body ?? null))
    }).pipe(Effect.provide(kernel(weather)))
  )

  it.effect("sends a history of native calls in a form its vendor accepts, in either dialect", () =>
    Effect.gen(function* () {
      const { provider } = yield* played(yield* fixture("toolbox/google_tools"))
      const before = yield* Kernel.run(agentOf("tools", "gemini-2.5-flash"), question, { provider })
      for (const name of ["anthropic", "openai", "ollama"]) {
        const cassette = yield* fixture(`toolbox/${name}_blocks`)
        const { asked, provider } = yield* played(cassette)
        const run = yield* told(agentOf("blocks", cassette.model), question, { provider, history: before.messages })
        assert.strictEqual(run.text, cassette.expected_result)
        const text = JSON.stringify(asked[0])
        assert.notMatch(text, /tool_use|tool_calls|tool_result|thoughtSignature|c2lnbmVk/)
        assert.include(text, "21 degrees, sunny")
      }
    }).pipe(Effect.provide(kernel(weather)))
  )
})
