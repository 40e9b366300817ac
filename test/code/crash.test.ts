import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { CrashMatrix } from "kernai/testing"
import { codeSubject } from "../support/codePrograms.ts"
import { isLong, seedsFrom } from "../support/longRun.ts"
import { randomOf } from "../support/random.ts"

/** How many times programs were cut off here; the acceptance reads it. */
let points = 0
let programs = 0
afterAll(() => console.log(`code programs: ${programs} with ${points} crash points`))

const ways: ReadonlyArray<CrashMatrix.Way> = ["before", "unacknowledged", "after", "stalled"]

describe("a program of a model, crashed at its records", () => {
  it.live(
    "loses nothing, doubles nothing and ends as if undisturbed, in one way each",
    () =>
      Effect.gen(function* () {
        for (const seed of seedsFrom(0, 1_000, 3)) {
          const way = ways[Math.floor(randomOf(seed)() * ways.length)] ?? "before"
          const report = yield* CrashMatrix.run(yield* codeSubject(seed), { ways: [way] })
          assert.deepStrictEqual(report.violations, [], CrashMatrix.format(report))
          programs++
          points += report.points
        }
      }),
    isLong ? 7_200_000 : 600_000
  )
})
