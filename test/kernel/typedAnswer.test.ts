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

  const city = Agent.make({
    instructions: "You name.",
    model: Model.textOnly,
    output: Schema.Struct({ city: Schema.String, n: Schema.Int })
  })
  const oslo = '{"city":"Oslo","n":1}'
  const wrapped: ReadonlyArray<readonly [where: string, said: string]> = [
    ["in a code fence", `\`\`\`json\n${oslo}\n\`\`\``],
    ["in a code fence without a language", `\`\`\`\n${oslo}\n\`\`\``],
    ["in a code fence between sentences", `Sure!\n\`\`\`json\n${oslo}\n\`\`\`\nAnything else?`],
    ["behind a sentence", `Here it is:\n\n${oslo}`],
    ["behind a sentence with braces, quotes and a citation", `It's {quoted} as "Oslo" [1]: ${oslo}`],
    ["before a sentence", `${oslo}\n\nThat is all.`],
    ["after a draft", `First {"city":"Bergen","n":2}, no: ${oslo}`],
    ["after thinking", `<think>{"city":"Bergen","n":2} or not?</think>\n${oslo}`],
    ["after thinking whose first tag the template wrote", `Maybe {"city":"Bergen","n":2}.</think>${oslo}`]
  ]
  for (const [where, said] of wrapped) {
    for (const dialect of ["tools", "blocks"] as const) {
      it.effect(`is read ${where}, and its JSON is the text of the result (${dialect})`, () =>
        Effect.gen(function* () {
          const mock = MockProvider.make(dialect === "tools" ? { text: said } : final(said))
          const result = yield* Kernel.run({ ...city, dialect }, "go", { provider: mock, runId: "r" })
          assert.deepStrictEqual(result.output, { city: "Oslo", n: 1 })
          assert.strictEqual(result.text, oslo)
          assert.strictEqual(mock.callCount, 1)
          const again = yield* Kernel.resume({ ...city, dialect }, "r", { provider: mock })
          assert.deepStrictEqual(again.output, result.output)
        }).pipe(Effect.provide(kernel()))
      )
    }
  }

  it.effect("that is a word may stand in a code fence", () =>
    Effect.gen(function* () {
      const output = Schema.Literals(["spam", "ham"])
      const worded = Agent.make({ instructions: "You name.", model: Model.textOnly, output })
      const mock = MockProvider.make(final("```\nham\n```"))
      assert.strictEqual((yield* Kernel.run(worded, "go", { provider: mock })).output, "ham")
    }).pipe(Effect.provide(kernel()))
  )

  for (const text of [
    "eggs",
    '{"a": 1}',
    '{"a": 1',
    '"cut',
    "[1, 2]",
    "Use `</think>` as the end.",
    "```json\n{}\n```"
  ]) {
    it.effect(`of type string is any text: ${JSON.stringify(text)}`, () =>
      Effect.gen(function* () {
        const sentence = Agent.make({ instructions: "You tell.", model: Model.textOnly, output: Schema.String })
        const mock = MockProvider.make(final(text))
        assert.strictEqual((yield* Kernel.run(sentence, "go", { provider: mock })).output, text)
      }).pipe(Effect.provide(kernel()))
    )
  }

  it.effect("may have null for a key that may be absent, and only there", () =>
    Effect.gen(function* () {
      const output = Schema.Struct({
        name: Schema.optionalKey(Schema.String),
        tags: Schema.Array(Schema.Struct({ color: Schema.optionalKey(Schema.String) })),
        none: Schema.NullOr(Schema.Int),
        count: Schema.Int
      })
      const agent = Agent.make({ instructions: "You tell.", model: Model.textOnly, output })
      const mock = MockProvider.make(
        final('{"name":null,"tags":[],"none":null,"count":null}'),
        final('{"name":null,"tags":[{"color":null},{"color":"red"}],"none":null,"count":3}')
      )
      const result = yield* Kernel.run(agent, "go", { provider: mock })
      assert.deepStrictEqual(result.output, { tags: [{}, { color: "red" }], none: null, count: 3 })
      assert.include(Message.text(mock.messagesAt(1)?.at(-1) ?? Message.user("")), "count")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("that does not fit gets a corrective that names what is wrong", () =>
    Effect.gen(function* () {
      const cases: ReadonlyArray<readonly [said: string, ...named: ReadonlyArray<string>]> = [
        ["Oslo, once", "no JSON"],
        ['{"city":"Oslo","n":', "no valid JSON"],
        ['Here: {"city":7,"n":"x"}', '"city"', '"n"'],
        ['```json\n{"city":"Oslo"}\n```', '"n"']
      ]
      const mock = MockProvider.make(...cases.map(([said]) => final(said)), final(oslo))
      yield* Kernel.run(city, "go", { provider: mock })
      for (const [index, [, ...named]] of cases.entries()) {
        const corrective = Message.text(mock.messagesAt(index + 1)?.at(-1) ?? Message.user(""))
        for (const name of named) assert.include(corrective.replaceAll("&quot;", '"'), name)
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is found in a long text of brackets without reading it again and again", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make({ text: "[{".repeat(50_000) }, { text: oslo })
      const result = yield* Kernel.run({ ...city, dialect: "tools" }, "go", { provider: mock })
      assert.strictEqual(result.output.city, "Oslo")
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
