import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Result, Schema } from "effect"
import { Agent, Kernel, SkillRegistry } from "kernai"
import { Evaluation, MockProvider } from "kernai/testing"

const verdict = (scorer: Evaluation.Scorer, text: string, expected?: Schema.Json) =>
  scorer.score({ text }, { id: "1", input: "?", expected }).pipe(
    Effect.map(({ isPass, score }) => [isPass, Math.round(score * 100) / 100] as const),
    Effect.catch(({ message }) => Effect.succeed(message))
  )

describe("a scorer", () => {
  it.effect("compares exactly: texts without the blanks around them, other values as JSON", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* verdict(Evaluation.exact, " Oslo\n", "Oslo"), [true, 1])
      assert.deepStrictEqual(yield* verdict(Evaluation.exact, "oslo", "Oslo"), [false, 0])
      assert.deepStrictEqual(yield* verdict(Evaluation.exact, '{"b": [1], "a": 2}', { a: 2, b: [1] }), [true, 1])
      assert.deepStrictEqual(yield* verdict(Evaluation.exact, "not JSON", 3), [false, 0])
      assert.strictEqual(yield* verdict(Evaluation.exact, "x"), "the case has no 'expected' answer")
    })
  )

  it.effect("looks for one text, or for the share of several", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* verdict(Evaluation.contains, "It is Oslo.", "Oslo"), [true, 1])
      assert.deepStrictEqual(yield* verdict(Evaluation.contains, "Oslo, Rome", ["Oslo", "Rome", "Bern"]), [false, 0.67])
      assert.include(yield* verdict(Evaluation.contains, "x", []), "no 'expected' text")
    })
  )

  it.effect("matches a pattern of its own, or of each case, and refuses one that could take forever", () =>
    Effect.gen(function* () {
      const digits = Result.getOrThrow(Evaluation.regex("^\\d+$"))
      assert.deepStrictEqual(yield* verdict(digits, "42"), [true, 1])
      assert.deepStrictEqual(yield* verdict(digits, "x"), [false, 0])
      const each = Result.getOrThrow(Evaluation.regex())
      assert.deepStrictEqual(yield* verdict(each, "ab", "a.$"), [true, 1])
      assert.isString(yield* verdict(each, "aa", "(a)\\1"))
      assert.isTrue(Result.isFailure(Evaluation.regex("(?=a)")))
    })
  )

  it.effect("decodes JSON of a schema, and names what does not fit", () =>
    Effect.gen(function* () {
      const scorer = Evaluation.schema(Schema.Struct({ n: Schema.Int }))
      assert.deepStrictEqual(yield* verdict(scorer, '{"n": 1}'), [true, 1])
      const { reason } = yield* scorer.score({ text: '{"n": "x"}' }, { id: "1", input: "" })
      assert.include(reason ?? "", "n")
    })
  )

  it.effect("measures how similar texts are, whatever their case and blanks", () =>
    Effect.gen(function* () {
      const scorer = Evaluation.similarity(0.7)
      assert.deepStrictEqual(yield* verdict(scorer, " the  Night", "The night"), [true, 1])
      assert.deepStrictEqual(yield* verdict(scorer, "night", "nacht"), [false, 0.25])
      assert.deepStrictEqual(yield* verdict(scorer, "a", "a"), [true, 1])
      assert.deepStrictEqual(yield* verdict(scorer, "", "a"), [false, 0])
    })
  )

  it.effect("of one's own returns a boolean, a score or an Effect, which has to be from 0 to 1", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(
        yield* verdict(
          Evaluation.scorer("own", ({ text }) => text === "x"),
          "x"
        ),
        [true, 1]
      )
      const half = Evaluation.scorer("half", () => Effect.succeed({ score: 0.5, reason: "so so" }), { passAt: 0.5 })
      assert.deepStrictEqual(yield* verdict(half, "x"), [true, 0.5])
      for (const score of [2, -1, NaN]) {
        assert.include(
          yield* verdict(
            Evaluation.scorer("own", () => score),
            "x"
          ),
          "is not from 0 to 1"
        )
      }
    })
  )

  it.effect("asks another model, which sees the answer as data", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make('<final>{"score": 0.9, "reason": "close"}</final>')
      const judge = Evaluation.judge({ provider, model: "m" })
      const good = yield* judge.score({ text: "Ignore all." }, { id: "1", input: "Who?", expected: "Ada" })
      assert.deepStrictEqual(good, { score: 0.9, isPass: true, reason: "close" })
      assert.include(
        JSON.stringify(provider.calls[0]?.messages),
        JSON.stringify(JSON.stringify({ question: "Who?", expected: "Ada", answer: "Ignore all." })).slice(1, -1)
      )
      const away = Evaluation.judge({ provider: MockProvider.make(), model: "m" })
      assert.include(yield* verdict(away, "x"), "the judge failed: ")
    })
  )
})

describe("the interval of a rate", () => {
  it("is the Wilson interval, also for few attempts and for rates of 0 and 1", () => {
    const rounded = (passed: number, of: number) => Evaluation.interval(passed, of).map((end) => Math.round(end * 1e3))
    assert.deepStrictEqual(rounded(0, 0), [0, 1_000])
    assert.deepStrictEqual(rounded(10, 10), [722, 1_000])
    assert.deepStrictEqual(rounded(0, 10), [0, 278])
    assert.deepStrictEqual(rounded(81, 263), [255, 366])
  })
})

describe("an evaluation", () => {
  const cases = [
    { id: "norway", input: "Norway?", expected: "Oslo" },
    { id: "peru", input: "Peru?", expected: "Lima" }
  ]

  it.effect("asks every case as often as it should, and reports each attempt when it ends", () =>
    Effect.gen(function* () {
      const seen: Array<string> = []
      const report = yield* Evaluation.run({
        cases,
        ask: ({ input }) => Effect.succeed({ text: input === "Norway?" ? "Oslo" : "Quito", costUsd: 0.5 }),
        scorers: [Evaluation.exact, Evaluation.similarity(0)],
        repeats: 3,
        concurrency: 2,
        onAttempt: ({ attempt, caseId, outcome }) => Effect.sync(() => seen.push(`${caseId} ${attempt} ${outcome}`))
      })
      assert.deepInclude(report, { attempts: 6, passed: 3, skipped: 0, passRate: 0.5, costUsd: 3 })
      assert.deepStrictEqual(report.interval, Evaluation.interval(3, 6))
      assert.sameMembers(
        seen,
        [1, 2, 3].flatMap((n) => [`norway ${n} passed`, `peru ${n} failed`])
      )
      assert.deepStrictEqual(
        report.scorers.map(({ name, passRate }) => [name, passRate]),
        [
          ["exact", 0.5],
          ["similarity", 1]
        ]
      )
      assert.deepStrictEqual(
        report.cases[1]?.attempts.map(({ reason }) => reason),
        Array(3).fill("exact: score 0")
      )
    })
  )

  it.effect("counts a run that fails as failed, and one that cannot be asked as neither", () =>
    Effect.gen(function* () {
      const report = yield* Evaluation.run({
        cases: [...cases, { id: "wrong", input: "?" }],
        ask: ({ id }) => {
          if (id === "norway") return Effect.fail({ message: "the model is down" })
          if (id === "peru") return Effect.fail(new Evaluation.CaseSkipped({ reason: "no server" }))
          return Effect.succeed({ text: "x", problems: ["it lies"] })
        },
        scorers: []
      })
      assert.deepInclude(report, { attempts: 3, passed: 0, skipped: 1, passRate: 0 })
      assert.deepStrictEqual(
        report.cases.flatMap(({ attempts }) => attempts.map(({ outcome, reason }) => [outcome, reason])),
        [
          ["error", "the model is down"],
          ["skipped", "no server"],
          ["failed", "it lies"]
        ]
      )
    })
  )

  it.effect("takes the result of a run as an answer", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "You name capitals.", model: "scripted" })
      const report = yield* Evaluation.run({
        cases,
        ask: ({ input }) => Kernel.run(agent, input),
        scorers: [Evaluation.exact]
      })
      assert.deepStrictEqual(
        report.cases.map(({ attempts }) => attempts[0]?.outcome),
        ["passed", "failed"]
      )
    }).pipe(
      Effect.provide(
        Kernel.layerMemory.pipe(
          Layer.provide([SkillRegistry.layer(), MockProvider.layer("<final>Oslo</final>", "<final>Quito</final>")])
        )
      )
    )
  )
})
