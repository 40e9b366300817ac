/** What a person changes in a fork. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, MediaStore, Message, ProtocolRegistry, Provider, RunStore, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import * as Edits from "../../src/studio/internal/forkEdits.ts"
import { command, final } from "../support/blocks.ts"

const look = Skill.make("look", {
  description: "Looks",
  effects: "read",
  input: Schema.Struct({}),
  execute: () => Effect.succeed("free")
})

const agent = Agent.make({ name: "clerk", instructions: "You book.", model: "scripted", skills: [look] })

/** The text of the instructions in a request. */
const systemIn = ({ messages }: Provider.Request) =>
  messages
    .filter(({ role }) => role === "system")
    .map((message) => Message.text(message))
    .join()

describe("editOf", () => {
  it.effect("plays a turn again with other instructions and another temperature, and later turns as they were", () => {
    const requests: Array<Provider.Request> = []
    const replies = [command("look"), final("Done."), command("look"), final("Done again.")]
    const mock = MockProvider.make().onCall((request) => {
      requests.push(request)
      return replies[requests.length - 1] ?? ""
    })
    return Effect.gen(function* () {
      const { runId } = yield* Kernel.run(agent, "A seat?")
      const store = yield* RunStore.RunStore
      const records = yield* Stream.runCollect(store.read(runId))
      const prepared = records.find(({ events }) => events.some(({ type }) => type === "turn_prepared"))
      const revision = prepared?.revision ?? 0
      const edit = Edits.editOf(runId, "fork", { revision, instructions: "You refuse.", temperature: 0.5 })
      yield* Kernel.fork(runId, { revision, runId: "fork", edit })
      const { text } = yield* Kernel.resume(agent, "fork")
      assert.strictEqual(text, "Done again.")
      const [first, , again, later] = requests
      assert.isDefined(first)
      assert.isDefined(again)
      assert.isDefined(later)
      assert.strictEqual(systemIn(again), "You refuse.")
      assert.strictEqual(again.generation.temperature, 0.5)
      assert.strictEqual(systemIn(later), systemIn(first))
      assert.strictEqual(later.generation.temperature, first.generation.temperature)
    }).pipe(
      Effect.provide(
        Kernel.layer.pipe(
          Layer.provide([
            Layer.succeed(Provider.Provider, mock),
            SkillRegistry.layer(),
            ProtocolRegistry.layer(),
            MediaStore.layerMemory
          ]),
          Layer.provideMerge(RunStore.layerMemory)
        )
      )
    )
  })
})
