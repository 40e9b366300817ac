/** Prompt caching without being asked for: marks, counts, cost, forecasts and what was lost. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Result, Schema, Stream } from "effect"
import type { HttpClient } from "effect/http"
import { TestClock } from "effect/testing"
import { Agent, Model, PromptPipeline, type Provider, type RunEvent, Skill, Usage } from "kernai"
import { AnthropicProvider, OpenAiProvider } from "kernai/provider"
import { MockProvider } from "kernai/testing"
import { kernel, of } from "../support/kernel.ts"
import { bodyOf, key, message, readingOf, request, stub } from "../support/provider.ts"
import { told } from "../support/toolbox.ts"

const model = Model.make("m", {
  price: { inputPerMillion: 4, outputPerMillion: 20, cachedPerMillion: 0.2, cacheWritePerMillion: 5 }
})
const long = "The rules. ".repeat(1_000)

const step = Skill.make("step", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed("ok") })
const agent = Agent.make({ instructions: long, model, dialect: "tools", skills: [step] })

const call = (cacheRead: number) =>
  ({
    calls: [{ name: "step" }],
    usage: { inputTokens: { total: 5_000, cacheRead }, outputTokens: { total: 1 } }
  }) as const

describe("the usual prompt", () => {
  it.effect("marks its system text and its last message, and Anthropic is asked to keep both", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("done")
      yield* told(agent, "hi", { provider })
      const asked = provider.lastCall ?? assert.fail("not asked")
      assert.deepStrictEqual(asked.cacheBreakpoints, [0, 1])
      const body = (yield* bodyOf("anthropic", asked)) as { readonly system: unknown; readonly messages: unknown }
      for (const part of [body.system, body.messages]) {
        assert.include(JSON.stringify(part), `"cache_control":{"type":"ephemeral"}`)
      }
    }).pipe(Effect.provide(kernel(step)))
  )

  it.effect("marks nothing where caching is switched off", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make("done")
      yield* told(agent, "hi", { provider })
      assert.isUndefined(provider.lastCall?.cacheBreakpoints)
    }).pipe(Effect.provide([kernel(step), PromptPipeline.layer({ cache: false })]))
  )
})

describe("the time a cache lives", () => {
  const bodiesOf = (
    open: Effect.Effect<Provider.ProviderShape, never, HttpClient.HttpClient>,
    extra: Provider.Request["generation"] = {}
  ) =>
    Effect.gen(function* () {
      const http = stub(() => Effect.sync(() => new Response("{}", { status: 400 })))
      const provider = yield* Effect.provide(open, http.layer)
      const messages = [message("system", "rules"), message("user", "hi")]
      const asked = request({ messages, cacheBreakpoints: [0, 1], generation: extra })
      yield* Effect.ignore(Stream.runDrain(provider.stream(asked)))
      return JSON.stringify(http.asked[0]?.body)
    })

  it.effect("is written to every mark for Anthropic, and to none without the option", () =>
    Effect.gen(function* () {
      const hour = yield* bodiesOf(AnthropicProvider.make({ apiKey: key, cacheLifetime: "1h" }))
      assert.lengthOf(hour.split(`"cache_control":{"type":"ephemeral","ttl":"1h"}`), 3)
      assert.notInclude(yield* bodiesOf(AnthropicProvider.make({ apiKey: key })), "ttl")
    })
  )

  it.effect("is an option of the request for OpenAI, in both formats, and the request's own wins", () =>
    Effect.gen(function* () {
      for (const api of ["chat", "responses"] as const) {
        const open = OpenAiProvider.make({ apiKey: key, api, cacheRetention: "24h" })
        assert.include(yield* bodiesOf(open), `"prompt_cache_retention":"24h"`)
        const own = { extra: { openai: { prompt_cache_retention: "in_memory" } } }
        assert.include(yield* bodiesOf(open, own), `"prompt_cache_retention":"in_memory"`)
        assert.notInclude(yield* bodiesOf(OpenAiProvider.make({ apiKey: key, api })), "retention")
      }
    })
  )
})

describe("tokens written to a cache", () => {
  it.effect("are read from Anthropic's usage, summed up, and have their own price", () =>
    Effect.gen(function* () {
      const counts = { input_tokens: 10, cache_read_input_tokens: 100, cache_creation_input_tokens: 1_000 }
      const { parts } = yield* readingOf("anthropic", [
        { type: "message_start", message: { id: "m", usage: { ...counts, output_tokens: 1 } } },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 2 } },
        { type: "message_stop" }
      ])
      const finish = parts.find((part) => part.type === "finish")
      const usage = (finish && Usage.fromAi(finish.usage)) ?? assert.fail("no usage")
      assert.deepStrictEqual(usage, {
        inputTokens: 1_110,
        cachedTokens: 100,
        cacheWriteTokens: 1_000,
        outputTokens: 2,
        reasoningTokens: 0
      })
      assert.closeTo(
        Usage.cost(usage, model.price ?? assert.fail()),
        (100 * 0.2 + 1_000 * 5 + 10 * 4 + 2 * 20) / 1e6,
        1e-12
      )
      assert.strictEqual(Usage.add(usage, usage).cacheWriteTokens, 2_000)
      assert.notProperty(Usage.add(Usage.zero, Usage.zero), "cacheWriteTokens")
      assert.deepStrictEqual(Usage.decode(Usage.encode(usage)), Result.succeed(usage))
      assert.isTrue(Result.isFailure(Usage.decode({ input_tokens: 5, cached_tokens: 3, cache_write_tokens: 3 })))
    })
  )
})

const forecasts = (events: ReadonlyArray<RunEvent.RunEvent>) =>
  of(events, "messages_sent").flatMap(({ cache }) => cache ?? [])

const misses = (events: ReadonlyArray<RunEvent.RunEvent>) =>
  of(events, "llm_response").flatMap(({ cacheMissed }) => cacheMissed ?? [])

describe("a run", () => {
  it.effect("forecasts from its second prompt on what the vendor reads from its cache", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(call(0), call(5_000), "done")
      const run = yield* told(agent, "hi", { provider })
      const found = forecasts(run.events)
      assert.lengthOf(found, 2)
      for (const { lost, possible, tokens } of found) {
        assert.isNull(lost)
        assert.isAbove(tokens, 2_500)
        assert.strictEqual(tokens, possible)
      }
      assert.deepStrictEqual(misses(run.events), [])
    }).pipe(Effect.provide(kernel(step)))
  )

  it.effect("reports which part of the prompt changed and lost its cache", () =>
    Effect.gen(function* () {
      let count = 0
      const changing = { ...agent, instructions: Effect.sync(() => `${++count} ${long}`) }
      const run = yield* told(changing, "hi", { provider: MockProvider.make(call(0), "done") })
      assert.deepStrictEqual(
        forecasts(run.events).map(({ lost, tokens }) => [lost, tokens]),
        [["system", 0]]
      )
    }).pipe(Effect.provide(kernel(step)))
  )

  it.effect("reports that the vendor read less than expected, and that a cache expired", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(call(0), call(0), "done")
      const missed = yield* told(agent, "hi", { provider })
      const event = misses(missed.events)[0] ?? assert.fail("no miss")
      assert.strictEqual(event.read, 0)
      assert.isAbove(event.expected, 2_500)
      const slow = MockProvider.make().onCall((_, asked) =>
        asked === 0 ? Effect.as(TestClock.adjust("6 minutes"), call(0)) : "done"
      )
      const expired = yield* told(agent, "hi", { provider: slow })
      assert.strictEqual(forecasts(expired.events)[0]?.lost, "expired")
    }).pipe(Effect.provide(kernel(step)))
  )

  it.effect("emits nothing for prompts that are too short to be cached", () =>
    Effect.gen(function* () {
      const run = yield* told({ ...agent, instructions: "short" }, "hi", {
        provider: MockProvider.make(call(0), "done")
      })
      assert.deepStrictEqual(forecasts(run.events), [])
    }).pipe(Effect.provide(kernel(step)))
  )
})
