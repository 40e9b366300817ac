import { assert, describe, it } from "@effect/vitest"
import type { RunState } from "kernai"
import { Tape } from "../../src/testing/internal/replay/recording.ts"

type Context = RunState.RunState["context"]

const record = (revision: number, rest: Partial<RunState.RunRecord>): RunState.RunRecord => ({
  runId: "run",
  revision,
  op: "phase",
  events: [],
  delta: {},
  createdAt: revision,
  workerId: "worker",
  ...rest
})

const began = (context: Context, at = 0): RunState.RunRecord => {
  const scope = { runId: "run", rootRunId: "run", step: 0, depth: 0, taskId: undefined, at }
  const started = { agent: "a", parentRunId: undefined, messages: [], history: 0, context }
  return record(1, { events: [{ type: "run_started", revision: 1, ...scope, ...started }] })
}

const launched = (revision: number, ...ids: ReadonlyArray<string>) =>
  record(revision, { op: "launch", delta: { launched: ids } })

const tapeOf = (...records: ReadonlyArray<RunState.RunRecord>): Tape => {
  const tape = new Tape("run", records)
  tape.life = "worker"
  return tape
}

describe("Tape", () => {
  it("plays records that differ only by their times, and treats absent fields as undefined", () => {
    // A journal that was written and read has no field without a value.
    const tape = tapeOf(JSON.parse(JSON.stringify(began({ n: 1, of: {} }))))
    assert.isTrue(tape.plays(began({ of: {}, n: 1 }, 5)))
    assert.isUndefined(tape.fault)
    assert.isTrue(tape.isOver())
    assert.isFalse(tape.plays(began({})))
    assert.isUndefined(tape.fault)
  })

  it("names the place where values part, and shows of each what fits a line", () => {
    const parted = (was: Context, is: Context) => {
      const tape = tapeOf(began(was))
      assert.isFalse(tape.plays(began(is)))
      assert.strictEqual(tape.fault?.index, 0)
      return [tape.fault?.expected, tape.fault?.actual].map((text) =>
        text?.replace("run_started of step 0, /context", "")
      )
    }
    assert.deepStrictEqual(parted({ a: { b: [1, 2] } }, { a: { b: [1, 3] } }), ["/a/b/1: 2", "/a/b/1: 3"])
    assert.deepStrictEqual(parted({ a: [] }, { a: {} }), ["/a: []", "/a: {}"])
    assert.deepStrictEqual(parted({ a: null }, { a: {} }), ["/a: null", "/a: {}"])
    assert.deepStrictEqual(parted({ a: {} }, { a: null }), ["/a: {}", "/a: null"])
    assert.deepStrictEqual(parted({ a: 1 }, {}), ["/a: 1", "/a: nothing"])
    assert.deepStrictEqual(parted({}, { a: "1" }), ["/a: nothing", '/a: "1"'])
    assert.deepStrictEqual(parted({ a: "x".repeat(158) }, { a: "x".repeat(159) }), [
      `/a: "${"x".repeat(158)}"`,
      `/a: "${"x".repeat(156)}…`
    ])
  })

  it("reports records after its end as a difference", () => {
    const tape = tapeOf(began({}))
    tape.plays(began({}))
    tape.diverge("run", undefined, "the end of the run")
    assert.deepInclude(tape.fault, { index: 1, expected: "the end of the recording", actual: "the end of the run" })
  })

  it("plays launches in any order, each once, and none that it does not hold", () => {
    const tape = tapeOf(began({}), launched(2, "a"), launched(3, "b", "c"))
    const played = [["b"], ["b", "c"], ["a"], ["a"]].map((ids) => tape.plays(launched(2, ...ids)))
    assert.deepStrictEqual(played, [false, true, true, false])
    assert.isFalse(tape.isOver())
    assert.isTrue(tape.plays(began({})))
    assert.isTrue(tape.isOver())
  })
})
