import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Kernel, Skill } from "kernai"
import { Code } from "kernai/code"
import { CrashMatrix, MockProvider, Replay } from "kernai/testing"
import { final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"

/** An agent whose programs count, and the number of counts that ran. */
const counting = () => {
  const counted: Array<number> = []
  const count = Skill.make("count", {
    description: "Counts",
    input: Schema.Struct({ by: Schema.Finite }),
    execute: ({ by }) =>
      Effect.as(
        Effect.sync(() => counted.push(by)),
        by
      )
  })
  return { agent: Code.agent({ skills: [count] }), counted }
}

const input = JSON.stringify({ code: "const first = await count({ by: 1 }); return first + (await count({ by: 2 }))" })

const layer = (model = MockProvider.layer()) => Layer.mergeAll(Layer.provideMerge(kernel(), model), Code.layerQuickJs())

const left = () => process.getActiveResourcesInfo().filter((name) => /Worker|MessagePort/.test(name))

describe("a program of a model in its thread", () => {
  it.live("is replayed on its recorded results, and leaves no thread", () =>
    Effect.gen(function* () {
      const { agent, counted } = counting()
      const replayed = Effect.gen(function* () {
        yield* Kernel.run(agent, input, { runId: "run" })
        return yield* Replay.run(agent, "run")
      })
      const { state } = yield* Effect.provide(replayed, layer())
      assert.strictEqual(state.status.type, "completed")
      assert.deepStrictEqual(counted, [1, 2])
      assert.deepStrictEqual(left(), [])
    })
  )

  it.live("is replayed below the agent that wrote it", () =>
    Effect.gen(function* () {
      const { agent, counted } = counting()
      const lead = Agent.make({ name: "lead", instructions: "", model: "scripted", agents: [agent] })
      const source = "return (await count({ by: 1 })) + (await count({ by: 2 }))"
      const model = MockProvider.layer(`<block type="command" name="code">${source}</block>`, final("Three."))
      const replayed = Effect.gen(function* () {
        yield* Kernel.run(lead, "Count", { runId: "run" })
        return yield* Replay.run(lead, "run")
      })
      const { runs } = yield* Effect.provide(replayed, layer(model))
      assert.deepStrictEqual([runs, counted], [2, [1, 2]])
    })
  )

  it.live("is cut off at each of its records, and loses and doubles nothing", () =>
    Effect.gen(function* () {
      const { agent } = counting()
      const report = yield* CrashMatrix.run({ agent, input, layer: layer() }, { ways: ["before", "after"] })
      assert.deepStrictEqual(report.violations, [], CrashMatrix.format(report))
      assert.isAbove(report.points, 5)
      assert.deepStrictEqual(left(), [])
    })
  )
})
