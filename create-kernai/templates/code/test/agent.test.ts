import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Kernel, Message, SkillRegistry } from "kernai"
import { Code } from "kernai/code"
import { MockProvider } from "kernai/testing"
import { agent } from "../src/agent.ts"
import { model } from "../src/model.ts"

describe("the agent", () => {
  it.live("reads what its program returned", () => {
    const mock = model()
    return Effect.gen(function* () {
      yield* Kernel.run(agent, "Which cities of Norway are large?")
      const told = mock.messagesAt(1)?.at(-1)
      assert.include(told === undefined ? "" : Message.text(told), `{"result":["Oslo","Bergen"]}`)
    }).pipe(
      Effect.provide(
        Layer.mergeAll(
          Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(), MockProvider.layerOf(mock)])),
          Code.layerQuickJs()
        )
      )
    )
  })
})
