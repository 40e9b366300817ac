/** Options of an agent that its model does not take. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { HttpClient } from "effect/http"
import { Agent, type Generation, Model, Skill } from "kernai"
import { AiSdkProvider, LanguageModelProvider } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import { chunk, ending } from "../support/chatStream.ts"
import { kernel, of } from "../support/kernel.ts"
import { bodyOf, request, stub, vendor, vendors } from "../support/provider.ts"
import { told } from "../support/toolbox.ts"

const all: Generation.Generation = {
  temperature: 0.5,
  topP: 0.9,
  maxTokens: 100,
  stopSequences: ["end"],
  seed: 987654,
  thinking: { budget: 1_000, effort: "low" }
}

const step = Skill.make("step", {
  description: "Steps",
  input: Schema.Struct({}),
  effects: "read",
  execute: () => Effect.succeed("stepped")
})

describe("an option that a model does not take", () => {
  it.effect("is left out of the request, and named by one reply", () =>
    Effect.gen(function* () {
      const replies = [`<block type="command" name="step">{}</block>`, "<final>done</final>"]
      const http = stub((_, call) =>
        Effect.succeed(
          new Response(chunk({ content: replies[call] }) + ending, { headers: { "content-type": "text/event-stream" } })
        )
      )
      const provider = yield* Effect.provideService(vendor("openai")({}), HttpClient.HttpClient, http.client)
      const agent = Agent.make({ instructions: "Step.", skills: "all", model: Model.make("gpt-5"), generation: all })
      const { events } = yield* told(agent, "hi", { provider })
      assert.lengthOf(http.asked, 2)
      for (const { body } of http.asked) assert.notProperty(body, "temperature")
      const [event, ...more] = of(events, "llm_response").flatMap(({ dropped }) => dropped ?? [])
      assert.deepInclude(event, {
        provider: "openai",
        model: "gpt-5",
        options: ["temperature", "topP", "stopSequences", "thinking.budget"]
      })
      assert.lengthOf(more, 0)
    }).pipe(Effect.provide(kernel(step)))
  )

  it.effect("is not reported if it is not set, or if the model accepts it", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "Answer.", model: Model.make("m"), generation: all })
      const { events } = yield* told(agent, "hi", { provider: MockProvider.make("done") })
      assert.isUndefined(of(events, "llm_response")[0]?.dropped)
    }).pipe(Effect.provide(kernel()))
  )

  const sampling = ["temperature", "topP"]
  const cases: ReadonlyArray<
    readonly [vendor: string, model: string, missing: ReadonlyArray<string>, api?: Model.Model["api"]]
  > = [
    ["anthropic", "claude-opus-4-7", [...sampling, "seed", "thinking.budget"]],
    ["anthropic", "claude-3-7-sonnet", [...sampling, "seed", "thinking.effort"]],
    ["openai", "gpt-4.1", ["thinking.budget"]],
    ["openai", "o3", [...sampling, "stopSequences", "thinking.budget"]],
    ["openai", "gpt-4.1", ["seed", "stopSequences", "thinking.budget", "thinking.effort"], "responses"],
    ["compatible", "llama", ["thinking.budget"]],
    ["ollama", "llama", ["thinking.budget", "thinking.effort"]],
    ["google", "gemini", ["thinking.effort"]],
    ["google-interactions", "gemini", ["thinking.budget"]]
  ]
  const marks: { readonly [option: string]: unknown } = {
    temperature: 0.5,
    topP: 0.9,
    maxTokens: 100,
    stopSequences: "end",
    seed: 987654,
    "thinking.budget": 1_000,
    "thinking.effort": "low"
  }
  it.effect.each(cases)("of %s for %s is named if and only if the request lacks it", ([name, id, missing, api]) =>
    Effect.gen(function* () {
      const model = { ...Model.make(id), ...(api && { api }) }
      const text = JSON.stringify(yield* bodyOf(name, request({ model, generation: all })))
      const sent = Object.keys(marks).filter((option) => text.includes(JSON.stringify(marks[option])))
      assert.sameMembers(
        sent,
        Object.keys(marks).filter((option) => !missing.includes(option))
      )
      const provider = yield* Effect.provideService(
        vendors[name]!({}),
        HttpClient.HttpClient,
        stub(() => Effect.fail("refused")).client
      )
      const taken = provider.takes!({ model, generation: all })
      const names = (generation: Generation.Generation) => [
        ...Object.keys(generation).filter((option) => option !== "thinking"),
        ...Object.keys(generation.thinking ?? {}).map((option) => `thinking.${option}`)
      ]
      assert.sameMembers(names(taken), sent)
    })
  )

  it("is omitted for models of other packages too", () => {
    const model = Model.make("m")
    const aiSdk = AiSdkProvider.fromModel(() => assert.fail(), { name: "any" })
    assert.deepStrictEqual(aiSdk.takes?.({ model, generation: all }), { ...all, thinking: { effort: "low" } })
    const ai = LanguageModelProvider.fromModel({} as never)
    assert.deepStrictEqual(ai.takes?.({ model, generation: all }), {})
  })
})
