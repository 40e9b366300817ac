import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Kernel, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { agent, population } from "../src/agent.ts"

describe("the agent", () => {
  it.effect("looks a city up before it answers", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(
        `<block type="command" name="population">{"city": "Oslo"}</block>`,
        "<final>done</final>"
      )
      const result = yield* Kernel.run(agent, "How many people live in Oslo?", { provider })
      assert.strictEqual(result.text, "done")
      assert.deepStrictEqual(
        result.calls.map((call) => call.name),
        ["population"]
      )
    }).pipe(
      Effect.provide(Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(population), MockProvider.layer()])))
    )
  )
})
