import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { ProviderError } from "../../src/KernelError.ts"
import { Provider } from "../../src/Provider.ts"
import { MockProvider } from "../../src/testing/index.ts"
import { finishOf, message, read, request } from "../support/provider.ts"

const say = (mock: MockProvider.Mock) => Effect.map(read(mock.stream(request())), (reply) => reply.text)

describe("MockProvider", () => {
  it.effect("refuses a call with another key than name, input and id", () =>
    Effect.gen(function* () {
      const old = { name: "add", params: { x: 1 } }
      const error = yield* Effect.flip(read(MockProvider.make({ calls: [old] }).stream(request())))
      assert.include(error.message, "a call of a mock has name, input and id, not 'params'")
    })
  )

  it.effect("answers in order, and repeats the last answer (BP-112)", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make("a").respondWith("b")
      assert.deepStrictEqual([yield* say(mock), yield* say(mock), yield* say(mock)], ["a", "b", "b"])
      assert.strictEqual(yield* say(MockProvider.make()), "")
    })
  )

  it.effect("records its calls", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make("a")
      yield* read(mock.stream(request({ generation: { temperature: 1 } })))
      yield* read(mock.stream(request({ messages: [message("user", "second")] })))
      assert.strictEqual(mock.callCount, 2)
      assert.deepStrictEqual(mock.generationAt(0), { temperature: 1 })
      assert.deepStrictEqual(mock.messagesAt(1), [message("user", "second")])
      assert.strictEqual(mock.lastCall, mock.calls[1])
      assert.strictEqual(mock.messagesAt(2), undefined)
      mock.reset()
      assert.strictEqual(mock.callCount, 0)
      assert.strictEqual(yield* say(mock), "")
    })
  )

  it.effect("counts a call when it is made, not when its stream is described", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make("a", "b")
      const stream = mock.stream(request())
      assert.strictEqual(mock.callCount, 0)
      assert.strictEqual((yield* read(stream)).text, "a")
      assert.strictEqual((yield* read(stream)).text, "b")
    })
  )

  it.effect("follows a script by the index of the call, and rejects one with gaps (BP-113)", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make("x").respondWithScript({ 0: "a", 1: "b" })
      assert.deepStrictEqual([yield* say(mock), yield* say(mock)], ["a", "b"])
      assert.throws(() => mock.respondWithScript({ 0: "a", 2: "b" }), RangeError)
    })
  )

  it.effect("asks the function of `onCall` before the scripted answers", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make("queued").onCall((ask, call) =>
        call === 0 ? `${ask.model.id} ${call}` : call === 1 ? Effect.succeed({ text: "later" }) : undefined
      )
      assert.deepStrictEqual([yield* say(mock), yield* say(mock), yield* say(mock)], ["m-text 0", "later", "queued"])
    })
  )

  it.effect("fails the configured call, and keeps the order of the others (BP-113)", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make("a", "b", "c").failOnStep(1)
      assert.strictEqual(yield* say(mock), "a")
      const error = yield* Effect.flip(say(mock))
      assert.strictEqual(error.detail, "mock provider failure")
      assert.strictEqual(yield* say(mock), "c")

      const own = new ProviderError({ provider: "x", reason: "refusal", detail: "no" })
      assert.strictEqual(yield* Effect.flip(say(MockProvider.make(own))), own)
      const limited = MockProvider.make().failOnStep(0, "rate_limited", "slow down")
      assert.strictEqual((yield* Effect.flip(say(limited))).reason, "rate_limited")
    })
  )

  it.effect("splits text between code points (BP-114)", () =>
    Effect.gen(function* () {
      const deltas = (chunking: MockProvider.Chunking) =>
        Effect.map(read(MockProvider.make("a😀bc").withChunking(chunking).stream(request())), (reply) => reply.deltas)
      assert.deepStrictEqual(yield* deltas("whole"), ["a😀bc"])
      assert.deepStrictEqual(yield* deltas(1), ["a", "😀", "b", "c"])
      assert.deepStrictEqual(yield* deltas(3), ["a😀b", "c"])
      assert.deepStrictEqual(yield* deltas([1, 2]), ["a", "😀b", "c"])
    })
  )

  it.effect("waits on the clock before the reply and between its chunks", () =>
    Effect.gen(function* () {
      const said: Array<string> = []
      const mock = MockProvider.make("abc").withChunking(1).withDelay({ first: 1000, between: 100 })
      const fiber = yield* mock.stream(request()).pipe(
        Stream.runForEach((part) => Effect.sync(() => part.type === "text-delta" && said.push(part.delta))),
        Effect.forkChild
      )
      yield* TestClock.adjust(999)
      assert.deepStrictEqual(said, [])
      yield* TestClock.adjust(101)
      assert.deepStrictEqual(said, ["a"])
      yield* TestClock.adjust(100)
      assert.deepStrictEqual(said, ["a", "b"])
      yield* TestClock.adjust(100)
      yield* Fiber.join(fiber)
      assert.deepStrictEqual(said, ["a", "b", "c"])
    })
  )

  it.effect("emits native calls, thinking and usage", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make({
        thinking: "Hm.",
        text: "So",
        calls: [
          { name: "add", input: { x: 1 } },
          { name: "add", id: "own" }
        ]
      }).withTokenCounter((messages, text) => ({ input: messages.length, output: text.length }))
      const { parts } = yield* read(mock.stream(request()))
      const calls = parts.filter((part) => part.type === "tool-call")
      assert.deepStrictEqual(
        calls.map(({ name, params }) => ({ name, params })),
        [
          { name: "add", params: { x: 1 } },
          { name: "add", params: {} }
        ]
      )
      assert.strictEqual(calls[1]?.id, "own")
      assert.strictEqual(finishOf(parts)?.reason, "tool-calls")
      assert.deepStrictEqual(finishOf(parts)?.usage, { inputTokens: { total: 1 }, outputTokens: { total: 2 } })
    })
  )

  it.effect("is created for each use of `layer`, and shared by `layerOf`", () =>
    Effect.gen(function* () {
      const once = Effect.flatMap(Provider, (provider) => Effect.map(read(provider.stream(request())), (r) => r.text))
      const layer = MockProvider.layer("a", "b")
      assert.strictEqual(yield* Effect.provide(once, layer, { local: true }), "a")
      assert.strictEqual(yield* Effect.provide(once, layer, { local: true }), "a")
      const mock = MockProvider.make("mine")
      assert.strictEqual(yield* Effect.provide(once, MockProvider.layerOf(mock)), "mine")
      assert.strictEqual(mock.callCount, 1)
    })
  )
})
