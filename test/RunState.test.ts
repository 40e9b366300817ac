import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import { Agent, Hooks, Kernel, MediaStore, ProtocolRegistry, RunState, RunStore, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"
import * as Journal from "../src/testing/internal/sampleJournal.ts"
import { stores } from "./support/stores.ts"

const agent = Agent.make({ name: "clerk", instructions: "", model: "m", skills: "all" })
const count = Skill.make("count", { description: "Counts", input: Schema.Struct({}), execute: () => Effect.succeed(1) })

/** What a host does to keep, change or send a state. */
const copies = (state: RunState.RunState): ReadonlyArray<Pick<RunState.RunState, "turns" | "prompt">> => [
  { ...state },
  Object.assign({}, state),
  structuredClone({ ...state }),
  JSON.parse(JSON.stringify(state))
]

const isWhole = (state: RunState.RunState, turns: number, messages: number) => {
  for (const copy of [state, ...copies(state)]) {
    assert.strictEqual(copy.turns.length, turns)
    assert.strictEqual(copy.prompt.length, messages)
  }
}

describe("a state that is spread, copied or encoded as JSON", () => {
  it("keeps its turns and its conversation when it is a fold of records", () => {
    const run = Journal.begin("run")
    const commits = [run.last(), ...Journal.turn(run), ...Journal.turn(run)]
    const records = commits.map(({ record }) => record)
    const { prompt } = run.last().state
    isWhole(RunState.fold(records) ?? assert.fail("there is no state"), 2, prompt.length)
    let state: RunState.RunState | undefined
    for (const record of records) state = RunState.advance(state, record)
    isWhole(state ?? assert.fail("there is no state"), 2, prompt.length)
    assert.deepStrictEqual(
      Object.keys(run.last().state).filter((key) => key === "turns" || key === "prompt"),
      ["turns", "prompt"]
    )
  })

  for (const { isThere, name, place } of stores) {
    it.live.skipIf(!isThere)(`keeps them in hooks, and when it is loaded from the run store in ${name}`, () =>
      Effect.gen(function* () {
        const store = yield* place
        const command = '<block type="command" name="count">{}</block>'
        const mock = MockProvider.make(command, command, '<block type="final">done</block>')
        const seen: Array<RunState.RunState> = []
        const hooks = Hooks.layer({ onTurnCompleted: ({ state }) => Effect.sync(() => void seen.push(state)) })
        yield* Effect.gen(function* () {
          yield* Kernel.run(agent, "go", { runId: "r" })
          assert.lengthOf(seen, 3)
          seen.forEach((state, index) => {
            isWhole(state, index + 1, state.prompt.length)
            assert.isTrue(
              Object.isFrozen(state) && Object.isFrozen(state.turns) && Object.isFrozen({ ...state }.prompt)
            )
          })
          const load = RunStore.RunStore.use((store) => store.load("r"))
          const state = Option.getOrThrow(yield* load)
          isWhole(state, 3, seen.at(-1)?.prompt.length ?? 0)
          assert.deepStrictEqual(Option.getOrThrow(yield* load).turns, state.turns)
        }).pipe(
          Effect.provide(
            Kernel.layer.pipe(
              Layer.provideMerge(store),
              Layer.provide([
                SkillRegistry.layer(count),
                ProtocolRegistry.layer(),
                MediaStore.layerMemory,
                MockProvider.layerOf(mock),
                hooks
              ])
            )
          )
        )
      }).pipe(Effect.scoped)
    )
  }
})
