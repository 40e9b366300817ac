import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Kernel, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { editor } from "../src/agents.ts"
import { model } from "../src/model.ts"

describe("the newsroom", () => {
  it.effect("answers by its writer, from what two researchers found", () =>
    Effect.gen(function* () {
      const result = yield* Kernel.run(editor, "Write about Oslo and Rome.")
      assert.strictEqual(result.agent, "writer")
      assert.strictEqual(result.text, "Oslo has 717710 inhabitants, and Rome has 2746984 inhabitants.")
      assert.deepStrictEqual(
        result.calls.map(({ name }) => name),
        ["researcher", "researcher", "transfer_to_writer"]
      )
    }).pipe(
      Effect.provide(Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(), MockProvider.layerOf(model())])))
    )
  )
})
