/** The conversations of a caller: their list, a search in them, their names, and their end. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result, Schema, Stream } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, Provider, RunStore, Skill, SkillRegistry } from "kernai"
import { Access, ServedRuns } from "kernai/http"
import { MockProvider } from "kernai/testing"
import * as OwnChats from "../../src/studio/internal/ownChats.ts"
import * as RunFacts from "../../src/studio/internal/runFacts.ts"
import { command, final } from "../support/blocks.ts"

const sleep = Skill.make("sleep", {
  description: "Never ends",
  effects: "read",
  input: Schema.Struct({}),
  execute: () => Effect.never
})
const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all" })

const provider = MockProvider.make().onCall(({ messages }) =>
  JSON.stringify(messages).includes("Sleep") ? command("sleep", {}) : final("It is in the cellar.")
)

const stores = Layer.merge(RunStore.layerMemory, MediaStore.layerMemory)
const kernel = Kernel.layer.pipe(
  Layer.provide([Layer.succeed(Provider.Provider, provider), SkillRegistry.layer(sleep), ProtocolRegistry.layer()]),
  Layer.provideMerge(stores)
)
const served = Layer.provideMerge(ServedRuns.layer({ agents: [agent] }), kernel)

const desk = (caller: Access.Caller) =>
  Effect.gen(function* () {
    const store = yield* RunStore.RunStore
    const media = yield* MediaStore.MediaStore
    const runs = (yield* ServedRuns.ServedRuns).of(caller)
    const own: OwnChats.Stores = { store, media, factsOf: RunFacts.make(store) }
    const ask = (runId: string, input: string) =>
      Effect.andThen(runs.start({ runId, input }), Stream.runDrain(runs.follow(runId)))
    const list = (search?: string) => OwnChats.list(own, runs)(search === undefined ? {} : { search })
    const lines = (search?: string) =>
      Effect.map(list(search), (page) => page.lines.map(({ id, name, words }) => `${id}: ${name ?? words}`))
    return { store, own, runs, ask, lines }
  })

describe("the conversations of a chat", () => {
  it.live("are listed by their first questions, and found by later ones", () =>
    Effect.gen(function* () {
      const { ask, lines } = yield* desk(Access.operator)
      yield* ask("chat.tea.1", "Where is the tea?")
      yield* ask("chat.rice.1", "Where is the rice?")
      yield* ask("chat.tea.2", "And the milk?")
      yield* ask("other", "Where is the salt?")
      assert.deepEqual(yield* lines(), ["tea: Where is the tea?", "rice: Where is the rice?"])
      assert.deepEqual(yield* lines("milk"), ["tea: And the milk?"])
      assert.deepEqual(yield* lines("salt"), [])
    }).pipe(Effect.provide(served))
  )

  it.live("have the names that their caller gave them", () =>
    Effect.gen(function* () {
      const ada = yield* desk({ id: "ada" })
      const bob = yield* desk({ id: "bob" })
      yield* ada.ask("chat.tea.1", "Where is the tea?")
      yield* OwnChats.rename(ada.own, ada.runs, "tea", "Supplies")
      assert.deepEqual(yield* ada.lines(), ["tea: Supplies"])
      assert.deepEqual(yield* bob.lines(), [])
      const foreign = yield* Effect.result(OwnChats.rename(bob.own, bob.runs, "tea", "Mine"))
      assert.strictEqual(Result.isFailure(foreign) && foreign.failure._tag, "NotFound")
      yield* OwnChats.rename(ada.own, ada.runs, "tea", "")
      assert.deepEqual(yield* ada.lines(), ["tea: Where is the tea?"])
    }).pipe(Effect.provide(served))
  )

  it.live("are deleted with all their variants, also while one of them is answered", () =>
    Effect.gen(function* () {
      const { ask, lines, own, runs, store } = yield* desk({ id: "ada" })
      yield* ask("chat.tea.1", "Where is the tea?")
      yield* ask("chat.tea.1v2.1", "Where is the green tea?")
      yield* ask("chat.teapot.1", "Where is the pot?")
      yield* runs.start({ runId: "chat.tea.2", input: "Sleep." })
      yield* OwnChats.rename(own, runs, "tea", "Supplies")
      assert.lengthOf(yield* OwnChats.remove(own, runs, "tea"), 3)
      assert.deepEqual(yield* lines(), ["teapot: Where is the pot?"])
      assert.deepEqual(yield* store.notes?.list("chat/") ?? Effect.undefined, [])
      const again = yield* Effect.result(OwnChats.remove(own, runs, "tea"))
      assert.strictEqual(Result.isFailure(again) && again.failure._tag, "NotFound")
    }).pipe(Effect.provide(served))
  )
})
