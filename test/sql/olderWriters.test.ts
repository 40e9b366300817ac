/** Processes of a version that does not know the deadlines of runs, beside workers of this version. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, type Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { Kernel, MediaStore, Policy, ProtocolRegistry, RunStore, RunWorker, Skill, SkillRegistry } from "kernai"
import { PgRunStore, SqliteClient, SqlRunStore } from "kernai/sql"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { agent, clerk } from "../support/clerk.ts"
import { folder } from "../support/folder.ts"
import * as Postgres from "../support/postgres.ts"
import { open, put } from "../support/runStore.ts"

/** A process of this version, whose calls wait 10 milliseconds for a person. */
const process = (store: RunStore.RunStoreShape) =>
  Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(
        Skill.dynamic("pay", { description: "pays", inputSchema: { type: "object" }, execute: () => Effect.die("no") })
      ),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      clerk("done")
    ]),
    Layer.provide(Policy.layer(() => Effect.succeed(Policy.confirm("it costs", { within: "10 millis" })))),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )

interface Place {
  readonly store: RunStore.RunStoreShape
  readonly sql: SqlClient.SqlClient
}

const suite = <E>(name: string, place: Effect.Effect<Place, E, Scope.Scope>) =>
  describe(name, () => {
    it.live(
      "declines a question in time that a process of the version before stored",
      () =>
        Effect.gen(function* () {
          const { sql, store } = yield* place
          yield* Effect.provide(Effect.exit(Kernel.run(agent, "pay eva", { runId: "r" })), process(store))
          // A new process resumed the run, and an older one stored the question.
          yield* sql`UPDATE kernai_runs SET status = 'running', due_at = NULL`
          yield* sql`UPDATE kernai_runs SET status = 'paused'`
          yield* Effect.sleep("20 millis")
          yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store))
          const records = yield* Stream.runCollect(store.read("r"))
          assert.deepStrictEqual(
            records.flatMap(({ delta }) => (delta.answers ?? []).map(({ by }) => by)),
            ["deadline"]
          )
        }),
      30_000
    )

    it.live(
      "lists runs by the deadlines of their last questions, whichever version resumed and stored them",
      () =>
        Effect.gen(function* () {
          const { sql, store } = yield* place
          const ask = (runId: string, answerBy?: number) => {
            const run = Journal.begin(runId)
            const metadata = { questions: [answerBy === undefined ? {} : { answerBy }] }
            return put(store, [run.last(), run.commit("pause", [{ type: "paused", reason: "asked", metadata }])])
          }
          yield* ask("a", 5000)
          yield* ask("b", 6000)
          yield* ask("c", 7000)
          yield* ask("d")
          const due = Effect.map(store.list({ order: "due" }), (heads) => heads.map(({ runId }) => runId).join(""))
          assert.strictEqual(yield* due, "abc")
          // An older process resumed all runs.
          yield* sql`UPDATE kernai_runs SET status = 'running'`
          assert.deepStrictEqual(yield* sql`SELECT id FROM kernai_runs WHERE due_at IS NOT NULL`, [])
          // It asked again, with another deadline in two of them.
          yield* sql`UPDATE kernai_journal SET detail = replace(detail, '7000', '4000')`
          yield* sql`UPDATE kernai_journal SET detail = replace(detail, '5000', '8000')`
          yield* sql`UPDATE kernai_runs SET status = 'paused'`
          assert.strictEqual(yield* due, "cba")
          assert.deepStrictEqual(yield* sql`SELECT id FROM kernai_runs WHERE due_at < 4000`, [])
          // It left the status as it was.
          yield* sql`UPDATE kernai_journal SET detail = replace(detail, '4000', '9000')`
          assert.strictEqual(yield* due, "bac")
          // It stored a run that waits from the beginning.
          yield* sql`
            INSERT INTO kernai_runs (id, root, agent, facts, format, created_at, status)
            SELECT 'e', 'e', agent, replace(facts, '"a"', '"e"'), format, created_at, status
            FROM kernai_runs WHERE id = 'a'`
          yield* sql`
            INSERT INTO kernai_journal (entry, records, body, turns, detail, at)
            SELECT (CAST(e.run AS BIGINT) << 32) + 1, 1, body, turns, detail, at
            FROM kernai_runs AS e, kernai_runs AS a, kernai_journal
            WHERE e.id = 'e' AND a.id = 'a' AND entry = (CAST(a.run AS BIGINT) << 32) + 2`
          assert.strictEqual(yield* due, "baec")
        }),
      30_000
    )
  })

const clientOf = <E>(layer: Layer.Layer<SqlClient.SqlClient, E>) =>
  Effect.map(Layer.build(layer), (context) => Context.get(context, SqlClient.SqlClient))

suite(
  "SqlRunStore on SQLite",
  Effect.gen(function* () {
    const filename = `${yield* folder}/runs.db`
    const store = yield* open(SqlRunStore.layerSqlite(filename))
    return { store, sql: yield* clientOf(SqliteClient.layer({ filename })) }
  })
)

describe.skipIf(!Postgres.available)("with a server", () => {
  suite(
    "PgRunStore",
    Effect.gen(function* () {
      const { database, url, ...server } = yield* Postgres.database
      const store = yield* open(PgRunStore.layer({ url: Redacted.make(url), maxConnections: 4 }))
      return { store, sql: yield* clientOf(Postgres.client({ ...server, database })) }
    })
  )
})
