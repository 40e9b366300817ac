import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import * as DueRuns from "../../../src/internal/worker/dueRuns.ts"

/** A clock at a time by the wall, and at a monotonic one, both in milliseconds. */
const settable = Effect.map(Clock.clockWith(Effect.succeed), (clock) => {
  const at = { wall: 0, monotonic: 0 }
  const own: Clock.Clock = {
    ...clock,
    currentTimeMillisUnsafe: () => at.wall,
    monotonicTimeNanosUnsafe: () => BigInt(at.monotonic) * 1_000_000n
  }
  return { at, clock: own }
})

const head = { runId: "r", revision: 3 }

describe("due runs", () => {
  it.effect("forget a time that has come, in a process that no timer wakes for it", () =>
    Effect.gen(function* () {
      const { at, clock } = yield* settable
      const due = DueRuns.make(clock)
      DueRuns.setDue(due, head, 1_000)
      at.wall = at.monotonic = 999
      assert.strictEqual(DueRuns.dueLater(due, head), 1_000)
      assert.isUndefined(DueRuns.dueLater(due, { runId: "r", revision: 4 }))
      at.wall = at.monotonic = 1_000
      assert.isUndefined(DueRuns.dueLater(due, head))
      assert.deepStrictEqual([...due.times.keys()], [])
    })
  )

  it.effect("are due on time when the clock is set back, and at once when it is set forward", () =>
    Effect.gen(function* () {
      for (const wall of [-3_600_000, 3_600_000]) {
        const { at, clock } = yield* settable
        const due = DueRuns.make(clock)
        DueRuns.setDue(due, head, 1_000)
        at.wall = wall
        at.monotonic = wall < 0 ? 999 : 1
        // Setting it again, as each poll does, changes nothing.
        if (wall < 0) {
          assert.strictEqual(DueRuns.dueLater(due, head), 1_000)
          DueRuns.setDue(due, head, 1_000)
          at.monotonic = 1_000
        }
        assert.isUndefined(DueRuns.dueLater(due, head))
      }
    })
  )
})
