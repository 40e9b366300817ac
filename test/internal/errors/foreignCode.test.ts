import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Scheduler } from "effect"
import { inTime } from "../../../src/kit/foreignCode.ts"

describe("inTime", () => {
  it.live("leaves nothing running of the work it started, wherever the wait is interrupted (R-15)", () =>
    Effect.gen(function* () {
      let running = 0
      const work = Effect.acquireUseRelease(
        Effect.sync(() => running++),
        () => Effect.never,
        () => Effect.sync(() => running--)
      )
      let begun = 0
      for (let operations = 3; operations <= 12; operations++) {
        for (let pauses = 0; pauses <= 8; pauses++) {
          const waiting = inTime(work, 60_000, () => Effect.void).pipe(
            Effect.provideService(Scheduler.MaxOpsBeforeYield, operations)
          )
          const fiber = yield* Effect.forkChild(waiting)
          for (let pause = 0; pause < pauses; pause++) yield* Effect.yieldNow
          begun += running
          yield* Fiber.interrupt(fiber)
          for (let look = 0; running > 0 && look < 100; look++) yield* Effect.sleep(1)
          assert.strictEqual(running, 0, `${operations} operations, ${pauses} pauses`)
        }
      }
      assert.isAbove(begun, 0)
    })
  )
})
