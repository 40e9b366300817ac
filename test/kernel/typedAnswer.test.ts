import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Schema } from "effect"
import { Agent, Hooks, Kernel, KernelError, Message, Model, RunStore } from "kernai"
import { MockProvider } from "kernai/testing"
import { final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"

describe("a typed answer", () => {
  const typed = Agent.make({
    instructions: "You count.",
    model: Model.textOnly,
    output: Schema.Struct({ count: Schema.Int })
  })

  it.effect("is decoded by the agent's schema, and an error goes back to the model", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make(final("three"), final('{"count": "3"}'), final('{"count": 3}'))
      const result = yield* Kernel.run(typed, "go", { provider: mock })
      assert.strictEqual(result.output.count, 3)
      assert.strictEqual(mock.callCount, 3)
      assert.include(Message.text(mock.messagesAt(0)?.[0] ?? Message.user("")), "count")
    }).pipe(Effect.provide(kernel()))
  )

  const words: ReadonlyArray<readonly [said: string, output: Schema.ConstraintDecoder<unknown>, read: unknown]> = [
    ["spam", Schema.Literals(["spam", "ham"]), "spam"],
    ['"ham"', Schema.Literals(["spam", "ham"]), "ham"],
    ["42", Schema.String, "42"],
    ["42", Schema.NumberFromString, 42],
    ["2026-01-02T00:00:00Z", Schema.Date, new Date("2026-01-02T00:00:00Z")]
  ]
  for (const [said, output, read] of words) {
    it.effect(`may be a word or sentence without quotes, such as ${said} for ${output.ast._tag}`, () =>
      Effect.gen(function* () {
        const worded = Agent.make({ instructions: "You name.", model: Model.textOnly, output })
        const result = yield* Kernel.run(worded, "go", { provider: MockProvider.make(final(said)) })
        assert.deepStrictEqual(result.output, read)
      }).pipe(Effect.provide(kernel()))
    )
  }

  it.effect("is not plain text that starts like JSON but is malformed", () =>
    Effect.gen(function* () {
      const sentence = Agent.make({ instructions: "You tell.", model: Model.textOnly, output: Schema.String })
      const mock = MockProvider.make(final('"cut'), final('{"a": 1'), final("eggs"), final("told"))
      assert.strictEqual((yield* Kernel.run(sentence, "go", { provider: mock })).output, "eggs")
      const named = { ...typed, maxSteps: 1 }
      const error = yield* Effect.flip(Kernel.run(named, "go", { provider: MockProvider.make(final("three")) }))
      assert.strictEqual(error._tag, "MaxStepsReached")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is decoded again when a finished run is resumed (AC-21, DR-15)", () =>
    Effect.gen(function* () {
      for (const [runId, said] of [
        ["final", final('{"count": 3}')],
        ["prose", '{"count": 3}']
      ] as const) {
        const first = yield* Kernel.run(typed, "go", { provider: MockProvider.make(said), runId })
        const again = yield* Kernel.resume(typed, runId, { provider: MockProvider.make() })
        assert.strictEqual(first.output.count, 3)
        assert.deepStrictEqual(again.output, first.output)
        assert.strictEqual(again.turns, 1)
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is not returned to an agent whose schema it does not fit, and stays stored for one whose it does", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(final('{"count": 3}'))
      yield* Kernel.run(typed, "go", { provider, runId: "r" })
      const other = Agent.make({
        instructions: "You name.",
        model: Model.textOnly,
        output: Schema.Struct({ name: Schema.String })
      })
      const error = yield* Effect.flip(Kernel.resume(other, "r", { provider }))
      assert.instanceOf(error, KernelError.OutputInvalid)
      assert.strictEqual(error.runId, "r")
      assert.include(error.message, `"name"`)
      assert.strictEqual((yield* Kernel.resume(typed, "r", { provider })).output.count, 3)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("that fails another agent's schema fails an unfinished run, which can be resumed again", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(final('{"count": 3}'))
      const hooks: Hooks.Hooks = {
        onModelCompleted: () => Effect.succeed({ control: { _tag: "Pause", reason: "look" } })
      }
      const paused = Kernel.run(typed, "go", { provider, runId: "r" }).pipe(Effect.provideService(Hooks.Hooks, hooks))
      assert.strictEqual((yield* Effect.flip(paused))._tag, "RunPaused")
      const other = Agent.make({ instructions: "You list.", model: Model.textOnly, output: Schema.Array(Schema.Int) })
      assert.strictEqual((yield* Effect.flip(Kernel.resume(other, "r", { provider })))._tag, "OutputInvalid")
      const { status } = Option.getOrThrow(yield* RunStore.RunStore.use((store) => store.load("r")))
      assert.strictEqual(status.type === "failed" ? status.error.tag : status.type, "OutputInvalid")
      assert.strictEqual((yield* Kernel.resume(typed, "r", { provider })).output.count, 3)
    }).pipe(Effect.provide(Layer.merge(kernel(), RunStore.layerMemory)))
  )
})
