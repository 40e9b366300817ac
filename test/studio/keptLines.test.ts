/** Data sets and scores in the folder of evaluations. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { appendFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as DataSet from "../../src/cli/eval/dataSet.ts"
import * as KeptLines from "../../src/studio/internal/keptLines.ts"
import { folder } from "../support/folder.ts"
import * as NodeServices from "@effect/platform-node/NodeServices"

const row = { set: "refunds", input: "May I return it?", expected: "Yes.", runId: "run_1" }

describe("KeptLines", () => {
  it.live("adds rows to a data set that kernai eval reads", () =>
    Effect.gen(function* () {
      const place = join(yield* folder, "new")
      const kept = KeptLines.make(place)
      const { expected: _expected, ...open } = row
      yield* kept.addRow(row)
      yield* kept.addRow({ ...open, runId: "run_2" })
      const [set, ...others] = yield* kept.sets
      assert.deepStrictEqual(others, [])
      assert.deepInclude(set, { name: "refunds", count: 2 })
      assert.deepStrictEqual(
        set?.rows.map(({ id }) => id),
        ["run_2", "run_1"]
      )
      const cases = yield* DataSet.readAll([set?.file ?? ""])
      assert.deepStrictEqual(
        cases.map(({ expected, id, input }) => [id, input, expected]),
        [
          ["run_1", "May I return it?", "Yes."],
          ["run_2", "May I return it?", undefined]
        ]
      )
    }).pipe(Effect.provide(NodeServices.layer))
  )

  it.live("has one row of each run, also of requests at the same time", () =>
    Effect.gen(function* () {
      const kept = KeptLines.make(yield* folder)
      const added = yield* Effect.forEach([1, 2, 3], () => Effect.result(kept.addRow(row)), { concurrency: 3 })
      assert.strictEqual(added.filter(({ _tag }) => _tag === "Success").length, 1)
      const [set] = yield* kept.sets
      assert.strictEqual(set?.count, 1)
    })
  )

  it("refuses names of data sets that are no plain names, and texts without end", () => {
    const decode = Schema.decodeUnknownResult(KeptLines.NewRow)
    assert.strictEqual(decode(row)._tag, "Success")
    for (const set of ["", "../x", "a/b", "a.jsonl", "a".repeat(61)]) {
      assert.strictEqual(decode({ ...row, set })._tag, "Failure", set)
    }
    assert.strictEqual(decode({ ...row, input: "" })._tag, "Failure")
    assert.strictEqual(decode({ ...row, expected: "a".repeat(1_000_001) })._tag, "Failure")
  })

  it.live("keeps the last score of each person for a run, and skips lines that are no scores", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const kept = KeptLines.make(place)
      const score = { run_id: "run_1", by: "Ada (studio)", at: 1, good: true, note: "" }
      yield* kept.addScore(score)
      appendFileSync(join(place, "scores.ndjson"), "{}\nno json\n")
      yield* kept.addScore({ ...score, by: "Eva (studio)", at: 2 })
      yield* kept.addScore({ ...score, at: 3, good: false, note: "It is too long." })
      assert.deepStrictEqual(
        (yield* kept.scores).map(({ at, by, good }) => [by, at, good]),
        [
          ["Ada (studio)", 3, false],
          ["Eva (studio)", 2, true]
        ]
      )
    })
  )

  it.live("stores nothing in a file that is full", () =>
    Effect.gen(function* () {
      const place = yield* folder
      const file = join(place, "refunds.jsonl")
      writeFileSync(file, "\n".repeat(4 * 1024 * 1024))
      const { detail } = yield* Effect.flip(KeptLines.make(place).addRow(row))
      assert.strictEqual(detail, "nothing was stored: the file is full")
      assert.strictEqual(readFileSync(file, "utf8").length, 4 * 1024 * 1024)
    })
  )
})
