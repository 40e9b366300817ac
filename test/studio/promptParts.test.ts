/** The parts of a prompt that the playground offers, and the changes that it sends. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, Provider, RunState, RunStore, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import { changesOf, promptParts } from "../../src/studio/page/promptParts.ts"
import { command, final } from "../support/blocks.ts"

const look = Skill.make("look", {
  description: "Looks",
  effects: "read",
  input: Schema.Struct({ at: Schema.String }),
  execute: ({ at }) => (at === "12A" ? Effect.succeed("free") : Effect.fail("no such seat"))
})

const agent = Agent.make({ name: "clerk", instructions: "You book.", model: "scripted", skills: [look] })

/** Returns the state at which the last turn of a run was prepared. */
const lastPrepared = (...replies: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const { runId } = yield* Kernel.run(agent, "A seat?")
    const records = yield* RunStore.RunStore.use((store) => Stream.runCollect(store.read(runId)))
    const last = records.findLastIndex(({ events }) => events.some(({ type }) => type === "turn_prepared"))
    return RunState.fold(records.slice(0, last + 1)) ?? assert.fail("no state")
  }).pipe(
    Effect.provide(
      Kernel.layer.pipe(
        Layer.provide([
          Layer.succeed(Provider.Provider, MockProvider.make(...replies)),
          SkillRegistry.layer(),
          ProtocolRegistry.layer(),
          MediaStore.layerMemory
        ]),
        Layer.provideMerge(RunStore.layerMemory)
      )
    )
  )

describe("the parts of a prompt", () => {
  it.effect("are the question, the replies, and the results of calls in place of the messages that show them", () =>
    Effect.gen(function* () {
      const calls = `${command("look", { at: "12A" })}${command("look", { at: "99Z" })}`
      const state = yield* lastPrepared(calls, '<block type="plan">I think.</block>', final("Free."))
      const parts = promptParts(state)
      assert.deepStrictEqual(
        parts.slice(0, 5).map(({ kind, text }) => [kind, text]),
        [
          ["question", "A seat?"],
          ["message", calls],
          ["result", "free"],
          ["result", "no such seat"],
          ["message", '<block type="plan">I think.</block>']
        ]
      )
      assert.isTrue(parts.slice(4).every(({ kind }) => kind === "message"))
      assert.strictEqual(parts.length, state.prompt.length)
    })
  )

  it.effect("become the changes of a fork by their keys", () =>
    Effect.gen(function* () {
      const parts = promptParts(yield* lastPrepared(command("look", { at: "12A" }), final("Free.")))
      const [question, reply, result] = parts
      assert.isDefined(question)
      assert.isDefined(reply)
      assert.isDefined(result)
      const texts = [
        [question.key, "Two seats?"],
        [reply.key, "I look."],
        [result.key, "taken"]
      ] as const
      assert.deepStrictEqual(changesOf(parts, new Map(texts)), {
        question: "Two seats?",
        messages: [{ at: 1, text: "I look." }],
        results: { [result.key]: "taken" }
      })
      assert.deepStrictEqual(changesOf(parts, new Map()), {})
    })
  )
})
