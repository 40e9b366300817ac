import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option } from "effect"
import { Agent, Chat, ChatHistory, Kernel, Message, PromptPipeline, RunStore } from "kernai"
import { MockProvider } from "kernai/testing"
import { ports } from "../../support/kernel.ts"
import { sqlite } from "../../support/stores.ts"
import { bulky, compacting, done, look, looks, model, said, small, world } from "../../support/prompts.ts"

describe("compaction", () => {
  it.effect("shortens old results first, and then keeps a stable prefix", () => {
    const mock = bulky(12, 2_000)
    return Effect.gen(function* () {
      yield* Kernel.run(small("tools", 6_000), "the task", { runId: "r" })
      assert.deepStrictEqual(
        mock.calls.map(({ messages }) => messages.length),
        Array.from({ length: 13 }, (_, call) => 1 + 2 * call)
      )
      const last = said(mock, 12)
      assert.strictEqual(last[2], `[ToolResult: c0] ${"x".repeat(200)}… [1800 characters removed to save space]`)
      assert.strictEqual(last.at(-1), `[ToolResult: c11] ${"x".repeat(2_000)}`)
      let changes = 0
      for (let call = 1; call < mock.callCount; call++) {
        const [before = [], now = []] = [mock.messagesAt(call - 1), mock.messagesAt(call)]
        if (!before.every((message, index) => message === now[index])) changes++
      }
      assert.strictEqual(changes, 1)
      // The earlier messages are kept; they are only not sent again.
      const state = Option.getOrThrow(yield* RunStore.RunStore.use((store) => store.load("r")))
      assert.strictEqual(
        ChatHistory.ofState(state).filter((message) => Message.text(message).length > 1_900).length,
        12
      )
    }).pipe(Effect.provide(world(mock, compacting())))
  })

  it.effect("drops the oldest parts with their results when that is not enough, and leaves a note", () => {
    const mock = bulky(40, 300)
    return Effect.gen(function* () {
      yield* Kernel.run(small("tools", 1_500), "the task")
      const last = said(mock, 40)
      assert.match(last[0] ?? "", /^\[\d+ earlier messages of this conversation were removed to save space\.\]$/)
      assert.strictEqual(last[1], "the task")
      const removed = Number(/^\[(\d+)/.exec(last[0] ?? "")?.[1])
      assert.strictEqual(removed + last.length - 2, 80)
      for (const { messages } of mock.calls) {
        const calls = messages.flatMap(({ content }) =>
          content.flatMap((part) => (part.type === "tool_use" ? [part.callId] : []))
        )
        const results = messages.flatMap(({ content }) =>
          content.flatMap((part) => (part.type === "tool_result" ? [part.callId] : []))
        )
        assert.deepStrictEqual(results, calls)
      }
      for (const { cacheBreakpoints, messages } of mock.calls) {
        assert.strictEqual(cacheBreakpoints?.at(-1), messages.length - 1)
      }
    }).pipe(Effect.provide(world(mock, compacting())))
  })

  it.effect("shortens results written as blocks in the same way", () => {
    const mock = MockProvider.make()
    mock.onCall((_, call) => (call >= 30 ? done : looks({ size: 1_500 })))
    return Effect.gen(function* () {
      yield* Kernel.run(small("blocks", 4_000), "the task")
      const last = said(mock, 30)
      assert.match(last[1] ?? "", /earlier messages/)
      assert.include(last, "the task")
      assert.isTrue(
        last.some((text) =>
          /^<block type="result" name="look">x{200}… \[1300 characters removed to save space\]<\/block>$/.test(text)
        )
      )
    }).pipe(Effect.provide(world(mock, compacting())))
  })

  it.effect("shortens the newest result only when it is too large by itself", () => {
    const mock = bulky(1, 100_000)
    return Effect.gen(function* () {
      yield* Kernel.run(small("tools"), "the task")
      assert.match(
        said(mock, 1).at(-1) ?? "",
        /^\[ToolResult: c0\] x{8000}… \[92000 characters removed to save space\]$/
      )
    }).pipe(Effect.provide(world(mock, compacting())))
  })

  it.effect("drops newer parts, too, when they cannot be shortened, except the newest", () => {
    const mock = MockProvider.make()
    mock.onCall((_, call) =>
      call === 4 ? "done" : { text: "w".repeat(6_000), calls: [{ id: `c${call}`, name: "look" }] }
    )
    return Effect.gen(function* () {
      yield* Kernel.run(small("tools"), "the task")
      const last = said(mock, 4)
      assert.strictEqual(last.filter((text) => text.startsWith("www")).length, 1)
      assert.strictEqual(last[1], "the task")
      assert.strictEqual(last.at(-1), "[ToolResult: c3] xxxxx")
    }).pipe(Effect.provide(world(mock, compacting())))
  })

  it.effect("fails with a typed error when the required part does not fit, without calling a model (AC-9)", () => {
    const mock = bulky(1, 5)
    return Effect.gen(function* () {
      const agent = Agent.make({ instructions: "x".repeat(40), model, contextWindow: 3_000, reservedOutputTokens: 500 })
      const error = yield* Effect.flip(Kernel.run(agent, "long ".repeat(5_000)))
      const estimated = 4 + 40 / 4 + 4 + 25_000 / 4
      assert.deepStrictEqual(error, new PromptPipeline.ContextWindowExceeded({ estimated, limit: 2_500 }))
      assert.strictEqual(mock.callCount, 0)
    }).pipe(Effect.provide(world(mock, compacting())))
  })

  it.effect("drops unanswered messages, so a chat survives a message that was too long", () => {
    const mock = MockProvider.make("Hello.", "Well.")
    const agent = small("tools")
    return Effect.gen(function* () {
      const first = yield* Effect.flip(Chat.chat(agent, "long ".repeat(5_000)))
      assert.strictEqual(first._tag, "ContextWindowExceeded")
      assert.strictEqual((yield* Chat.chat(agent, "hi")).text, "Hello.")
      const second = yield* Effect.flip(Chat.chat(agent, "long ".repeat(5_000)))
      assert.strictEqual(second._tag, "ContextWindowExceeded")
      assert.strictEqual((yield* Chat.chat(agent, "and now?")).text, "Well.")
      assert.match(said(mock, 1)[0] ?? "", /earlier messages/)
      assert.strictEqual(said(mock, 1).at(-1), "and now?")
    }).pipe(Effect.provide(Layer.merge(world(mock, compacting()), ChatHistory.layerMemory)))
  })

  it.effect("keeps unanswered messages while the prompt fits", () => {
    const mock = MockProvider.make("ok", "ok")
    const agent = Agent.make({ instructions: "", model, contextWindow: 1_000, reservedOutputTokens: 0 })
    const document = Message.user("d".repeat(3_824))
    const asked = [Message.user("hi"), Message.assistant("Paste the log.")]
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "what does it say?", { history: [document] })
      assert.deepStrictEqual(said(mock, 0), [Message.text(document), "what does it say?"])
      yield* Kernel.run(agent, "L".repeat(3_820), { history: asked })
      assert.deepStrictEqual(said(mock, 1), ["hi", "Paste the log.", "L".repeat(3_820)])
    }).pipe(Effect.provide(world(mock, compacting())))
  })

  it.effect("prefers the window of the agent over the model's", () => {
    const mock = MockProvider.make("ok")
    const agent = Agent.make({
      instructions: "",
      model: { ...model, contextWindow: 100_000 },
      contextWindow: 1_000,
      reservedOutputTokens: 0
    })
    const history = [Message.user("a".repeat(3_000)), Message.assistant("b".repeat(3_000))]
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "go", { history })
      assert.match(said(mock, 0)[0] ?? "", /earlier messages/)
    }).pipe(Effect.provide(world(mock, compacting())))
  })

  it.effect("uses the window of the model when the agent has none", () => {
    const mock = bulky(20, 1_000)
    const agent = Agent.make({
      instructions: "",
      model: { ...model, contextWindow: 3_000 },
      skills: "all",
      dialect: "tools",
      reservedOutputTokens: 500,
      maxSteps: 30
    })
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "go")
      assert.isTrue(said(mock, 20).join("").length < 12_000)
    }).pipe(Effect.provide(world(mock, compacting())))
  })

  it.effect("leaves a conversation unchanged when neither agent nor model has a window", () => {
    const mock = bulky(3, 20_000)
    return Effect.gen(function* () {
      yield* Kernel.run({ ...small("tools"), contextWindow: undefined }, "the task")
      assert.deepStrictEqual(
        said(mock, 3).map((text) => text.length > 20_000),
        [false, false, true, false, true, false, true]
      )
    }).pipe(Effect.provide(world(mock, compacting())))
  })

  it.effect("keeps the message of the run within a long history", () => {
    const history = Array.from({ length: 60 }, (_, n) => [
      Message.user(`question ${n} ${"?".repeat(200)}`),
      Message.assistant(`answer ${n}`)
    ]).flat()
    const mock = bulky(0, 0)
    return Effect.gen(function* () {
      yield* Kernel.run(small("tools"), "the question", { history })
      const asked = said(mock, 0)
      assert.match(asked[0] ?? "", /earlier messages/)
      assert.strictEqual(asked.at(-1), "the question")
      assert.include(asked, "answer 59")
      assert.notInclude(asked, "answer 0")
    }).pipe(Effect.provide(world(mock, compacting())))
  })

  it.effect("keeps the message of the run when it is read back in another process and in a fork (R-7)", () => {
    const mock = bulky(40, 300)
    const agent = small("tools", 1_500)
    return Effect.gen(function* () {
      mock.failOnStep(20, "server_error")
      const kernel = Layer.fresh(
        Kernel.layer.pipe(
          Layer.provideMerge(compacting()),
          Layer.provideMerge(yield* sqlite.place),
          Layer.provideMerge(Layer.merge(MockProvider.layerOf(mock), Layer.fresh(ports(look))))
        )
      )
      yield* Effect.provide(Effect.flip(Kernel.run(agent, "the task", { runId: "r" })), kernel)
      yield* Effect.gen(function* () {
        yield* Kernel.fork("r", { revision: 1_000, runId: "fork" })
        yield* Kernel.resume(agent, "r")
        yield* Kernel.resume(agent, "fork")
      }).pipe(Effect.provide(kernel))
      assert.isAbove(mock.callCount, 41)
      for (const call of mock.calls.keys()) assert.include(said(mock, call), "the task")
    })
  })

  it.effect("is part of the journal: an interrupted run continues with the same prompt", () => {
    const mock = bulky(20, 1_000)
    return Effect.gen(function* () {
      mock.failOnStep(15, "server_error")
      yield* Effect.flip(Kernel.run(small("tools"), "the task", { runId: "r" }))
      const asked = said(mock, 15)
      yield* Kernel.resume(small("tools"), "r")
      assert.deepStrictEqual(said(mock, 16), asked)
    }).pipe(Effect.provide(world(mock, compacting())))
  })
})
