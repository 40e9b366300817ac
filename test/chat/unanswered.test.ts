/** A message without an answer, as the next message of the conversation knows it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema, Stream } from "effect"
import { Agent, Chat, ChatHistory, Kernel, KernelError, Message, Policy, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "../support/kernel.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({}),
  execute: () => Effect.succeed("paid A")
})
const wait = Skill.make("wait", { description: "Waits", input: Schema.Struct({}), execute: () => Effect.never })
const agent = Agent.make({ instructions: "x", model: "m", dialect: "tools", skills: [pay, wait] })
const chatting = Layer.merge(kernel(), ChatHistory.layerMemory)

const fails = new KernelError.ProviderError({ provider: "mock", reason: "server_error", detail: "x" })

/** A model that pays and then does something else, and answers the second message. */
const paysAndThen = (
  then: Effect.Effect<never, KernelError.ProviderError> | { readonly calls: [{ name: "wait"; input: {} }] }
) =>
  MockProvider.make().onCall(({ messages }) => {
    const known = JSON.stringify(messages)
    if (known.includes("go on")) return { text: "it is paid" }
    return known.includes("paid A") ? then : { calls: [{ name: "pay", input: {} }] }
  })

const history = Effect.map(
  ChatHistory.ChatHistory.use((kept) => kept.toArray),
  (messages) => messages.map((message) => `${message.role}: ${Message.text(message)}`)
)

describe("a message that has no answer", () => {
  it.effect("leaves its finished calls in the history when it fails, by run and by stream", () =>
    Effect.gen(function* () {
      for (const first of [
        (provider: ReturnType<typeof paysAndThen>) => Effect.flip(Chat.chat(agent, "pay A", { provider })),
        (provider: ReturnType<typeof paysAndThen>) =>
          Effect.flip(Stream.runDrain(Chat.chatStream(agent, "pay A", { provider })))
      ]) {
        const provider = paysAndThen(Effect.fail(fails))
        const messages = yield* Effect.gen(function* () {
          assert.strictEqual((yield* first(provider))._tag, "ProviderError")
          assert.strictEqual((yield* Chat.chat(agent, "go on", { provider })).text, "it is paid")
          return yield* history
        }).pipe(Effect.provide(Layer.fresh(chatting)))
        assert.deepStrictEqual(
          messages.map((text) => text.split(":")[0]),
          ["user", "assistant", "tool", "user", "assistant"]
        )
        assert.include(messages[2], "paid A")
      }
    })
  )

  it.live("leaves a call in flight as one with an unknown outcome when it is interrupted", () =>
    Effect.gen(function* () {
      const provider = paysAndThen({ calls: [{ name: "wait", input: {} }] })
      const first = yield* Effect.forkChild(Chat.chat(agent, "pay A", { provider, runId: "first" }))
      yield* Effect.repeat(Effect.sleep("5 millis"), { until: () => provider.calls.length === 2 })
      yield* Effect.sleep("20 millis")
      yield* Fiber.interrupt(first)
      yield* Chat.chat(agent, "go on", { provider })
      const messages = yield* history
      assert.include(messages[2], "paid A")
      assert.include(messages[4], "Whether it ran is not known")
      assert.deepStrictEqual(messages.slice(5), ["user: go on", "assistant: it is paid"])
    }).pipe(Effect.provide(chatting))
  )

  it.effect("that is chatted again adds only what is new", () =>
    Effect.gen(function* () {
      const provider = paysAndThen(Effect.fail(fails))
      yield* Effect.flip(Chat.chat(agent, "pay A", { provider, runId: "first" }))
      const again = MockProvider.make({ text: "done" })
      assert.strictEqual((yield* Chat.chat(agent, "pay A", { provider: again, runId: "first" })).text, "done")
      const messages = yield* history
      assert.lengthOf(messages, 4)
      assert.strictEqual(messages[3], "assistant: done")
    }).pipe(Effect.provide(chatting))
  )

  it.effect("and waits for a person is in the history before the next message, and once if it is answered", () =>
    Effect.gen(function* () {
      const provider = paysAndThen(Effect.fail(fails))
      yield* Effect.flip(Chat.chat(agent, "pay A", { provider, runId: "first" }))
      assert.deepStrictEqual(yield* history, ["user: pay A"])
      const [question] = yield* Kernel.questions("first")
      const again = MockProvider.make({ text: "done" })
      const answers = [{ callId: question?.callId ?? "", approved: true }]
      yield* Chat.resume(agent, "first", { provider: again, answers })
      assert.lengthOf(yield* history, 4)
      yield* Effect.flip(
        Chat.chat(agent, "pay B", { provider: MockProvider.make({ calls: [{ name: "pay", input: {} }] }) })
      )
      yield* Chat.chat(agent, "go on", { provider })
      assert.include((yield* history)[6], "This call was not run.")
    }).pipe(Effect.provide([chatting, Policy.layer(() => Effect.succeed(Policy.confirm("careful")))]))
  )
})
