/** How databases find the runs of a list. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import type { RunStore } from "kernai"
import { PgRunStore, SqlRunStore } from "kernai/sql"
import { DatabaseSync } from "node:sqlite"
import { folder } from "../support/folder.ts"
import * as Postgres from "../support/postgres.ts"
import { open } from "../support/runStore.ts"
import { tracer } from "../support/tracer.ts"

/** The statement of a list. */
const textOf = (list: ReturnType<RunStore.RunStoreShape["list"]>) =>
  Effect.gen(function* () {
    const { layer, spans } = tracer()
    yield* Effect.provide(list, layer)
    const texts = spans.flatMap(({ attributes }) => attributes.get("db.query.text") ?? [])
    assert.lengthOf(texts, 1)
    return String(texts[0])
  })

const after = { createdAt: 1, runId: "run" }

/** The lists of an agent's failed runs, which include the poisoned ones. */
const failed = { roots: true, limit: 100, status: ["failed"], agent: "agent" } as const

describe("SqlRunStore on SQLite", () => {
  const stored = Effect.gen(function* () {
    const filename = `${yield* folder}/runs.db`
    const store = yield* open(SqlRunStore.layerSqlite(filename))
    const db = yield* Effect.acquireRelease(
      Effect.sync(() => new DatabaseSync(filename)),
      (db) => Effect.sync(() => db.close())
    )
    const planOf = (filter: RunStore.RunFilter) =>
      Effect.map(textOf(store.list(filter)), (text) => {
        const values = Array.from(text.match(/\?/g) ?? [], () => 1)
        const steps = db.prepare(`EXPLAIN QUERY PLAN ${text}`).all(...values)
        return steps.map(({ detail }) => String(detail))
      })
    return planOf
  })

  it.effect("lists waiting runs by their deadlines by walking an index, and sorts none of them", () =>
    Effect.gen(function* () {
      const planOf = yield* stored
      const steps = yield* planOf({ status: ["waiting"], roots: true, order: "due", limit: 100, after })
      assert.match(steps[0] ?? "", /kernai_runs_due \(due_at>\? AND due_at<\?\)/)
      assert.notInclude(steps.join(), "TEMP B-TREE")
    })
  )

  it.effect("lists the runs of a model by walking an index, and sorts those of an instant", () =>
    Effect.gen(function* () {
      const planOf = yield* stored
      const steps = yield* planOf({ roots: true, limit: 100, model: "model", after })
      assert.deepStrictEqual(
        steps.filter((step) => step.includes(" r ")),
        Array.from(
          { length: 5 },
          () => "SEARCH r USING INDEX kernai_runs_model (model=? AND status=? AND created_at<?)"
        )
      )
      const sorted = steps.filter((step) => step.includes("TEMP B-TREE"))
      assert.deepStrictEqual([...new Set(sorted)], ["USE TEMP B-TREE FOR LAST TERM OF ORDER BY"])
    })
  )

  it.effect("finds the runs of a tag by an index, and scans no others", () =>
    Effect.gen(function* () {
      const planOf = yield* stored
      const steps = yield* planOf({ roots: true, limit: 100, tag: "urgent", after })
      assert.match(steps.join("\n"), /kernai_labels_label \(label=\?\)/)
      assert.include(steps, "SEARCH r USING INTEGER PRIMARY KEY (rowid=?)")
    })
  )

  const lists = [
    ["newest first", failed, "(agent=? AND status=?)"],
    ["on a later page", { ...failed, after }, "(agent=? AND status=? AND created_at<?)"],
    ["oldest first", { ...failed, order: "oldest", after }, "(agent=? AND status=? AND created_at>?)"]
  ] as const
  for (const [name, filter, range] of lists) {
    it.effect(
      `lists an agent's failed and poisoned runs ${name} by walking an index, and sorts those of an instant`,
      () =>
        Effect.gen(function* () {
          const planOf = yield* stored
          const steps = yield* planOf(filter)
          assert.deepStrictEqual(
            steps.filter((step) => step.includes(" r ")),
            Array.from({ length: 2 }, () => `SEARCH r USING INDEX kernai_runs_counts ${range}`)
          )
          const sorted = steps.filter((step) => step.includes("TEMP B-TREE"))
          assert.deepStrictEqual([...new Set(sorted)], ["USE TEMP B-TREE FOR LAST TERM OF ORDER BY"])
        })
    )
  }
})

describe.skipIf(!Postgres.available)("PgRunStore", () => {
  it.live(
    "lists an agent's failed and poisoned runs by walking an index, and sorts those of an instant",
    () =>
      Effect.gen(function* () {
        const { database, url, ...server } = yield* Postgres.database
        const store = yield* open(PgRunStore.layer({ url: Redacted.make(url) }))
        const text = yield* textOf(store.list(failed))
        const client = Context.get(yield* Layer.build(Postgres.client({ ...server, database })), SqlClient.SqlClient)
        yield* client`
          INSERT INTO kernai_runs (id, root, agent, facts, format, created_at, status)
          SELECT 'run' || i, 'run' || i, 'agent', '{}', 1, i,
            CASE i % 9 WHEN 0 THEN 'poisoned' WHEN 1 THEN 'completed' ELSE 'failed' END
          FROM generate_series(1, 10000) AS i`
        yield* client`
          INSERT INTO kernai_journal (entry, records, body, turns, detail, at)
          SELECT (run::bigint << 32) + 1, 1, '{}', 1, '{}', 0 FROM kernai_runs`
        yield* client`ANALYZE kernai_runs, kernai_journal`
        const values = [1, "agent", "failed", 100, 1, "agent", "poisoned", 100, 100]
        const plan = yield* client.unsafe<Record<string, string>>(`EXPLAIN (COSTS OFF) ${text}`, values)
        const steps = plan.map((row) => String(row["QUERY PLAN"]).replace(/^[ >-]+/, ""))
        assert.include(steps, "Merge Append")
        assert.deepStrictEqual([...new Set(steps.filter((step) => step.endsWith("Sort")))], ["Incremental Sort"])
        assert.notInclude(steps.join("\n"), "Seq Scan")
      }),
    30_000
  )
})
