/** Two runs side by side, as the page draws them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, Provider, RunState, RunStore, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { factsOf, sectionsOf } from "../../src/studio/page/comparison.ts"
import { wordDifferences } from "../../src/studio/page/wordDifferences.ts"
import { command, final } from "../support/blocks.ts"

const look = Skill.make("look", {
  description: "Looks",
  effects: "read",
  input: Schema.Struct({ at: Schema.String }),
  execute: ({ at }) => Effect.succeed(`free: ${at}`)
})

const agent = Agent.make({ name: "clerk", instructions: "You book.", model: "scripted", skills: "all" })

const ran = (question: string, ...replies: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { runId } = yield* Kernel.run(agent, question)
    const store = yield* RunStore.RunStore
    const state = RunState.fold(yield* Stream.runCollect(store.read(runId)))
    return state ?? assert.fail("no state")
  }).pipe(
    Effect.provide(
      Kernel.layer.pipe(
        Layer.provide([
          Layer.succeed(Provider.Provider, MockProvider.make(...replies)),
          SkillRegistry.layer(look),
          ProtocolRegistry.layer(),
          MediaStore.layerMemory
        ]),
        Layer.provideMerge(RunStore.layerMemory)
      )
    )
  )

describe("the comparison of two runs", () => {
  it.effect("has the question, the instructions and each turn with its calls, also one that only one run had", () =>
    Effect.gen(function* () {
      const long = yield* ran("A seat?", command("look", { at: "12A" }), final("Seat 12A is free."))
      const short = yield* ran("Any seat?", final("I do not know."))
      const sections = sectionsOf(long, short)
      assert.deepStrictEqual(
        sections.map(({ title }) => title),
        ["Question", "Instructions", "Turn 1", "Turn 2"]
      )
      const [question, instructions, first, second] = sections
      assert.deepInclude(question, { left: "A seat?", right: "Any seat?" })
      assert.strictEqual(instructions?.left, instructions?.right)
      assert.deepInclude(first, { left: 'look {"at":"12A"}\n→ free: 12A', right: "I do not know." })
      assert.deepInclude(second, { left: "Seat 12A is free.", right: undefined })
      const turns = factsOf(long, short).find(({ title }) => title === "Turns")
      assert.deepInclude(turns, { left: "2", right: "1" })
    })
  )
})

describe("wordDifferences", () => {
  it("marks the words that only one text has, and returns both texts whole", () => {
    const { left, right } = wordDifferences("Pay 80 EUR to Nordlys AS.", "Pay 90 EUR to Nordlys AS today.")
    const own = (pieces: typeof left) => pieces.flatMap(({ isOwn, text }) => (isOwn ? [text] : []))
    assert.deepStrictEqual([own(left), own(right)], [["80"], ["90", " today"]])
    assert.strictEqual(right.map(({ text }) => text).join(""), "Pay 90 EUR to Nordlys AS today.")
  })

  it("marks texts that are too long to compare as a whole", () => {
    const { left, right } = wordDifferences("a ".repeat(3_000), "b ".repeat(3_000) + "c")
    assert.deepStrictEqual([left.length, right.length], [1, 1])
  })
})
