import { assert, describe, it } from "@effect/vitest"
import type { RunStore } from "kernai"
import { commonest, sumsOf } from "../../src/studio/page/spending.ts"

const line = (took: number, runs: number, more: Partial<RunStore.RunSpending> = {}): RunStore.RunSpending => ({
  slot: 0,
  agent: "clerk",
  model: "small",
  took,
  runs,
  tokens: 10 * runs,
  ...more
})

describe("what runs used, in the overview", () => {
  it("sums runs, tokens and cost, and finds the durations of half and of 95% of the runs", () => {
    const lines = [line(4_000, 5), line(100, 60, { costUsd: 0.5 }), line(900, 35, { costUsd: 0.25 })]
    assert.deepStrictEqual(sumsOf(lines), { runs: 100, tokens: 1_000, costUsd: 0.75, half: 100, most: 900 })
    assert.strictEqual(sumsOf([...lines, line(4_000, 1)]).most, 4_000)
  })

  it("leaves a cost unknown that no run has, and the durations of no runs at zero", () => {
    assert.deepStrictEqual(sumsOf([line(10, 1)]).costUsd, undefined)
    assert.deepStrictEqual(sumsOf([]), { runs: 0, tokens: 0, costUsd: undefined, half: 0, most: 0 })
  })

  it("names the model of most runs first", () => {
    assert.deepStrictEqual(commonest([line(1, 1), line(1, 2, { model: "large" })], "model"), ["large", "small"])
  })
})
