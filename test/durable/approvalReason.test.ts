/** The reason with which a person approves a call. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Kernel, Message, Policy, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"

const seen: Array<unknown> = []

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({}),
  execute: (_, { approval }) => Effect.sync(() => seen.push(approval)).pipe(Effect.as("paid"))
})

const live = kernel().pipe(Layer.provideMerge(Policy.layerRules({ confirm: [{ name: "pay" }] })))

/** Runs a call that is approved with an answer, and returns what the model reads then. */
const approved = (dialect: "blocks" | "tools", answer: { readonly reason?: string; readonly by?: string }) =>
  Effect.gen(function* () {
    seen.length = 0
    const agent = Agent.make({ instructions: "", model: "m", dialect, skills: [pay] })
    const first = dialect === "blocks" ? command("pay") : { calls: [{ name: "pay", id: "c1" }] }
    const mock = MockProvider.make().respondWith(first, dialect === "blocks" ? final("done") : "done")
    yield* Effect.flip(Kernel.run(agent, "go", { runId: "r", provider: mock }))
    const answers = (yield* Kernel.questions("r")).map(({ callId }) => ({ callId, approved: true, ...answer }))
    yield* Kernel.resume(agent, "r", { answers, provider: mock })
    const last = mock.lastCall?.messages.at(-1)
    return last === undefined ? "" : Message.text(last)
  }).pipe(Effect.provide(live))

describe("the reason of an approval", () => {
  for (const dialect of ["blocks", "tools"] as const) {
    it.effect(`reaches the skill and the model, with ${dialect}`, () =>
      Effect.gen(function* () {
        const text = yield* approved(dialect, { reason: "only <this> once", by: "ada" })
        assert.deepStrictEqual(seen, [{ reason: "only <this> once", by: "ada" }])
        assert.include(text, "paid")
        assert.match(text, /\(approved by ada: only (<|&lt;)this(>|&gt;) once\)/)
      })
    )
  }

  it.effect("adds nothing to the result of a call that is approved without one", () =>
    Effect.gen(function* () {
      const text = yield* approved("blocks", { by: "ada" })
      assert.deepStrictEqual(seen, [undefined])
      assert.strictEqual(text, '<block type="result" name="pay">paid</block>')
    })
  )
})
