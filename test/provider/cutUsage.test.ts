/** The usage that a run counts for a reply that was cut. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Result, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, KernelError, Model, type Provider, RunCodec, RunStore, type StreamPart } from "kernai"
import { MockProvider } from "kernai/testing"
import { command } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { readingOf } from "../support/provider.ts"
import { told } from "../support/toolbox.ts"

const model = Model.make("m", { price: { inputPerMillion: 1_000_000, outputPerMillion: 2_000_000 } })
const agent = Agent.make({ instructions: "Answer.", model })

const reported: StreamPart.StreamPart = {
  type: "response-metadata",
  id: "r",
  usage: { inputTokens: { total: 50, cacheRead: 20 }, outputTokens: { total: 1 } }
}

// Forty letters are ten tokens, and a message is four more.
const beginning: ReadonlyArray<StreamPart.StreamPart> = [
  reported,
  { type: "text-start", id: "0" },
  { type: "text-delta", id: "0", delta: "x".repeat(40) }
]

const hanging: Provider.ProviderShape = {
  name: "slow",
  stream: () => Stream.concat(Stream.fromIterable(beginning), Stream.never)
}

const usage = { inputTokens: 50, cachedTokens: 20, outputTokens: 14, reasoningTokens: 0, partial: true } as const

const estimated = { inputTokens: 11, cachedTokens: 0, outputTokens: 14, reasoningTokens: 0, partial: true } as const

const lost = new KernelError.ProviderError({ provider: "cut", reason: "disconnected", detail: "" })

const stored = RunStore.RunStore.use((store) => store.load("run")).pipe(Effect.flatMap(Effect.fromOption))

describe("a reply that is cut", () => {
  it.effect("by an interruption counts the reported prompt and the received text, also after a resume", () =>
    Effect.gen(function* () {
      const fiber = yield* Effect.forkChild(Kernel.run(agent, "hi", { provider: hanging, runId: "run" }))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual((yield* stored).usage, usage)
      assert.strictEqual((yield* stored).costUsd, 50 + 2 * 14)
      const result = yield* Kernel.resume(agent, "run", { provider: MockProvider.make("here") })
      assert.strictEqual(result.text, "here")
      assert.isAtLeast(result.usage.inputTokens, 50)
      // What was cut stays unknown, whatever is reported later.
      assert.isTrue(result.usage.partial)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("after its first words is marked partial in its event and in its journal", () =>
    Effect.gen(function* () {
      const provider: Provider.ProviderShape = {
        name: "cut",
        stream: () => Stream.concat(Stream.fromIterable(beginning), Stream.fail(lost))
      }
      const { events } = yield* told(agent, "hi", { provider, runId: "run" })
      assert.deepStrictEqual(
        of(events, "partial_usage").map((event) => event.usage),
        [usage]
      )
      const text = Result.getOrThrow(RunCodec.encodeState(yield* stored))
      assert.include(text, '"partial":true')
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("by a lost connection or an early end counts the same", () =>
    Effect.gen(function* () {
      for (const [runId, rest] of [
        ["lost", Stream.fail(lost)],
        ["ended", Stream.empty]
      ] as const) {
        const provider: Provider.ProviderShape = {
          name: "cut",
          stream: () => Stream.concat(Stream.fromIterable(beginning), rest)
        }
        yield* Effect.exit(Kernel.run(agent, "hi", { provider, runId }))
        const state = yield* RunStore.RunStore.use((store) => store.load(runId)).pipe(Effect.flatMap(Effect.fromOption))
        assert.deepStrictEqual(state.usage, usage)
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("keeps its text in the error, whether its connection was lost or it ended early", () =>
    Effect.gen(function* () {
      for (const [reason, rest] of [
        ["disconnected", Stream.fail(lost)],
        ["incomplete", Stream.empty]
      ] as const) {
        const provider: Provider.ProviderShape = {
          name: "cut",
          stream: () => Stream.concat(Stream.fromIterable(beginning), rest)
        }
        const error = yield* Effect.flip(Kernel.run(agent, "hi", { provider }))
        assert.deepInclude({ ...error }, { _tag: "ProviderError", reason, vendor: { message: "x".repeat(40) } })
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("by a deadline counts against the budget of its run", () =>
    Effect.gen(function* () {
      const budget = { maxTokens: 60, deadline: "1 second" } as const
      const fiber = yield* Effect.forkChild(
        Effect.exit(
          Kernel.run({ ...agent, budget: { ...agent.budget, ...budget } }, "hi", { provider: hanging, runId: "run" })
        )
      )
      yield* TestClock.adjust("2 seconds")
      yield* Fiber.join(fiber)
      const provider = MockProvider.make("here")
      const again = yield* Effect.flip(
        Kernel.resume({ ...agent, budget: { ...agent.budget, maxTokens: 60 } }, "run", { provider })
      )
      assert.deepInclude(again, { _tag: "BudgetExhaustedError", used: 64, limit: 60 })
      assert.strictEqual(provider.callCount, 0)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("counts an estimate, marked as partial, when its vendor reports usage only at the end", () =>
    Effect.gen(function* () {
      const silent: Provider.ProviderShape = {
        name: "silent",
        stream: () => Stream.concat(Stream.fromIterable(beginning.slice(1)), Stream.never)
      }
      const fiber = yield* Effect.forkChild(Kernel.run(agent, "hi", { provider: silent, runId: "run" }))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      // "Answer." and "hi" are three tokens, and each message is four more.
      assert.deepStrictEqual((yield* stored).usage, { ...estimated, outputTokens: 14 })
    }).pipe(Effect.provide(kernel()))
  )
})

describe("a reply that is cancelled", () => {
  const running = Effect.fnUntraced(function* (options: { readonly signal?: AbortSignal }) {
    const fiber = yield* Effect.forkChild(
      Effect.exit(Kernel.run(agent, "hi", { provider: hanging, runId: "run", ...options }))
    )
    yield* TestClock.adjust("1 second")
    return fiber
  })

  it.effect("by `Kernel.cancel` stores what it used behind its cancellation, and counts it after a resume", () =>
    Effect.gen(function* () {
      const fiber = yield* running({})
      yield* Kernel.cancel("run")
      yield* Fiber.join(fiber)
      const state = yield* stored
      assert.strictEqual(state.status.type, "cancelled")
      assert.deepStrictEqual(state.usage, usage)
      assert.strictEqual(state.costUsd, 50 + 2 * 14)
      const provider = MockProvider.make("here")
      const again = yield* Effect.flip(
        Kernel.resume({ ...agent, budget: { ...agent.budget, maxTokens: 60 } }, "run", { provider })
      )
      assert.deepInclude(again, { _tag: "BudgetExhaustedError", used: 64, limit: 60 })
      assert.strictEqual(provider.callCount, 0)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("by a signal stores what it used", () =>
    Effect.gen(function* () {
      const abort = new AbortController()
      const fiber = yield* running({ signal: abort.signal })
      abort.abort()
      yield* Fiber.join(fiber)
      const state = yield* stored
      assert.strictEqual(state.status.type, "cancelled")
      assert.deepStrictEqual(state.usage, usage)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("in a child run stores what the child used", () =>
    Effect.gen(function* () {
      const asked = Agent.make({ name: "asked", instructions: "Answer.", model })
      const parent = Agent.make({ instructions: "Ask.", model, agents: [asked] })
      let calls = 0
      const provider: Provider.ProviderShape = {
        name: "slow",
        stream: (request) =>
          ++calls === 1 ? MockProvider.make(command("asked", '{"input":"?"}')).stream(request) : hanging.stream(request)
      }
      const fiber = yield* Effect.forkChild(Effect.exit(Kernel.run(parent, "hi", { provider, runId: "run" })))
      yield* TestClock.adjust("1 second")
      assert.strictEqual(calls, 2)
      yield* Kernel.cancel("run")
      yield* Fiber.join(fiber)
      const store = yield* RunStore.RunStore
      const [child] = (yield* store.list({ rootRunId: "run" })).filter(({ runId }) => runId !== "run")
      const state = yield* Effect.flatMap(store.load(child?.runId ?? ""), Effect.fromOption)
      assert.strictEqual(state.status.type, "cancelled")
      assert.deepStrictEqual(state.usage, usage)
    }).pipe(Effect.provide(kernel()))
  )
})

describe("usage reported before the end of a reply", () => {
  it.effect("is read from Anthropic and Gemini", () =>
    Effect.gen(function* () {
      const { parts } = yield* readingOf("anthropic", [
        {
          type: "message_start",
          message: { id: "m", usage: { input_tokens: 5, cache_read_input_tokens: 40, output_tokens: 1 } }
        },
        { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 7 } },
        { type: "message_stop" }
      ])
      const first = parts[0]
      assert.strictEqual(first?.type === "response-metadata" && first.usage?.inputTokens.total, 45)
      const gemini = yield* readingOf("google", [
        {
          responseId: "r",
          usageMetadata: { promptTokenCount: 9 },
          candidates: [{ content: { parts: [{ text: "a" }] } }]
        },
        { candidates: [{ finishReason: "STOP" }] }
      ])
      const begun = gemini.parts[0]
      assert.strictEqual(begun?.type === "response-metadata" && begun.usage?.inputTokens.total, 9)
    })
  )
})
