import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Program, Skill, SkillRegistry } from "kernai"
import { CrashMatrix, MockProvider } from "kernai/testing"
import { isLong, quickly, seedsFrom, shared } from "../support/longRun.ts"
import { kernelOneByOne } from "../support/oneByOne.ts"
import { randomSubject } from "../support/programs.ts"
import { randomOf } from "../support/random.ts"

/** How many times programs were cut off here; the acceptance reads it. */
let points = 0
let programs = 0
afterAll(() => console.log(`programs: ${programs} with ${points} crash points`))

const ways: ReadonlyArray<CrashMatrix.Way> = ["before", "unacknowledged", "after", "stalled"]

it.live("finds a result that differs after a crash, also where it is a time", () =>
  Effect.gen(function* () {
    let reads = 0
    const deadline = Skill.make("deadline", {
      description: "Reads a deadline",
      input: Schema.Struct({}),
      effects: "read",
      execute: () => Effect.sync(() => ({ answerBy: ++reads }))
    })
    const agent = Program.make("late", { skills: [deadline], run: () => Effect.as(Program.call(deadline, {}), "done") })
    const layer = Layer.merge(SkillRegistry.layer(), MockProvider.layer())
    const report = yield* CrashMatrix.run({ agent, input: "go", layer }, { kernel: kernelOneByOne, ways: ["before"] })
    assert.deepStrictEqual([...new Set(report.violations.map(({ rule }) => rule))], ["same_journal"])
  })
)

describe("a program crashed at its records", () => {
  // Each of these is cut off in every way at every record.
  for (const seed of shared(quickly([1, 2, 3], (seed) => seed === 2))) {
    it.live(
      `random program ${seed} loses nothing, doubles nothing and ends as if undisturbed in every way`,
      () =>
        Effect.gen(function* () {
          const report = yield* CrashMatrix.run(randomSubject(seed), { kernel: kernelOneByOne })
          assert.deepStrictEqual(report.violations, [], CrashMatrix.format(report))
          programs++
          points += report.points
        }),
      600_000
    )
  }

  it.live(
    "random programs lose nothing, double nothing and end as if undisturbed in one way each",
    () =>
      Effect.gen(function* () {
        for (const seed of seedsFrom(100, 1_000, 4)) {
          const way = ways[Math.floor(randomOf(seed)() * ways.length)] ?? "before"
          const report = yield* CrashMatrix.run(randomSubject(seed), { ways: [way] })
          assert.deepStrictEqual(report.violations, [], CrashMatrix.format(report))
          programs++
          points += report.points
        }
      }),
    isLong ? 7_200_000 : 600_000
  )
})
