/** Runs of a tenant and with labels, from the command line. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { join } from "node:path"
import { RunStore } from "kernai"
import { SqlRunStore } from "kernai/sql"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { folder } from "../support/folder.ts"
import { kernai } from "./support.ts"

describe("kernai runs", () => {
  it.live("lists and prunes the runs of a tenant and with labels, page by page", () =>
    Effect.gen(function* () {
      const file = join(yield* folder, "runs.db")
      const callers = [
        ["one", { id: "ada", tenant: "acme", labels: { team: "sales", kind: "a=b c" } }],
        ["two", { id: "bob", tenant: "acme", labels: { team: "sales" } }],
        ["three", { id: "eva", tenant: "umbrella", labels: { team: "sales" } }]
      ] as const
      for (const [at, [id, caller]] of callers.entries()) {
        const run = Journal.begin(id, { caller, createdAt: 1_000 + at })
        const commits = [run.last(), ...Journal.finish(run)]
        yield* Effect.provide(
          RunStore.RunStore.use((store) => Journal.put(store, commits)),
          SqlRunStore.layerSqlite(file)
        )
      }
      const runs = (...words: ReadonlyArray<string>) => kernai(["runs", ...words, "--store", `sqlite:${file}`])
      const ids = (...flags: ReadonlyArray<string>) =>
        Effect.map(runs("list", "--json", ...flags), ({ out }) =>
          out
            .split("\n")
            .filter((line) => line !== "")
            .map((line) => JSON.parse(line).runId)
        )
      assert.deepStrictEqual(yield* ids("--tenant", "acme"), ["two", "one"])
      assert.deepStrictEqual(yield* ids("--label", "team=sales"), ["three", "two", "one"])
      assert.deepStrictEqual(yield* ids("--label", "team=sales", "--label", "kind=a=b c"), ["one"])
      const page = yield* runs("list", "--tenant", "acme", "--label", "team=sales", "--limit", "1")
      assert.include(page.progress, "--tenant acme --label team=sales")
      const wrong = yield* runs("list", "--label", "team=a", "--label", "team=b")
      assert.deepStrictEqual([wrong.code, wrong.out], [2, ""])
      assert.include(wrong.error, "each name once")
      const pruned = yield* runs("prune", "--older-than", "1 second", "--tenant", "acme", "--label", "kind=a=b c")
      assert.include(pruned.out, "deleted 1 run")
      assert.deepStrictEqual(yield* ids(), ["three", "two"])
    }).pipe(Effect.scoped)
  )
})
