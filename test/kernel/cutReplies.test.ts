import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, KernelError, Limits, Model, type Provider, StreamPart } from "kernai"
import { kernel } from "../support/kernel.ts"

const agent = Agent.make({ instructions: "You test.", model: Model.textOnly })

/** A model whose replies end for these reasons, the last one forever. */
const ending = (...reasons: ReadonlyArray<StreamPart.FinishReason>) => {
  let calls = 0
  const provider: Provider.ProviderShape = {
    name: "ending",
    stream: () => {
      const reason = reasons[Math.min(calls++, reasons.length - 1)]
      return Stream.fromArray([StreamPart.text(`part ${calls}`), StreamPart.finish(reason)])
    }
  }
  return { provider, calls: () => calls }
}

describe("replies that end too early", () => {
  for (const reason of ["length", "unknown", "other"] as const) {
    it.effect(`are asked again twice, then fail the run with the text that arrived (${reason})`, () =>
      Effect.gen(function* () {
        const model = ending(reason)
        const error = yield* Effect.flip(Kernel.run(agent, "go", { provider: model.provider }))
        assert.deepInclude(error, { _tag: "CutReplies", count: 3, finishReason: reason, text: "part 3" })
        assert.strictEqual(model.calls(), 3)
      }).pipe(Effect.provide(kernel()))
    )
  }

  it.effect("are counted only in a row, and a limit of zero asks no second time", () =>
    Effect.gen(function* () {
      const recovers = ending("length", "length", "stop")
      assert.strictEqual((yield* Kernel.run(agent, "go", { provider: recovers.provider })).text, "part 3")
      const model = ending("length")
      const strict = Kernel.run(agent, "go", { provider: model.provider })
      const error = yield* Effect.flip(strict.pipe(Effect.provide(Limits.layer({ cutReplies: 0 }))))
      assert.deepInclude(error, { _tag: "CutReplies", count: 1, text: "part 1" })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("do not include a turn that its vendor paused", () =>
    Effect.gen(function* () {
      const model = ending("pause", "pause", "pause", "pause", "stop")
      const { text } = yield* Kernel.run(agent, "go", { provider: model.provider })
      assert.strictEqual(text, "part 1part 2part 3part 4part 5")
    }).pipe(Effect.provide(kernel()))
  )
})

describe("a resume of a run at its limit", () => {
  it.effect("asks once more for a reply that is whole", () =>
    Effect.gen(function* () {
      const model = ending("length", "length", "length", "length", "stop")
      const { provider } = model
      const failed = yield* Effect.flip(Kernel.run(agent, "go", { provider, runId: "r" }))
      assert.isTrue(KernelError.isRecoverable(failed))
      const error = yield* Effect.flip(Kernel.resume(agent, "r", { provider }))
      assert.deepInclude(error, { _tag: "CutReplies", text: "part 4" })
      assert.strictEqual(model.calls(), 4)
      assert.strictEqual((yield* Kernel.resume(agent, "r", { provider })).text, "part 5")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("goes on under a higher limit", () =>
    Effect.gen(function* () {
      const model = ending("length")
      const { provider } = model
      yield* Effect.flip(Kernel.run(agent, "go", { provider, runId: "r" }))
      const patient = Kernel.resume(agent, "r", { provider }).pipe(Effect.provide(Limits.layer({ cutReplies: 5 })))
      assert.deepInclude(yield* Effect.flip(patient), { _tag: "CutReplies", count: 6 })
      assert.strictEqual(model.calls(), 6)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("asks once more after empty replies", () =>
    Effect.gen(function* () {
      let calls = 0
      const provider: Provider.ProviderShape = {
        name: "silent",
        stream: () => Stream.fromArray([StreamPart.text(++calls < 5 ? "" : "here"), StreamPart.finish("stop")])
      }
      const called = { ...agent, dialect: "tools" as const }
      const first = yield* Effect.forkChild(Effect.flip(Kernel.run(called, "go", { provider, runId: "r" })))
      yield* TestClock.adjust("1 minute")
      assert.deepInclude(yield* Fiber.join(first), { _tag: "EmptyReplies", count: 3 })
      const second = yield* Effect.forkChild(Effect.flip(Kernel.resume(called, "r", { provider })))
      yield* TestClock.adjust("1 minute")
      assert.deepInclude(yield* Fiber.join(second), { _tag: "EmptyReplies", count: 4 })
      assert.strictEqual(calls, 4)
      const third = yield* Effect.forkChild(Kernel.resume(called, "r", { provider }))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(third)).text, "here")
    }).pipe(Effect.provide(kernel()))
  )
})

describe("the last allowed turn", () => {
  it.effect("leaves the text of its reply in the error", () =>
    Effect.gen(function* () {
      const model = ending("length")
      const error = yield* Effect.flip(Kernel.run({ ...agent, maxSteps: 2 }, "go", { provider: model.provider }))
      assert.deepInclude(error, { _tag: "MaxStepsReached", limit: 2, text: "part 2" })
    }).pipe(Effect.provide(kernel()))
  )
})
