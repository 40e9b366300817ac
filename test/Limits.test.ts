import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Layer, Schema } from "effect"
import { Agent, Content, Kernel, Limits, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "./support/kernel.ts"

describe("Limits", () => {
  it.effect("have defaults, and a layer changes one of them for everything below it", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* Limits.Limits).skillTimeout, Duration.minutes(5))
      const strict = Limits.layer({ skillTimeout: "5 seconds" })
      const seen = yield* Effect.provide(Limits.Limits, strict)
      assert.deepStrictEqual(seen.skillTimeout, Duration.seconds(5))
      assert.strictEqual(seen.replyLength, Limits.defaults.replyLength)
    })
  )

  it.effect("set on a kernel do not apply to another kernel that runs inside it", () => {
    const long = "x".repeat(5_000)
    const say = (name: string, execute: () => Effect.Effect<string, unknown>) =>
      Skill.make(name, { description: "", input: Schema.Struct({}), execute })
    const strict = Layer.succeed(Limits.Limits, { ...Limits.defaults, resultBytes: 1_000 })
    const agent = Agent.make({ instructions: "", model: "m", skills: "all", dialect: "tools" })
    /** Returns the result that a model receives for a single call. */
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
      // The note about what is left out counts, and cuts are made at characters.
      assert.isAtMost(length, 1_000)
      assert.isAtLeast(length, 950)
      assert.isTrue((yield* toldOf("ask")).endsWith(` ${length}`))
      // Those a host chose hold for both.
      const chosen = yield* Effect.provideService(inner, Limits.Limits, { ...Limits.defaults })
      assert.isAbove(chosen.length, long.length)
    }).pipe(Effect.provide(kernel(ask)))
  })

  it("are positive integers", () => {
    for (const [name, value] of Object.entries(Limits.make({}))) {
      const count = typeof value === "number" ? value : Duration.toMillis(value)
      assert.isTrue(Number.isSafeInteger(count) && count > 0, name)
    }
    assert.deepStrictEqual(Limits.make({}), Limits.defaults)
  })

  it("accepts durations in any notation, and an infinite one where waiting for ever makes sense", () => {
    const limits = Limits.make({ skillTimeout: 250, idleTimeout: "Infinity", cleanUpTimeout: 0, replyLength: Infinity })
    assert.deepStrictEqual(limits, {
      ...Limits.defaults,
      skillTimeout: Duration.millis(250),
      idleTimeout: Duration.infinity,
      cleanUpTimeout: Duration.zero,
      replyLength: Infinity
    })
  })

  it("refuses an invalid limit by its name", () => {
    for (const [options, message] of [
      [{ skillTimeout: -1 }, "Limits.skillTimeout: expected a duration above zero, got -1"],
      [{ taskTimeout: 0 }, "Limits.taskTimeout: expected a duration above zero, got 0"],
      [{ headersTimeout: Number.NaN }, "Limits.headersTimeout: expected a duration above zero, got NaN"],
      [{ maxRetryAfter: "-2 seconds" }, "Limits.maxRetryAfter: expected a duration of zero or more, got -2 seconds"],
      [{ cleanUpTimeout: Infinity }, "Limits.cleanUpTimeout: expected a finite duration of zero or more, got Infinity"],
      [{ replyLength: Number.NaN }, "Limits.replyLength: expected a whole number of at least 0, got NaN"],
      [{ resultBytes: -1 }, "Limits.resultBytes: expected a whole number of at least 0, got -1"],
      [{ liveEvents: 1.5 }, "Limits.liveEvents: expected a whole number of at least 1, got 1.5"],
      [{ modelAttempts: Infinity }, "Limits.modelAttempts: expected a finite whole number of at least 1, got Infinity"]
    ] as const) {
      assert.throws(() => Limits.make(options), RangeError, message)
      assert.throws(() => Limits.layer(options), RangeError, message)
    }
  })
})
