import { assert, describe, it } from "@effect/vitest"
import { type RunStore, Usage } from "kernai"
import { commonest, costBelow, countBelow, sumsOf } from "../../src/studio/page/spending.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"

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

describe("what the runs below a run used, in its heading", () => {
  it("counts the runs below a run at any depth, and no others of its tree", () => {
    const lines = [
      { runId: "root", parentRunId: undefined },
      { runId: "a", parentRunId: "root" },
      { runId: "b", parentRunId: "root" },
      { runId: "c", parentRunId: "a" }
    ]
    assert.deepStrictEqual(
      ["root", "a", "b", "c"].map((runId) => countBelow(lines, runId)),
      [3, 1, 0, 0]
    )
  })

  it("sums what they cost, and not what the run itself cost", () => {
    const run = Journal.begin("run")
    const own = [run.last(), ...Journal.turn(run), ...Journal.finish(run)].map(({ record }) => record)
    const spent = { ...Usage.expense(Usage.zero, 0.25), turns: 1 }
    const all = own.map((record) => ({
      ...record,
      events: record.events.map((event) => (event.type === "tool_call_completed" ? { ...event, spent } : event))
    }))
    assert.strictEqual(costBelow(all), 0.25)
    assert.strictEqual(costBelow(own), 0)
  })
})
