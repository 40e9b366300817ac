import { assert, describe, it } from "vitest"
import { type Found, judge } from "./judge.ts"

const paid: Found = { runId: "pay1", status: "completed", isWhole: true, records: 48, calls: ["a", "b", "c", "d"] }

const rulesOf = (found: Partial<Found>) => judge({ ...paid, ...found }).map((finding) => finding.split(":")[0])

describe("the judge of the chaos", () => {
  it("finds nothing in a run that paid once in each turn", () => assert.deepStrictEqual(rulesOf({}), []))

  it("finds a run that is missing, that is not at rest, or that misses a call", () => {
    assert.deepStrictEqual(rulesOf({ status: undefined }), ["nothing_lost"])
    assert.deepStrictEqual(rulesOf({ status: "running" }), ["nothing_lost"])
    assert.deepStrictEqual(rulesOf({ calls: ["a", "b", "c"] }), ["nothing_lost"])
  })

  it("finds a call that was entered twice, and a call too many", () => {
    assert.deepStrictEqual(rulesOf({ calls: ["a", "b", "b", "c", "d"] }), ["writes_once"])
    assert.deepStrictEqual(rulesOf({ calls: ["a", "b", "c", "d", "e"] }), ["writes_once"])
  })

  it("finds an innocent run that failed, and a journal with a gap", () => {
    assert.deepStrictEqual(rulesOf({ status: "failed", error: "RunPoisoned" }), ["innocent_failed"])
    assert.deepStrictEqual(rulesOf({ status: "no_answer" }), ["innocent_failed"])
    assert.deepStrictEqual(rulesOf({ isWhole: false }), ["fenced"])
  })

  it("wants a run that kills its process to be set apart", () => {
    const poison = { runId: "poison1", calls: [] }
    assert.deepStrictEqual(rulesOf({ ...poison, status: "failed", error: "RunPoisoned" }), [])
    assert.deepStrictEqual(rulesOf({ ...poison, status: "failed", error: "SkillError" }), ["set_apart"])
    assert.deepStrictEqual(rulesOf({ ...poison, status: "running" }), ["set_apart"])
  })

  it("wants a run of an agent that no process has to wait", () => {
    assert.deepStrictEqual(rulesOf({ runId: "nobody1", calls: [], status: "queued" }), [])
    assert.deepStrictEqual(rulesOf({ runId: "nobody1", calls: [], status: "running", records: 1 }), [])
    assert.deepStrictEqual(rulesOf({ runId: "nobody1", calls: [], status: "running", records: 2 }), ["nothing_lost"])
    assert.deepStrictEqual(rulesOf({ runId: "nobody1", calls: [], status: "failed" }), ["nothing_lost"])
  })
})
