import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, Policy, Rollout, RunStore, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "./support/kernel.ts"

const pay = (input: Schema.Codec<object, object>, execute: Effect.Effect<string> = Effect.succeed("paid")) =>
  Skill.make("pay", { description: "Pays", input, execute: () => execute })

const Amount = Schema.Struct({ amount: Schema.Finite })
const Grown = Schema.Struct({ amount: Schema.Finite, currency: Schema.String })

const agent = (name: string, aliases: ReadonlyArray<string>, ...skills: ReadonlyArray<Skill.AnySkill>) =>
  Agent.make({ name, aliases, instructions: "", model: "m", dialect: "tools", skills })

const provider = MockProvider.make().onCall(() => ({ calls: [{ name: "pay", input: { amount: 5 } }] }))

const live = Layer.provideMerge(
  Layer.provideMerge(kernel(), MockProvider.layerOf(provider)),
  Policy.layerRules({ confirm: [{ name: "pay", where: { amount: "5" } }] })
)

const waiting = Effect.flip(Kernel.run(agent("payer", [], pay(Amount)), "pay", { runId: "r", provider }))

describe("Rollout", () => {
  it.effect("finds nothing for an agent that can run what waits, and stores nothing", () =>
    Effect.gen(function* () {
      yield* waiting
      const store = yield* RunStore.RunStore
      const before = yield* store.head("r")
      assert.deepStrictEqual(yield* Rollout.check(agent("payer", [], pay(Amount)), "r"), [])
      assert.deepStrictEqual(yield* store.head("r"), before)
    }).pipe(Effect.provide(live))
  )

  it.effect("names an approval whose call could not run: its skill is gone, or its input does not fit", () =>
    Effect.gen(function* () {
      yield* waiting
      const [grown] = yield* Rollout.check(agent("payer", [], pay(Grown)), "r")
      assert.deepInclude({ ...grown }, { runId: "r", reason: "approval", name: "pay" })
      assert.include(grown?.detail ?? "", "currency")
      const [gone] = yield* Rollout.check(agent("payer", []), "r")
      assert.include(gone?.detail ?? "", "not found")
    }).pipe(Effect.provide(live))
  )

  it.effect("names a run of another agent, and none of an earlier name", () =>
    Effect.gen(function* () {
      yield* waiting
      const [other] = yield* Rollout.check(agent("clerk", [], pay(Amount)), "r")
      assert.deepInclude({ ...other }, { reason: "agent", detail: "it belongs to the agent 'payer'" })
      assert.deepStrictEqual(yield* Rollout.check(agent("clerk", ["payer"], pay(Amount)), "r"), [])
    }).pipe(Effect.provide(live))
  )

  it.live("names a call in flight that nobody could repeat", () =>
    Effect.gen(function* () {
      const stuck = agent("payer", [], pay(Amount, Effect.never))
      yield* Kernel.run(stuck, "pay", { runId: "r", provider }).pipe(Effect.timeout("300 millis"), Effect.ignore)
      const [lost] = yield* Rollout.check(agent("payer", []), "r")
      assert.deepInclude({ ...lost }, { runId: "r", reason: "in_flight", name: "pay" })
    }).pipe(Effect.provide(Layer.provideMerge(kernel(), MockProvider.layerOf(provider))))
  )

  it.effect("emits the unfinished runs of an agent and of its aliases", () =>
    Effect.gen(function* () {
      yield* waiting
      const of = (one: Agent.Agent) => Effect.map(Stream.runCollect(Rollout.unfinished(one)), (runs) => runs.length)
      assert.deepStrictEqual([yield* of(agent("clerk", ["payer"])), yield* of(agent("clerk", []))], [1, 0])
    }).pipe(Effect.provide(live))
  )
})
