import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Content, Kernel, Limits, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "./support/kernel.ts"

describe("Limits", () => {
  it.effect("needs no provider, and one layer changes a bound for everything below it", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Limits.Limits).skillMs, 300_000)
      const strict = Layer.succeed(Limits.Limits, { ...Limits.defaults, skillMs: 5 })
      const seen = yield* Effect.provide(Limits.Limits, strict)
      assert.strictEqual(seen.skillMs, 5)
      assert.strictEqual(seen.replyBytes, Limits.defaults.replyBytes)
    })
  )

  it.effect("of a kernel are not those of another one that runs inside of it", () => {
    const long = "x".repeat(5_000)
    const say = (name: string, execute: () => Effect.Effect<string, unknown>) =>
      Skill.make(name, { description: "", input: Schema.Struct({}), execute })
    const strict = Layer.succeed(Limits.Limits, { ...Limits.defaults, resultBytes: 1_000 })
    const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools" })
    /** What a model is told that calls a skill once. */
    const toldOf = (name: string) =>
      Effect.suspend(() => {
        const provider = MockProvider.make({ calls: [{ id: "c", name }] }, "done")
        return Effect.map(Kernel.run(agent, "?", { provider }), () =>
          (provider.messagesAt(1)?.at(-1)?.content ?? []).map(Content.toText).join("")
        )
      })
    const dump = say("dump", () => Effect.succeed(long))
    const inner = Effect.provide(toldOf("dump"), Layer.fresh(Layer.provide(kernel(dump), strict)))
    const ask = say("ask", () => Effect.map(inner, (told) => String(told.length)))
    return Effect.gen(function* () {
      const { length } = yield* inner
      assert.isAtMost(length, 1_300)
      assert.isAtLeast(length, 1_000)
      assert.isTrue((yield* toldOf("ask")).endsWith(` ${length}`))
      // Those a host chose hold for both.
      const chosen = yield* Effect.provideService(inner, Limits.Limits, { ...Limits.defaults })
      assert.isAbove(chosen.length, long.length)
    }).pipe(Effect.provide(kernel(ask)))
  })

  it("bounds everything by a positive whole number", () => {
    for (const [name, value] of Object.entries(Limits.defaults)) {
      assert.isTrue(Number.isSafeInteger(value) && value > 0, name)
    }
  })
})
