import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Kernel, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { make } from "../src/chat.ts"

describe("the chat", () => {
  it.effect("shows the model what was said before", () => {
    const mock = MockProvider.make("Hello Ada.", "Your name is Ada.")
    return Effect.gen(function* () {
      const chat = yield* make
      yield* chat.say("I am Ada.")
      assert.strictEqual(yield* chat.say("Who am I?"), "Your name is Ada.")
      assert.strictEqual((mock.messagesAt(1) ?? []).length, 4)
      assert.strictEqual((yield* chat.history).length, 4)
    }).pipe(Effect.provide(Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(), MockProvider.layerOf(mock)]))))
  })
})
