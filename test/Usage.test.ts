import { assert, describe, it } from "@effect/vitest"
import { Arbitrary, Result, Schema, pipe } from "effect"
import { Model, type StreamPart, Usage } from "kernai"
import { cases } from "./support/property.ts"

const Count = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))

/** A consistent usage: cached within input, reasoning within output. */
const usage = Arbitrary.schema(Schema.Tuple([Count, Count, Count, Count])).pipe(
  Arbitrary.map(([fresh, cachedTokens, said, reasoningTokens]): Usage.Usage => ({
    inputTokens: fresh + cachedTokens,
    cachedTokens,
    outputTokens: said + reasoningTokens,
    reasoningTokens
  }))
)

const pathOf = (wire: unknown) => {
  const result = Usage.decode(wire)
  return Result.isFailure(result) ? result.failure.path : "no fault"
}

describe("Usage", () => {
  it.prop(
    "adds field by field, with zero as identity, commutative and associative (CP-14)",
    [usage, usage, usage],
    ([a, b, c]) => {
      assert.deepStrictEqual(Usage.add(a, Usage.zero), a)
      assert.deepStrictEqual(Usage.add(a, b), Usage.add(b, a))
      assert.deepStrictEqual(pipe(a, Usage.add(b)), Usage.add(a, b))
      assert.deepStrictEqual(Usage.add(Usage.add(a, b), c), Usage.add(a, Usage.add(b, c)))
      const sum = Usage.Reducer.combineAll([a, b, c])
      assert.strictEqual(Usage.total(sum), Usage.total(a) + Usage.total(b) + Usage.total(c))
      assert.deepStrictEqual(Result.getOrThrow(Usage.decode(Usage.encode(sum))), sum)
    },
    cases()
  )

  it("reads a missing count as zero, and names an invalid count (CP-14)", () => {
    assert.deepStrictEqual(Result.getOrThrow(Usage.decode({ output_tokens: 3 })), Usage.make({ outputTokens: 3 }))
    assert.strictEqual(pathOf({ input_tokens: -1 }), "/input_tokens")
    assert.strictEqual(pathOf({ input_tokens: "1" }), "/input_tokens")
    assert.strictEqual(pathOf({ output_tokens: 1.5 }), "/output_tokens")
    assert.strictEqual(pathOf({ input_tokens: 1, cached_tokens: 2 }), "/cached_tokens")
    assert.strictEqual(pathOf({ output_tokens: 1, reasoning_tokens: 2 }), "/reasoning_tokens")
    assert.strictEqual(pathOf(null), "")
  })

  it("uses totals from effect/ai, or else the sum of their parts (CP-14)", () => {
    assert.deepStrictEqual(
      Usage.fromAi({
        inputTokens: { uncached: 5, cacheRead: 3, cacheWrite: 2 },
        outputTokens: { total: 7, text: 1, reasoning: 4 }
      }),
      { inputTokens: 10, cachedTokens: 3, cacheWriteTokens: 2, outputTokens: 7, reasoningTokens: 4 }
    )
    assert.deepStrictEqual(
      Usage.fromAi({ inputTokens: { total: 4 }, outputTokens: {} }),
      Usage.make({ inputTokens: 4 })
    )
  })

  it("is undefined, not zero, when nothing was reported (CP-14, AC-6)", () => {
    assert.isUndefined(Usage.fromAi({ inputTokens: {}, outputTokens: {} }))
    assert.isUndefined(Usage.fromPromptCompletion({ prompt_tokens: null }))
    assert.deepStrictEqual(Usage.fromPromptCompletion({ completion_tokens: 0 }), Usage.zero)
  })

  it("treats null as not reported (CP-14)", () => {
    const nulls: StreamPart.ReportedUsage = JSON.parse(
      `{"inputTokens":{"total":null,"uncached":null,"cacheRead":null},"outputTokens":{"total":null,"reasoning":null}}`
    )
    assert.isUndefined(Usage.fromAi(nulls))
    assert.deepStrictEqual(
      Usage.fromAi({ inputTokens: { ...nulls.inputTokens, uncached: 3 }, outputTokens: nulls.outputTokens }),
      Usage.make({ inputTokens: 3 })
    )
  })

  it("stays consistent for any report of a provider", () => {
    assert.deepStrictEqual(
      Usage.fromAi({
        inputTokens: { total: 2, cacheRead: 9 },
        outputTokens: { total: Number.NaN, reasoning: -3 }
      }),
      { inputTokens: 2, cachedTokens: 2, outputTokens: 0, reasoningTokens: 0 }
    )
  })

  it("leaves an unknown cost out of an expense", () => {
    assert.deepStrictEqual(Object.keys(Usage.expense(Usage.zero, undefined)), ["usage"])
    assert.deepStrictEqual(Usage.expense(Usage.zero, 0), { usage: Usage.zero, costUsd: 0 })
  })

  it("prices cached input separately, or like other input if it has no price of its own", () => {
    const usage = Usage.make({ inputTokens: 1_000_000, cachedTokens: 500_000, outputTokens: 100_000 })
    assert.closeTo(Usage.cost(usage, Model.claudeSonnet4.price!), 1.5 + 0.15 + 1.5, 1e-9)
    assert.closeTo(Usage.cost(usage, { inputPerMillion: 2, outputPerMillion: 10 }), 2 + 1, 1e-9)
  })
})
