/** Agents that continue until a check accepts their answer. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Deferred, Effect, Fiber, Layer, Option, Schema, Stream } from "effect"
import { Agent, Kernel, Message, Model, type Provider, RunStore, StreamPart } from "kernai"
import { MockProvider } from "kernai/testing"
import { final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"

/** Accepts a number that is large enough. */
const large = Agent.make({
  instructions: "You count.",
  model: Model.textOnly,
  output: Schema.Int,
  maxSteps: 4,
  until: (count) => Effect.succeed(count >= 10 ? undefined : `${count} is less than 10`)
})

const turnsOf = (runId: string) =>
  Effect.map(
    Effect.flatMap(RunStore.RunStore, (store) => store.load(runId)),
    (state) => Option.getOrThrow(state).turns.map(({ outcome }) => outcome?.type)
  )

describe("an agent with a check", () => {
  for (const dialect of ["blocks", "tools"] as const) {
    it.effect(`continues until its answer is accepted, and reads the reason of each refusal (${dialect})`, () =>
      Effect.gen(function* () {
        const say = (count: string) => (dialect === "blocks" ? final(count) : { text: count })
        const mock = MockProvider.make(say("3"), say("7"), say("12"))
        const result = yield* Kernel.run({ ...large, dialect }, "go", { provider: mock, runId: "r" })
        assert.strictEqual(result.output, 12)
        assert.strictEqual(mock.callCount, 3)
        const read = mock.messagesAt(2)?.map((message) => Message.text(message)) ?? []
        assert.isTrue(read.some((text) => text.includes("3 is less than 10")))
        assert.include(read.at(-1) ?? "", "7 is less than 10")
        assert.deepStrictEqual(yield* turnsOf("r"), ["corrective", "corrective", "final"])
      }).pipe(Effect.provide(kernel()))
    )
  }

  it.effect("says only an accepted answer as its result", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final("3"), final("11"))
      const events = yield* Stream.runCollect(Kernel.stream(large, "go", { provider: mock }))
      assert.deepStrictEqual(
        of(events, "result").map(({ text }) => text),
        ["11"]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("ends at its last turn with the text of the refused answer", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final("1"), final("2"), final("3"), final("4"), final("50"))
      const error = yield* Effect.flip(Kernel.run(large, "go", { provider: mock }))
      assert.deepInclude(error, { _tag: "MaxStepsReached", limit: 4, text: final("4") })
      assert.strictEqual(mock.callCount, 4)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("asks its check for answers only, with the decoded value, the text and the turn", () =>
    Effect.gen(function* () {
      const asked: Array<unknown> = []
      const agent = Agent.make({
        instructions: "You count.",
        model: Model.textOnly,
        output: Schema.Int,
        until: (count, { text, turn }) => Effect.sync(() => void asked.push([count, text, turn]))
      })
      yield* Kernel.run(agent, "go", { provider: MockProvider.make(final("three"), final("3")) })
      assert.deepStrictEqual(asked, [[3, "3", 2]])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("may ask a judge, and use services of the run", () =>
    Effect.gen(function* () {
      class Least extends Context.Service<Least, number>()("test/Least") {}
      const judge = Agent.make({ name: "judge", instructions: "You judge.", model: Model.textOnly })
      const agent = Agent.make({
        instructions: "You write.",
        model: Model.textOnly,
        until: (text) =>
          Effect.gen(function* () {
            if (text.length < (yield* Least)) return "too short"
            const { output } = yield* Kernel.run(judge, text, { provider: MockProvider.make(final("fine")) })
            return output === "fine" ? undefined : output
          })
      })
      const run = Kernel.run(agent, "go", { provider: MockProvider.make(final("ab"), final("abcd")) })
      assert.strictEqual((yield* Effect.provide(run, Layer.succeed(Least, 3))).text, "abcd")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("ends at its budget, whatever its check says of the answers", () =>
    Effect.gen(function* () {
      const stubborn = { ...large, maxSteps: 100, budget: { maxTokens: 25 } }
      const provider: Provider.ProviderShape = {
        name: "counting",
        stream: () =>
          Stream.fromArray([
            StreamPart.text(final("3")),
            StreamPart.finish("stop", { inputTokens: { total: 8 }, outputTokens: { total: 2 } })
          ])
      }
      const error = yield* Effect.flip(Kernel.run(stubborn, "go", { provider, runId: "r" }))
      assert.strictEqual(error._tag, "BudgetExhaustedError")
      assert.deepStrictEqual(yield* turnsOf("r"), ["corrective", "corrective"])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("has stored the reason of a refusal, which a later process gives its model", () =>
    Effect.gen(function* () {
      const first = MockProvider.make(final("3"))
      yield* Effect.flip(Kernel.run({ ...large, maxSteps: 1 }, "go", { provider: first, runId: "r" }))
      const second = MockProvider.make(final("12"))
      assert.strictEqual((yield* Kernel.resume(large, "r", { provider: second })).output, 12)
      const read = second.messagesAt(0)?.map((message) => Message.text(message)) ?? []
      assert.include(read.at(-1) ?? "", "3 is less than 10")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("fails with ExtensionFailed if its check fails or dies", () =>
    Effect.gen(function* () {
      for (const until of [() => Effect.fail("broken"), () => Effect.die("broken")]) {
        const agent = Agent.make({ instructions: "You count.", model: Model.textOnly, until })
        const error = yield* Effect.flip(Kernel.run(agent, "go", { provider: MockProvider.make(final("x")) }))
        assert.deepInclude(error, { _tag: "ExtensionFailed" })
        assert.include(error.message, "until")
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("asks the model again after an interruption of the check, and has stored what the first reply used", () =>
    Effect.gen(function* () {
      const started = yield* Deferred.make<void>()
      const provider: Provider.ProviderShape = {
        name: "counting",
        stream: () =>
          Stream.fromArray([
            StreamPart.text(final("x")),
            StreamPart.finish("stop", { inputTokens: { total: 10 }, outputTokens: { total: 5 } })
          ])
      }
      const options = { instructions: "You count.", model: Model.textOnly }
      const stuck = Agent.make({
        ...options,
        until: () => Effect.andThen(Deferred.succeed(started, undefined), Effect.never)
      })
      const fiber = yield* Effect.forkChild(Kernel.run(stuck, "go", { provider, runId: "r" }))
      yield* Deferred.await(started)
      yield* Fiber.interrupt(fiber)
      const free = Agent.make({ ...options, until: () => Effect.succeed(undefined) })
      const result = yield* Kernel.resume(free, "r", { provider })
      assert.strictEqual(result.text, "x")
      assert.deepInclude(result.usage, { inputTokens: 20, outputTokens: 10 })
    }).pipe(Effect.provide(kernel()))
  )
})
