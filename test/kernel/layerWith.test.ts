import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { Agent, Kernel, ModelRegistry, Policy, Protocol, RunStore, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"

class Till extends Context.Service<Till, { readonly pay: Effect.Effect<string> }>()("test/Till") {}

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({}),
  execute: () => Effect.flatMap(Till, ({ pay }) => pay)
})
const agent = Agent.make({ instructions: "", model: "m", skills: "all" })

describe("a kernel as one layer", () => {
  it.effect("has its stores, asks by the policies provided to it, and needs the services of its skills", () => {
    const live = Kernel.layerWith({
      provider: MockProvider.layer(command("pay"), final("ok")),
      skills: [pay],
      store: RunStore.layerMemory
    }).pipe(
      Layer.provide(Policy.layerRules({ confirm: [{ name: "pay" }] })),
      Layer.provide(Layer.succeed(Till, { pay: Effect.succeed("paid") }))
    )
    return Effect.gen(function* () {
      yield* Effect.flip(Kernel.run(agent, "?", { runId: "r" }))
      const answers = (yield* Kernel.questions("r")).map(({ callId }) => ({ callId, approved: true }))
      const { calls, text } = yield* Kernel.resume(agent, "r", { answers })
      assert.deepStrictEqual([text, calls[0]?.isError], ["ok", false])
    }).pipe(Effect.provide(live))
  })

  it.effect("has models by name, and protocols", () =>
    Effect.gen(function* () {
      const echo = Protocol.make("echo", { handle: ({ content }) => Effect.succeed(content) })
      const fast = MockProvider.make(`<block type="echo">hi</block>`, final("ok"))
      const live = Kernel.layerWith({ models: ModelRegistry.layer({ fast }), protocols: [echo] })
      const named = Agent.make({ instructions: "", model: "fast/one" })
      const { calls } = yield* Effect.provide(Kernel.run(named, "?"), live)
      assert.deepStrictEqual(
        calls.map(({ name }) => name),
        ["echo"]
      )
    })
  )

  it.effect("uses the provider in context without one of its own", () =>
    Effect.gen(function* () {
      const live = Layer.provide(Kernel.layerWith({}), MockProvider.layer(final("yes")))
      assert.strictEqual((yield* Effect.provide(Kernel.run(agent, "?"), live)).text, "yes")
    })
  )
})
