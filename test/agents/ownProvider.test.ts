import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, Result, Schema, Stream } from "effect"
import { Agent, Kernel, type Provider, RunState, Skill, StreamPart } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "../support/kernel.ts"
import { call } from "../support/team.ts"

class Voice extends Context.Service<Voice, { readonly word: string; readonly ended: Array<string> }>()("test/Voice") {}

/** A provider that answers with a word and the number of the turn, read from the run. */
const counting = (word: string): Provider.ProviderShape => ({
  name: "counting",
  stream: () =>
    Stream.unwrap(
      Effect.map(RunState.current, (run) => {
        const turn = Option.match(run, { onNone: () => 0, onSome: ({ currentTurn }) => currentTurn?.turn ?? 0 })
        return Stream.make(StreamPart.text(`${word} ${turn}`), StreamPart.finish())
      })
    )
})

const own = Agent.make({
  name: "own",
  instructions: "",
  model: "m",
  dialect: "tools",
  provider: Effect.acquireRelease(
    Effect.map(Voice, ({ word }) => counting(word)),
    () => Effect.map(Voice, ({ ended }) => void ended.push("ended"))
  )
})

describe("an agent that brings its provider", () => {
  it.effect("is replied to by that provider, made with the services of the run and closed when it stops", () =>
    Effect.gen(function* () {
      const ended: Array<string> = []
      const Voices = Layer.succeed(Voice, { word: "turn", ended })
      const given = MockProvider.make("the given provider")
      const result = yield* Effect.provide(Kernel.run(own, "?", { provider: given }), Voices)
      assert.strictEqual(result.text, "turn 1")
      assert.deepStrictEqual(ended, ["ended"])
      assert.strictEqual(given.callCount, 0)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("keeps its provider where another agent calls it", () =>
    Effect.gen(function* () {
      const lead = Agent.make({ name: "lead", instructions: "", model: "m", dialect: "tools", agents: [own] })
      const provider = MockProvider.make(call("own", { input: "?" }), "done")
      const result = yield* Kernel.run(lead, "?", { provider }).pipe(
        Effect.provideService(Voice, { word: "child", ended: [] })
      )
      assert.strictEqual(result.text, "done")
      assert.include(JSON.stringify(provider.lastCall?.messages), "child 1")
    }).pipe(Effect.provide(kernel()))
  )

  it("cannot be written as a config", () => {
    assert.deepInclude(Result.getOrThrow(Result.flip(Agent.toConfig(own))), { path: "provider" })
  })
})

describe("RunState.current", () => {
  it.effect("is the run that calls a skill, and none outside a run", () =>
    Effect.gen(function* () {
      const who = Skill.make("who", {
        description: "Names the run",
        input: Schema.Struct({}),
        execute: () => Effect.map(RunState.current, (run) => Option.getOrThrow(run).runId)
      })
      const agent = Agent.make({ instructions: "", model: "m", dialect: "tools", skills: [who] })
      const provider = MockProvider.make(call("who"), "done")
      yield* Kernel.run(agent, "?", { provider, runId: "this-run" })
      assert.include(JSON.stringify(provider.lastCall?.messages), "this-run")
      assert.isTrue(Option.isNone(yield* RunState.current))
    }).pipe(Effect.provide(kernel()))
  )
})
