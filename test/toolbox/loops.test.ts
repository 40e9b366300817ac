import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { Agent, Kernel, type RunState, RunStore, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel, of } from "../support/kernel.ts"
import { told } from "../support/toolbox.ts"
import { command, final } from "../support/blocks.ts"

const counting = () => {
  let count = 0
  const ran: Array<string> = []
  const skill = (name: string, result: () => string) =>
    Skill.make(name, {
      description: name,
      input: Schema.Struct({ q: Schema.String }),
      effects: "read",
      execute: ({ q }) =>
        Effect.sync(() => {
          ran.push(`${name} ${q}`)
          return result()
        })
    })
  return {
    ran,
    layer: kernel(
      skill("search", () => "nothing"),
      skill("poll", () => `try ${++count}`)
    )
  }
}

const isLoop = (outcome: RunState.Outcome): outcome is Extract<RunState.Outcome, { readonly type: "corrective" }> =>
  outcome.type === "corrective" && outcome.reason === "loop"

const ask = (name: string, q: string) => command(name, { q })
const done = final("done")
const agent = Agent.make({ instructions: "", model: "m", skills: "all", maxSteps: 30, maxRepeats: 3 })

describe("maxRepeats", () => {
  it.effect("warns a model that repeats a call with the same result, and continues when it makes another", () => {
    const { layer, ran } = counting()
    return Effect.gen(function* () {
      const same = ask("search", "a")
      const provider = MockProvider.make(same, same, same, same, ask("search", "b"), done)
      const run = yield* told(agent, "?", { provider })
      assert.strictEqual(run.text, "done")
      assert.deepStrictEqual(ran, ["search a", "search a", "search a", "search b"])
      assert.deepStrictEqual(
        of(run.events, "model_completed").flatMap(({ outcome, step }) =>
          isLoop(outcome) ? [[step, outcome.loop]] : []
        ),
        [[3, { names: ["search"], repeats: 4 }]]
      )
      const told_ = provider.messagesAt(4)?.at(-1)?.content[0]
      assert.match(
        told_?.type === "text" ? told_.text : "",
        /^<block type="error">You asked for the same thing 3 times/
      )
    }).pipe(Effect.provide(layer))
  })

  it.effect(
    "stops a model that repeats the call after the warning with a typed error, and the run can be resumed",
    () => {
      const { layer, ran } = counting()
      return Effect.gen(function* () {
        const provider = MockProvider.make(ask("search", "a"))
        const run = yield* told(agent, "?", { provider, runId: "r" })
        assert.deepInclude(run.failure, { _tag: "LoopDetected", runId: "r", repeats: 5 })
        assert.strictEqual(provider.callCount, 5)
        assert.lengthOf(ran, 3)
        const state = yield* RunStore.RunStore.use((store) => store.load("r"))
        assert.strictEqual(state._tag === "Some" && state.value.status.type, "failed")
        const again = yield* Effect.flip(Kernel.resume(agent, "r", { provider }))
        assert.deepInclude(again, { _tag: "LoopDetected", repeats: 6 })
        assert.lengthOf(ran, 3)
        const result = yield* Kernel.resume(agent, "r", { provider: MockProvider.make(done) })
        assert.strictEqual(result.text, "done")
      }).pipe(Effect.provide(layer))
    }
  )

  it.effect("detects cycles of two and three different calls", () => {
    const { layer } = counting()
    return Effect.gen(function* () {
      for (const circle of [
        ["a", "b"],
        ["a", "b", "c"]
      ]) {
        const provider = MockProvider.make().onCall((_, call) => ask("search", circle[call % circle.length] ?? ""))
        const run = yield* told(agent, "?", { provider })
        assert.strictEqual(run.failure?._tag, "LoopDetected")
        assert.strictEqual(provider.callCount, circle.length * 3 + 2)
      }
    }).pipe(Effect.provide(layer))
  })

  it.effect("allows a repeated call while its result changes, or with other calls in between", () => {
    const { layer } = counting()
    return Effect.gen(function* () {
      const polling = MockProvider.make().onCall((_, call) => (call === 12 ? done : ask("poll", "a")))
      assert.strictEqual((yield* told(agent, "?", { provider: polling })).text, "done")
      const working = MockProvider.make().onCall((_, call) =>
        call === 12 ? done : ask("search", call % 3 === 2 ? `step ${call}` : "a")
      )
      assert.strictEqual((yield* told(agent, "?", { provider: working })).text, "done")
    }).pipe(Effect.provide(layer))
  })

  it.effect("counts no call as part of a cycle that does not continue it", () => {
    const { layer } = counting()
    return Effect.gen(function* () {
      const [a, b] = [ask("search", "a"), ask("search", "b")]
      const provider = MockProvider.make(a, b, a, b, a, b, b, done)
      const run = yield* told(agent, "?", { provider })
      assert.strictEqual(run.text, "done")
      assert.isFalse(of(run.events, "model_completed").some(({ outcome }) => isLoop(outcome)))
    }).pipe(Effect.provide(layer))
  })

  it.effect("stops a model that answers every corrective with the same invalid reply", () => {
    const { layer } = counting()
    return Effect.gen(function* () {
      for (const before of [[], [ask("search", "a"), ask("search", "b")]]) {
        const provider = MockProvider.make(...before, "I am on it!")
        const run = yield* told(agent, "?", { provider })
        assert.strictEqual(run.failure?._tag, "LoopDetected")
        assert.strictEqual(provider.callCount, before.length + 4)
      }
    }).pipe(Effect.provide(layer))
  })

  it.effect("is off by default (BP-40), and works with native calls too", () => {
    const { layer } = counting()
    return Effect.gen(function* () {
      const free = Agent.make({ instructions: "", model: "m", skills: "all", maxSteps: 20 })
      const looping = MockProvider.make(ask("search", "a"))
      assert.strictEqual((yield* told(free, "?", { provider: looping })).failure?._tag, "MaxStepsReached")
      const native = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools", maxRepeats: 2 })
      const provider = MockProvider.make({ calls: [{ name: "search", input: { q: "a" } }] })
      const run = yield* told(native, "?", { provider })
      assert.strictEqual(run.failure?._tag, "LoopDetected")
      assert.strictEqual(provider.callCount, 4)
    }).pipe(Effect.provide(layer))
  })

  it.effect("rejects a limit of zero (AC-22)", () => {
    const { layer } = counting()
    return Effect.gen(function* () {
      const never = Agent.make({ instructions: "", model: "m", maxRepeats: 0 })
      const run = yield* told(never, "?", { provider: MockProvider.make("x") })
      assert.deepInclude(run.failure, { _tag: "AgentConfigInvalid", path: "maxRepeats" })
    }).pipe(Effect.provide(layer))
  })
})
