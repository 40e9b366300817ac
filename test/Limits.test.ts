import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { Limits } from "kernai"

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

  it("bounds everything by a positive whole number", () => {
    for (const [name, value] of Object.entries(Limits.defaults)) {
      assert.isTrue(Number.isSafeInteger(value) && value > 0, name)
    }
  })
})
