import { assert, describe, it } from "@effect/vitest"
import { DateTime, Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, Policy, Program, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "../support/kernel.ts"
import { call } from "../support/team.ts"
import { stored } from "../support/workflow.ts"

const photo = Skill.external("photo", {
  description: "Takes a photo on the user's phone",
  input: Schema.Struct({ of: Schema.String }),
  output: Schema.Struct({ url: Schema.String }),
  within: "1 hour"
})

const agent = Agent.make({ instructions: "", model: "m", dialect: "tools", skills: [photo] })

/** Runs an agent until its external call waits. Returns the model and the question. */
const waiting = Effect.gen(function* () {
  const provider = MockProvider.make(call("photo", { of: "the meter" }), "done")
  const paused = yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "run" }))
  assert.strictEqual(paused._tag, "RunPaused")
  const [question] = yield* Kernel.questions("run")
  return { provider, question, callId: question?.callId ?? "" }
})

describe("an external call", () => {
  it.effect("rests the run until somebody gives its result, which the model reads", () =>
    Effect.gen(function* () {
      const { callId, provider, question } = yield* waiting
      assert.deepInclude(question, { name: "photo", input: { of: "the meter" } })
      assert.deepInclude(question?.asking, {
        message: "Takes a photo on the user's phone",
        output: {
          type: "object",
          properties: { url: { type: "string" } },
          required: ["url"],
          additionalProperties: true
        }
      })
      yield* Kernel.answer("run", [{ callId, output: { url: "https://a/b.png" } }])
      assert.strictEqual((yield* Kernel.resume(agent, "run", { provider })).text, "done")
      assert.include(JSON.stringify(provider.lastCall?.messages), "https://a/b.png")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("refuses a result that does not fit, and an agreement without a result", () =>
    Effect.gen(function* () {
      const { callId } = yield* waiting
      const misfit = yield* Effect.flip(Kernel.answer("run", [{ callId, output: { url: 5 } }]))
      assert.deepInclude(misfit, { _tag: "AnswerRefused", reason: "invalid" })
      assert.include(misfit.message, "url")
      const agreed = yield* Effect.flip(Kernel.answer("run", [{ callId, approved: true }]))
      assert.deepInclude(agreed, { _tag: "AnswerRefused", reason: "invalid" })
      assert.include(agreed.message, "output")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("fails with the error that is given, and after its time without a result", () =>
    Effect.gen(function* () {
      const { callId, provider } = yield* waiting
      yield* Kernel.resume(agent, "run", { provider, answers: [{ callId, error: "the camera is broken" }] })
      assert.include(JSON.stringify(provider.lastCall?.messages), "the camera is broken")
      const late = MockProvider.make(call("photo", { of: "the meter" }), "done")
      yield* Effect.flip(Kernel.run(agent, "?", { provider: late, runId: "late" }))
      yield* TestClock.adjust("1 hour")
      yield* Kernel.resume(agent, "late", { provider: late })
      assert.include(JSON.stringify(late.lastCall?.messages), "Nobody answered in time.")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("gives a program its decoded result", () =>
    Effect.gen(function* () {
      const signed = Skill.external("signed", {
        description: "Waits for a signature",
        input: Schema.Struct({}),
        output: Schema.Struct({ at: Schema.DateTimeUtcFromString })
      })
      const contract = Program.make("contract", {
        skills: [signed],
        run: () => Effect.map(Program.call(signed, {}), ({ at }) => DateTime.formatIsoDateUtc(at))
      })
      yield* Effect.flip(Kernel.run(contract, "go", { runId: "run" }))
      const callId = (yield* Kernel.questions("run"))[0]?.callId ?? ""
      const answers = [{ callId, output: { at: "2026-11-29T10:00:00Z" } }]
      assert.strictEqual((yield* Kernel.resume(contract, "run", { answers })).output, "2026-11-29")
    }).pipe(Effect.provide(kernel()))
  )
})

describe("a question about a call", () => {
  it.effect("takes a decision and no result of the call", () =>
    Effect.gen(function* () {
      const pay = Skill.make("pay", {
        description: "Pays",
        input: Schema.Struct({}),
        execute: () => Effect.succeed("paid")
      })
      const payer = Agent.make({ instructions: "", model: "m", dialect: "tools", skills: [pay] })
      yield* Effect.flip(Kernel.run(payer, "?", { provider: MockProvider.make(call("pay")), runId: "run" }))
      const callId = (yield* Kernel.questions("run"))[0]?.callId ?? ""
      const refused = yield* Effect.flip(Kernel.answer("run", [{ callId, output: "paid" }]))
      assert.deepInclude(refused, { _tag: "AnswerRefused", reason: "invalid" })
      assert.strictEqual((yield* stored("run")).status.type, "paused")
    }).pipe(
      Effect.provide(
        Layer.provide(
          kernel(),
          Policy.layer(() => Effect.succeed(Policy.confirm("really?")))
        )
      )
    )
  )
})
