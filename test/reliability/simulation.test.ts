import { readFileSync } from "node:fs"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Broken from "../support/brokenKernels.ts"
import { type Outcome, simulate } from "./simulation.ts"

const { seeds }: { readonly seeds: ReadonlyArray<number> } = JSON.parse(
  readFileSync(new URL("../seeds.json", import.meta.url), "utf8")
)

/** How many fates were played here; the acceptance reads it. */
let played = 0
afterAll(() => console.log(`seeds: ${played}`))

const play = Effect.fnUntraced(function* (from: number, count: number) {
  const outcomes: Array<Outcome> = []
  for (let seed = from; seed < from + count; seed++) outcomes.push(yield* simulate(seed))
  played += count
  return outcomes
})

const failed = (outcomes: ReadonlyArray<Outcome>) =>
  outcomes.flatMap(({ findings, seed }) => (findings.length === 0 ? [] : [`seed ${seed}: ${findings.join("; ")}`]))

const sum = (outcomes: ReadonlyArray<Outcome>, of: (outcome: Outcome) => number) =>
  outcomes.reduce((total, outcome) => total + of(outcome), 0)

describe("two workers with seeded failures (R-1 to R-5, R-10, R-15, R-17, R-19, R-23)", () => {
  for (const from of [1, 51, 101, 151]) {
    it.live(`lose, double, abandon and misreport nothing: seeds ${from} to ${from + 49}`, () =>
      Effect.gen(function* () {
        const outcomes = yield* play(from, 50)
        assert.deepStrictEqual(failed(outcomes), [])
        // A world in which nothing happens proves nothing.
        assert.isAbove(
          sum(outcomes, ({ entered }) => entered),
          200
        )
        assert.isAbove(
          sum(outcomes, ({ faults }) => faults),
          200
        )
      })
    )
  }

  it.live("pass the seeds that once found a defect", () =>
    Effect.gen(function* () {
      for (const seed of seeds) assert.deepStrictEqual(failed([yield* simulate(seed)]), [])
    })
  )

  it.live("behave the same every time for one seed", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* simulate(7), yield* simulate(7))
    })
  )
})

describe("the simulation finds what is broken", () => {
  const broken = [
    ["without the launch commit", Broken.withoutLaunch, /writes_once/],
    ["without the revision check", Broken.withoutRevisionCheck, /R-[25]/],
    ["that acknowledges early", Broken.thatAcknowledgesEarly, /R-[125]/],
    ["that repeats what was in flight", Broken.thatRetriesInFlight, /writes_once/]
  ] as const
  for (const [name, kernel, rule] of broken) {
    it.live(`a kernel ${name} fails within 60 seeds`, () =>
      Effect.gen(function* () {
        for (let seed = 1; seed <= 60; seed++) {
          const { findings } = yield* simulate(seed, kernel)
          if (findings.some((finding) => rule.test(finding))) return
        }
        assert.fail("nothing was found")
      })
    )
  }
})
