import { afterAll, assert, describe, it } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { CodeInterpreter } from "kernai"
import { Code } from "kernai/code"
import { hostileProgram } from "../support/hostilePrograms.ts"
import { isLong, seedsFrom } from "../support/longRun.ts"

const limits = {
  ...Code.defaultLimits,
  memoryBytes: 16 * 1024 * 1024,
  cpuTime: Duration.millis(100),
  calls: 50,
  outputLength: 100_000
}

/** How the programs ended; the acceptance reads it. */
const ends = new Map<string, number>()
afterAll(() => {
  const count = [...ends.values()].reduce((sum, one) => sum + one, 0)
  console.log(`hostile programs: ${count} ${JSON.stringify(Object.fromEntries(ends))}`)
})

/** Runs a program with functions that give what they got, and returns how it ended. */
const run = Effect.fnUntraced(function* (source: string) {
  const { open } = yield* CodeInterpreter.CodeInterpreter
  const execution = yield* open({ source, functions: ["add", "fail"], now: 0, seed: 1, limits })
  let results: ReadonlyArray<CodeInterpreter.CodeResult> = []
  for (;;) {
    const step = yield* execution.next(results)
    if (step._tag === "Returned") return "returned"
    results = step.calls.map(({ input, name }) =>
      name === "add" ? { _tag: "Value", value: input } : { _tag: "Error", name: "Refused", message: "no" }
    )
  }
}, Effect.scoped)

const ended = (source: string) =>
  run(source).pipe(
    Effect.catchTag("CodeFailed", ({ detail, reason }) =>
      Effect.sync(() => {
        assert.notStrictEqual(reason, "unavailable", `${detail}\n${source}`)
        return reason
      })
    )
  )

/** The threads, ports and timers that this process waits for. */
const left = () => process.getActiveResourcesInfo().filter((name) => /Worker|MessagePort|Timeout/.test(name))

describe("hostile programs", () => {
  it.live(
    "end in their bounds, hurt no process and leave no thread and no timer",
    () =>
      Effect.gen(function* () {
        const before = left()
        const count = (end: string) => ends.set(end, (ends.get(end) ?? 0) + 1)
        const seeds = seedsFrom(0, 1_000, 20)
        yield* Effect.forEach(seeds, (seed) => Effect.map(ended(hostileProgram(seed)), count), { concurrency: 2 }).pipe(
          Effect.provide(Code.layerQuickJs())
        )
        assert.isAtMost(left().length, before.length)
      }),
    isLong ? 3_600_000 : 600_000
  )
})
