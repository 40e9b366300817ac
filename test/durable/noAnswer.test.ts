/** The status of runs whose model gave no answer. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, RunStore } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "../support/kernel.ts"

const Answer = Schema.Struct({ city: Schema.String })

const agent = (maxSteps: number) =>
  Agent.make({ name: "clerk", instructions: "", model: "m", dialect: "tools", output: Answer, maxSteps })

const wrong = () => MockProvider.make().onCall(() => ({ text: '{"town":"Bern"}' }))

const statusOf = Effect.fnUntraced(function* (runId: string) {
  const store = yield* RunStore.RunStore
  return Option.getOrThrow(yield* store.head(runId)).status
})

describe("a run whose model gives no usable answer", () => {
  it.effect("ends without an answer at its turn limit, with the last correction as the reason", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(Kernel.run(agent(3), "go", { runId: "r", provider: wrong() }))
      assert.strictEqual(error._tag, "MaxStepsReached")
      const corrective = error._tag === "MaxStepsReached" ? error.corrective : "another error"
      assert.include(corrective ?? "", "city")
      const status = yield* statusOf("r")
      assert.deepInclude(status, { type: "no_answer", reason: corrective ?? "" })
      const listed = yield* (yield* RunStore.RunStore).list({ status: ["no_answer"] })
      assert.deepStrictEqual(
        listed.map(({ runId }) => runId),
        ["r"]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("has the status of a run without an answer after empty, cut, repeated and refused replies", () =>
    Effect.gen(function* () {
      const plain = (maxRepeats?: number) =>
        Agent.make({ name: "a", instructions: "", model: "m", dialect: "tools", output: Answer, maxRepeats })
      const cases = {
        EmptyReplies: [plain(), MockProvider.make().onCall(() => ({ text: "" }))],
        CutReplies: [plain(), MockProvider.make().onCall(() => ({ text: "The", reason: "length" }))],
        LoopDetected: [plain(2), wrong()],
        ProviderError: [plain(), MockProvider.make().onCall(() => ({ text: "", reason: "content-filter" }))]
      } as const
      for (const [tag, [one, provider]] of Object.entries(cases)) {
        const running = yield* Effect.forkChild(Effect.flip(Kernel.run(one, "go", { runId: tag, provider })))
        yield* TestClock.adjust("1 minute")
        assert.strictEqual((yield* Fiber.join(running))._tag, tag)
        const status = yield* statusOf(tag)
        assert.strictEqual(status.type, "no_answer", tag)
        assert.strictEqual("error" in status ? status.error.tag : undefined, tag)
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("continues when it is resumed with a higher limit, and ends at the same one again", () =>
    Effect.gen(function* () {
      yield* Effect.flip(Kernel.run(agent(2), "go", { runId: "r", provider: wrong() }))
      const store = yield* RunStore.RunStore
      const before = yield* store.head("r")
      assert.strictEqual(
        (yield* Effect.flip(Kernel.resume(agent(2), "r", { provider: wrong() })))._tag,
        "MaxStepsReached"
      )
      assert.deepStrictEqual(yield* store.head("r"), before)
      const right = MockProvider.make().onCall(() => ({ text: '{"city":"Bern"}' }))
      const { output, turns } = yield* Kernel.resume(agent(3), "r", { provider: right })
      assert.deepStrictEqual([output, turns], [{ city: "Bern" }, 3])
      assert.strictEqual((yield* statusOf("r")).type, "completed")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("does not keep those waiting who follow it to its end", () =>
    Effect.gen(function* () {
      yield* Effect.flip(Kernel.run(agent(2), "go", { runId: "r", provider: wrong() }))
      const events = yield* Stream.runCollect(Kernel.follow("r", { until: "end" }))
      assert.strictEqual(events.at(-1)?.type, "run_completed")
    }).pipe(Effect.provide(kernel()))
  )
})
