/** Offering a run at rest to workers again, and what a cancellation ends. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import { Agent, Hooks, Kernel, Policy, RunStore, RunWorker, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"

const wait = (execute: Effect.Effect<string>) =>
  Skill.make("wait", { description: "Waits", input: Schema.Struct({}), execute: () => execute })

const agent = (...skills: ReadonlyArray<Skill.AnySkill>) => Agent.make({ instructions: "", model: "m", skills })

const statusOf = (runId: string) =>
  RunStore.RunStore.use((store) => Effect.map(store.head(runId), (head) => Option.getOrThrow(head).status.type))

const live = (mock: MockProvider.Mock) => Layer.provideMerge(kernel(), MockProvider.layerOf(mock))

describe("Kernel.retry", () => {
  it.live("offers a run to workers that a hook paused, and one of them completes it", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final("done"))
      let pauses = 1
      const hooks = Hooks.layer({
        onTurnStarted: () => Effect.sync(() => (pauses-- > 0 ? Hooks.pause("maintenance") : undefined))
      })
      yield* Effect.gen(function* () {
        yield* Effect.flip(Kernel.run(agent(), "go", { runId: "r" }))
        assert.isTrue(yield* Kernel.retry("r"))
        assert.strictEqual(yield* statusOf("r"), "queued")
        yield* RunWorker.runOnce({ agents: [agent()] })
        assert.strictEqual(yield* statusOf("r"), "completed")
      }).pipe(Effect.provide(Layer.provideMerge(live(mock), hooks)))
    })
  )

  it.effect("leaves a run alone that asks a person, has ended, or is in progress", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(command("wait"), final("done"))
      const asks = Policy.layerRules({ confirm: [{ name: "wait" }] })
      yield* Effect.gen(function* () {
        const one = agent(wait(Effect.succeed("waited")))
        yield* Effect.flip(Kernel.run(one, "go", { runId: "r" }))
        assert.isFalse(yield* Kernel.retry("r"))
        const answers = (yield* Kernel.questions("r")).map(({ callId }) => ({ callId, approved: true }))
        yield* Kernel.resume(one, "r", { answers })
        assert.isFalse(yield* Kernel.retry("r"))
        yield* Kernel.submit(one, "go", { runId: "s" })
        assert.isFalse(yield* Kernel.retry("s"))
      }).pipe(Effect.provide(Layer.provideMerge(live(mock), asks)))
    })
  )
})

describe("the report of Kernel.cancel", () => {
  it.live("lists the run and its call in flight, and nothing the second time", () =>
    Effect.gen(function* () {
      const one = agent(wait(Effect.never))
      yield* Kernel.run(one, "go", { runId: "r" }).pipe(Effect.timeout("300 millis"), Effect.ignore)
      const { calls, requests, runs } = yield* Kernel.cancel("r")
      assert.deepStrictEqual([runs, requests], [["r"], []])
      assert.deepStrictEqual(
        calls.map(({ effects, name, runId }) => [runId, name, effects]),
        [["r", "wait", "write"]]
      )
      assert.deepStrictEqual(yield* Kernel.cancel("r"), { runs: [], workers: [], requests: [], calls: [] })
    }).pipe(Effect.provide(live(MockProvider.make(command("wait")))))
  )

  it.live("names the model that was asked", () =>
    Effect.gen(function* () {
      yield* Kernel.run(agent(), "go", { runId: "r" }).pipe(Effect.timeout("300 millis"), Effect.ignore)
      assert.deepStrictEqual((yield* Kernel.cancel("r")).requests, ["r"])
    }).pipe(Effect.provide(live(MockProvider.make("late").withDelay({ first: "1 hour" }))))
  )
})
