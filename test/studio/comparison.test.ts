/** Runs side by side, as the page draws them. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, Provider, RunState, RunStore, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { factsOf, isSame, sectionsOf, textsOf } from "../../src/studio/page/comparison.ts"
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

describe("the comparison of runs", () => {
  it.effect("has the question, the instructions and each turn with its calls, also one that only one run had", () =>
    Effect.gen(function* () {
      const long = yield* ran("A seat?", command("look", { at: "12A" }), final("Seat 12A is free."))
      const short = yield* ran("Any seat?", final("I do not know."))
      const sections = sectionsOf([long, short])
      assert.deepStrictEqual(
        sections.map(({ title }) => title),
        ["Question", "Instructions", "Turn 1", "Turn 2"]
      )
      const [question, instructions, first, second] = sections
      assert.deepStrictEqual(question?.texts, ["A seat?", "Any seat?"])
      assert.strictEqual(instructions?.texts[0], instructions?.texts[1])
      assert.deepStrictEqual(first?.texts, ['look {"at":"12A"}\n→ free: 12A', "I do not know."])
      assert.deepStrictEqual(second?.texts, ["Seat 12A is free.", undefined])
    })
  )

  it.effect("has the facts of any number of runs, with the distance of each figure from the first run", () =>
    Effect.gen(function* () {
      const first = yield* ran("A seat?", final("I do not know."))
      const second = yield* ran(
        "A seat?",
        command("look", { at: "12A" }),
        command("look", { at: "3C" }),
        final("Both.")
      )
      const third = yield* ran("A seat?", final("I do not know."))
      const facts = factsOf([first, second, third])
      const find = (title: string) => facts.find((fact) => fact.title === title)
      assert.deepStrictEqual(find("Calls")?.texts, ["none", "look × 2", "none"])
      assert.deepInclude(find("Turns"), { texts: ["1", "3", "1"], changes: ["", "+2", ""] })
      assert.deepStrictEqual(
        textsOf([first, second, third]).map((text) => [text.title, isSame(text)]),
        [
          ["Question", true],
          ["Instructions", true],
          ["Answer", false]
        ]
      )
    })
  )

  it.effect("names the settings that a turn had instead of those of its agent", () =>
    Effect.gen(function* () {
      const state = yield* ran("A seat?", final("Free."))
      const [turn] = state.turns
      const warm = {
        ...state,
        turns: turn === undefined ? [] : [{ ...turn, args: { generation: { temperature: 0.5 } } }]
      }
      const settings = factsOf([state, warm]).find(({ title }) => title === "Settings")
      assert.deepStrictEqual(settings?.texts, ["as the agent", "temperature 0.5"])
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
