import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { ChatHistory, Kernel, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { say } from "../src/chat.ts"

describe("the chat", () => {
  it.effect("shows the model what was said before", () => {
    const mock = MockProvider.make("Hello Ada.", "Your name is Ada.")
    const kernel = Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(), MockProvider.layerOf(mock)]))
    return Effect.gen(function* () {
      yield* say("I am Ada.")
      assert.strictEqual(yield* say("Who am I?"), "Your name is Ada.")
      assert.strictEqual((mock.messagesAt(1) ?? []).length, 4)
      const history = yield* ChatHistory.ChatHistory
      assert.strictEqual((yield* history.toArray).length, 4)
    }).pipe(Effect.provide([kernel, ChatHistory.layerMemory]))
  })
})
