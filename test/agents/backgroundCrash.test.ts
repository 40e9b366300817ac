import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CrashMatrix } from "kernai/testing"
import { isLong, seedsFrom } from "../support/longRun.ts"
import { backgroundSubject } from "../support/programs.ts"
import { randomOf } from "../support/random.ts"

/** How many times runs were cut off here; the acceptance reads it. */
let points = 0
let programs = 0
afterAll(() => console.log(`background programs: ${programs} with ${points} crash points`))

const ways: ReadonlyArray<CrashMatrix.Way> = ["before", "unacknowledged", "after", "stalled"]

describe("an agent that calls random programs in the background, crashed at each of its records", () => {
  it.live(
    "loses no call, makes none twice, and receives each result once",
    () =>
      Effect.gen(function* () {
        for (const seed of seedsFrom(0, 200, 1)) {
          const way = ways[Math.floor(randomOf(seed)() * ways.length)] ?? "before"
          const report = yield* CrashMatrix.run(backgroundSubject(seed), { ways: [way] })
          assert.deepStrictEqual(report.violations, [], CrashMatrix.format(report))
          programs++
          points += report.points
        }
      }),
    isLong ? 7_200_000 : 600_000
  )
})
