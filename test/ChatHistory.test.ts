import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Option, Schema } from "effect"
import { Agent, Chat, ChatHistory, Hooks, Kernel, Message, RunStore, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { chatHistorySuite } from "./support/chatHistory.ts"
import { ports } from "./support/kernel.ts"

chatHistorySuite("ChatHistory.layerMemory", ChatHistory.layerMemory)
chatHistorySuite(
  "ChatHistory.layerRunStore without a run",
  Layer.provide(ChatHistory.layerRunStore([]), RunStore.layerMemory)
)

const look = Skill.make("look", {
  description: "",
  input: Schema.Struct({ at: Schema.String }),
  execute: ({ at }) => Effect.succeed(`saw ${at}`)
})

const world = (mock: MockProvider.Mock, hooks: Hooks.Hooks = {}) =>
  Kernel.layer.pipe(
    Layer.provide(Hooks.layer(hooks)),
    Layer.provideMerge(Layer.merge(MockProvider.layerOf(mock), ports(look)))
  )

const agent = (dialect: "blocks" | "tools") =>
  Agent.make({ instructions: "", model: { id: "m", capabilities: ["text"] }, skills: "all", dialect })

const loaded = (runId: string) =>
  Effect.map(
    RunStore.RunStore.use((store) => store.load(runId)),
    Option.getOrThrow
  )

describe("ChatHistory.ofState", () => {
  it.effect("contains the earlier messages, the input and every turn", () =>
    Effect.gen(function* () {
      yield* Kernel.run(agent("tools"), "now", {
        runId: "r",
        history: [Message.user("then"), Message.assistant("yes")]
      })
      const messages = ChatHistory.ofState(yield* loaded("r"))
      assert.deepStrictEqual(
        messages.map((message) => `${message.role}: ${Message.text(message)}`),
        [
          "user: then",
          "assistant: yes",
          "user: now",
          "assistant: [ToolCall: look(c1)]",
          "tool: [ToolResult: c1] saw x",
          "assistant: done"
        ]
      )
    }).pipe(
      Effect.provide(world(MockProvider.make({ calls: [{ id: "c1", name: "look", input: { at: "x" } }] }, "done")))
    )
  )

  it.effect("answers the calls of a stopped run with their known results", () => {
    const mock = MockProvider.make({
      calls: [
        { id: "c1", name: "look", input: { at: "x" } },
        { id: "c2", name: "look", input: { at: "y" } }
      ]
    })
    const hooks: Hooks.Hooks = {
      onToolCallCompleted: () => Effect.succeed({ control: { _tag: "Pause", reason: "wait" } })
    }
    return Effect.gen(function* () {
      yield* Effect.flip(Kernel.run(agent("tools"), "go", { runId: "r" }))
      const told = ChatHistory.ofState(yield* loaded("r"))
        .slice(-2)
        .map(Message.text)
      assert.deepStrictEqual(told, ["[ToolResult: c1] saw x", "[ToolError: c2] This call was not run."])
    }).pipe(Effect.provide(world(mock, hooks)))
  })

  it.effect("does not claim that an interrupted call did not run", () => {
    const mock = MockProvider.make({ calls: [{ id: "c1", name: "wait", input: {} }] })
    return Effect.gen(function* () {
      const entered = yield* Deferred.make<void>()
      const wait = Skill.make("wait", {
        description: "",
        input: Schema.Struct({}),
        execute: () => Effect.andThen(Deferred.succeed(entered, undefined), Effect.never)
      })
      yield* (yield* SkillRegistry.SkillRegistry).register(wait)
      const fiber = yield* Effect.forkChild(Kernel.run(agent("tools"), "go", { runId: "r" }))
      yield* Deferred.await(entered)
      yield* Fiber.interrupt(fiber)
      const told = ChatHistory.ofState(yield* loaded("r")).map(Message.text)
      assert.deepStrictEqual(told.slice(1), [
        "[ToolCall: wait(c1)]",
        "[ToolError: c1] This call was interrupted. Whether it ran is not known."
      ])
    }).pipe(Effect.provide(world(mock)))
  })

  it.effect("answers native calls of a truncated reply, and those that a hook dropped", () => {
    const mock = MockProvider.make(
      { text: "so", calls: [{ id: "c1", name: "look", input: {} }], reason: "length" },
      {
        calls: [
          { id: "c2", name: "look", input: { at: "x" } },
          { id: "c3", name: "look", input: { at: "y" } }
        ]
      },
      "done"
    )
    const hooks: Hooks.Hooks = { onToolCallsStarted: ({ calls }) => Effect.succeed({ value: calls.slice(1) }) }
    return Effect.gen(function* () {
      yield* Kernel.run(agent("tools"), "go", { runId: "r" })
      const told = ChatHistory.ofState(yield* loaded("r")).map((message) => `${message.role}: ${Message.text(message)}`)
      assert.deepStrictEqual(told[2], "tool: [ToolError: c1] This call was not run.")
      assert.match(told[3] ?? "", /^user: .*ended too early/)
      assert.deepStrictEqual(told.slice(4), [
        "assistant: [ToolCall: look(c2)][ToolCall: look(c3)]",
        "tool: [ToolResult: c3] saw y",
        "tool: [ToolError: c2] This call was not run.",
        "assistant: done"
      ])
      assert.deepStrictEqual(mock.lastCall?.messages, ChatHistory.ofState(yield* loaded("r")).slice(0, -1))
    }).pipe(Effect.provide(world(mock, hooks)))
  })
})

describe("ChatHistory.layerRunStore", () => {
  it.effect("is the conversation of consecutive runs, as their journals record it", () =>
    Effect.gen(function* () {
      const first = yield* Kernel.run(agent("tools"), "one", { runId: "a" })
      const history = yield* ChatHistory.makeRunStore(["a", "b", "three", "four"])
      assert.deepStrictEqual((yield* history.toArray).map(Message.text), ["one", "hello"])
      yield* Kernel.run(agent("tools"), "two", { runId: "b", history: yield* history.toArray })
      assert.deepStrictEqual((yield* history.toArray).map(Message.text), ["one", "hello", "two", "hello"])
      yield* history.append(first.messages, "a:7")
      yield* history.append(first.messages, "a")
      assert.strictEqual(yield* history.size, 4)
      yield* history.append(Message.user("beside"), "ab:1")
      assert.deepStrictEqual((yield* history.last(2)).map(Message.text), ["hello", "beside"])
      for (const more of ["three", "four"]) {
        yield* history.clear
        assert.strictEqual(yield* history.size, 0)
        // Later messages are there, and removed ones stay removed.
        yield* Kernel.run(agent("tools"), more, { runId: more })
        assert.deepStrictEqual((yield* history.toArray).map(Message.text), [more, "hello"])
      }
    }).pipe(Effect.provide(world(MockProvider.make("hello"))))
  )

  it.effect("contains once a message that a chat appended before its run was stored (AC-24)", () =>
    Effect.gen(function* () {
      const texts = Effect.map(
        ChatHistory.ChatHistory.use((history) => history.toArray),
        (messages) => messages.map(Message.text)
      )
      yield* Chat.chat(agent("tools"), "one", { runId: "a" })
      // A process that died before it began the run.
      yield* ChatHistory.ChatHistory.use((history) => history.append(Message.user("two"), "b"))
      assert.deepStrictEqual(yield* texts, ["one", "hello", "two"])
      yield* Chat.chat(agent("tools"), "two", { runId: "b" })
      yield* Chat.chat(agent("tools"), "two", { runId: "b" })
      assert.deepStrictEqual(yield* texts, ["one", "hello", "two", "hello"])
    }).pipe(
      Effect.provide(Layer.provideMerge(ChatHistory.layerRunStore(["a", "b"]), world(MockProvider.make("hello"))))
    )
  )
})
