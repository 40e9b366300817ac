import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { make } from "../../src/cluster/internal/steadyClock.ts"

/** A clock at a time by the wall, and at a monotonic one. */
const at = (times: { wall: number; monotonic: number }) =>
  Effect.map(Clock.clockWith(Effect.succeed), (clock): Clock.Clock => ({
    ...clock,
    currentTimeMillisUnsafe: () => times.wall,
    monotonicTimeNanosUnsafe: () => BigInt(times.monotonic * 1e6),
    sleep: clock.sleep
  }))

const hour = 3_600_000

describe("the clock of a node", () => {
  it.effect("goes on when the wall clock is set back, and follows it forwards", () =>
    Effect.gen(function* () {
      const times = { wall: 10 * hour, monotonic: 5_000 }
      const clock = make(yield* at(times))
      assert.strictEqual(clock.currentTimeMillisUnsafe(), 10 * hour)
      times.wall -= hour
      times.monotonic += 1_000
      assert.strictEqual(clock.currentTimeMillisUnsafe(), 10 * hour + 1_000)
      assert.strictEqual(yield* clock.currentTimeMillis, 10 * hour + 1_000)
      times.wall = 12 * hour
      assert.strictEqual(clock.currentTimeMillisUnsafe(), 12 * hour)
      assert.strictEqual(clock.currentTimeNanosUnsafe(), BigInt(12 * hour) * 1_000_000n)
    })
  )
})
