import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Stream } from "effect"
import { Kernel, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { agent, population } from "../src/agent.ts"
import { model } from "../src/model.ts"

describe("the workflow", () => {
  it.effect("compares when both cities are known", () =>
    Effect.gen(function* () {
      const done: Array<string> = []
      yield* Kernel.stream(agent, "Which city is larger, Oslo or Rome?").pipe(
        Stream.runForEach((event) =>
          Effect.sync(() => {
            if (event.type === "task_complete") done.push(`${event.id} ${event.result}`)
          })
        )
      )
      assert.deepStrictEqual(done.toSorted(), ["compare Rome", "oslo 717710", "rome 2746984"])
      assert.strictEqual(done.at(-1), "compare Rome")
    }).pipe(
      Effect.provide(
        Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(population), MockProvider.layerOf(model())]))
      )
    )
  )
})
