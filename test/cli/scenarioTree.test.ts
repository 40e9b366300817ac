import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { Scenario } from "kernai/testing"
import { stripVTControlCharacters } from "node:util"
import * as Tree from "../../src/cli/scenarioTree.ts"
import { final } from "../support/blocks.ts"
import { plan } from "../support/workflow.ts"

const nested = Scenario.make({
  name: "nested",
  instructions: "You plan.",
  input: "Go.",
  offline: {
    root: [plan(["a", "b"]), final("Done.")],
    tasks: { a: [final("word ".repeat(50))], b: [final("b")] }
  }
})

const plain = stripVTControlCharacters

describe("the tree of a scenario", () => {
  it.live("cuts texts at the same place with and without colours", () =>
    Effect.gen(function* () {
      const report = yield* Scenario.run(nested)
      const lines = (colors: boolean) => Tree.draw(report, { columns: 60, colors }).join("\n")
      assert.match(lines(false), /^ +│ {2}├─ task a .*word.*…$/m)
      assert.strictEqual(plain(lines(true)), lines(false))
    })
  )

  it.live("shows turns, tasks, tokens and the cost, as far as they are known", () =>
    Effect.gen(function* () {
      const report = yield* Scenario.run(nested)
      const head = (more: Partial<Scenario.Report>) =>
        Tree.draw({ ...report, startedAt: 0, finishedAt: 5, ...more }, { columns: 60, colors: false })[0]
      assert.match(head({}) ?? "", /^ok {6}nested {2}script\/whole, 2 turns, 2 tasks, \d+ tokens in, \d+ out, 5 ms$/)
      assert.strictEqual(
        head({ usage: null, tasks: 0, costUsd: 0.01234 }),
        "ok      nested  script/whole, 2 turns, $0.0123, 5 ms"
      )
    })
  )
})
