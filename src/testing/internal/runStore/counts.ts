/** Checks that a store counts its runs by their start, agent and status. A store without counts passes. */

import * as Effect from "effect/Effect"
import * as assert from "../assert.ts"
import * as Journal from "../sampleJournal.ts"
import { type Check, putAll } from "../sampleJournal.ts"

/** An instant at which no other check starts runs. */
const start = 7_777_000_000_000

const begun = (runId: string, agent: string, after: number, options: Journal.Options = {}) => {
  const run = Journal.begin(runId, { agent, createdAt: start + after, ...options })
  return { run, first: run.last() }
}

export const counts: ReadonlyArray<Check> = [
  {
    name: "counts root runs by the slot of their start, by agent and by status",
    body: Effect.fnUntraced(function* (one, two) {
      if (two.counts === undefined) return
      const [early, late] = [begun("counts-1", "clerk", 0), begun("counts-2", "Ä %1", 999)]
      const [open, below] = [
        begun("counts-3", "clerk", 1_000),
        begun("counts-4", "clerk", 1_000, { parentRunId: "counts-3", rootRunId: "counts-3" })
      ]
      const after = begun("counts-5", "clerk", 2_000)
      for (const { first, run } of [early, late]) yield* putAll(one, [first, ...Journal.finish(run)])
      for (const { first } of [open, below, after]) yield* putAll(one, [first])
      const found = yield* two.counts({ from: start, to: start + 2_000, slots: 4 })
      const lines = found.map(({ agent, count, slot, status }) => `${slot} ${agent} ${status} ${count}`)
      assert.deepEqual(lines.toSorted(), ["0 clerk completed 1", "1 Ä %1 completed 1", "2 clerk running 1"])
      assert.deepEqual(yield* two.counts({ from: start - 10, to: start, slots: 1 }), [])
    })
  },
  {
    name: "sums what root runs used that ended, by the slot of their start, by agent, model and duration",
    body: Effect.fnUntraced(function* (one, two) {
      if (two.spending === undefined) return
      const [early, late, same] = [
        begun("spending-1", "clerk", 20_000),
        begun("spending-2", "Ä %1", 20_999),
        begun("spending-3", "clerk", 20_001)
      ]
      const below = begun("spending-4", "clerk", 20_002, { parentRunId: "spending-1", rootRunId: "spending-1" })
      const open = begun("spending-5", "clerk", 20_003)
      for (const { first, run } of [early, same, below]) {
        yield* putAll(one, [first])
        yield* putAll(one, Journal.finish(run))
      }
      yield* putAll(one, [late.first, ...Journal.turn(late.run), ...Journal.finish(late.run)])
      yield* putAll(one, [open.first, ...Journal.turn(open.run)])
      const range = { from: start + 20_000, to: start + 21_000, slots: 2 }
      const found = (yield* two.spending(range)).toSorted((a, b) => a.slot - b.slot)
      assert.deepEqual(
        found.map(({ agent, costUsd, model, runs, slot, tokens, took }) =>
          [slot, agent, model, runs, tokens, costUsd, Math.round(took)].join()
        ),
        ["0,clerk,mock/scripted,2,240,0.002,6", "1,Ä %1,mock/scripted,1,240,0.002,16"]
      )
      assert.deepEqual(yield* two.spending({ from: start + 19_000, to: start + 20_000, slots: 1 }), [])
    })
  }
]
