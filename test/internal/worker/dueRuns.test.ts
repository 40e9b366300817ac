import { assert, describe, it } from "@effect/vitest"
import * as DueRuns from "../../../src/internal/worker/dueRuns.ts"

describe("due runs", () => {
  it("forget a time that has come, in a process that no timer wakes for it", () => {
    const due = DueRuns.make()
    const head = { runId: "r", revision: 3 }
    DueRuns.setDue(due, head, 1_000)
    assert.strictEqual(DueRuns.dueLater(due, head, 999), 1_000)
    assert.isUndefined(DueRuns.dueLater(due, { runId: "r", revision: 4 }, 999))
    assert.isUndefined(DueRuns.dueLater(due, head, 1_000))
    assert.deepStrictEqual([...due.times.keys()], [])
  })
})
