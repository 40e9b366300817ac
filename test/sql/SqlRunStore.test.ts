import { afterAll, assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Option, Schedule, Scope, Stream } from "effect"
import { SqlClient } from "effect/sql"
import { RunCodec, type RunStore } from "kernai"
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { DatabaseSync } from "node:sqlite"
import { SqliteClient, SqlRunStore } from "../../src/sql/index.ts"
import * as Key from "../../src/sql/internal/key.ts"
import * as SqlCounts from "../../src/sql/internal/sqlCounts.ts"
import * as SqlSpending from "../../src/sql/internal/sqlSpending.ts"
import * as Journal from "../../src/testing/internal/sampleJournal.ts"
import { folder } from "../support/folder.ts"
import {
  awaiting,
  endsWithLayer,
  loads,
  open,
  put,
  putAll,
  race,
  resume,
  soundUpTo,
  suite,
  tagOf
} from "../support/runStore.ts"

const scope = Scope.makeUnsafe()
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const at = (filename: string) =>
  open(
    SqlRunStore.layerSqlite({ filename, synchronous: "normal", pollInterval: "20 millis", busyTimeout: "5 seconds" })
  )

describe("SqlRunStore on SQLite", () => {
  suite(at(`${Effect.runSync(Scope.provide(folder, scope))}/runs.db`))
})

/** Removes what the migrations from the seventh on added, and forgets those from one on. */
const before = (db: DatabaseSync, migration: number): void => {
  for (const change of ["insert", "update"]) db.exec(`DROP TRIGGER kernai_words_${change}`)
  for (const table of ["unindexed", "search_blocks", "search_slices"]) db.exec(`DROP TABLE kernai_${table}`)
  for (const change of ["insert", "update"]) db.exec(`DROP TRIGGER kernai_runs_due_${change}`)
  for (const index of ["due", "spending", "model"]) db.exec(`DROP INDEX kernai_runs_${index}`)
  for (const column of ["due_at", "model", "pace", "tokens", "cost"]) {
    db.exec(`ALTER TABLE kernai_runs DROP COLUMN ${column}`)
  }
  db.exec(`DELETE FROM kernai_migrations WHERE migration_id >= ${migration}`)
}

describe("SqlRunStore, in its tables", () => {
  it.live("ends subscriptions with its layer", () =>
    Effect.flatMap(folder, (directory) =>
      endsWithLayer(SqlRunStore.layerSqlite({ filename: `${directory}/runs.db`, pollInterval: "50 millis" }))
    )
  )

  /** A database with a run of one turn, and a second connection to it. */
  const stored = Effect.gen(function* () {
    const filename = `${yield* folder}/runs.db`
    const store = yield* at(filename)
    const run = Journal.begin("run")
    yield* put(store, [run.last(), ...Journal.turn(run)])
    const db = yield* Effect.acquireRelease(
      Effect.sync(() => new DatabaseSync(filename)),
      (db) => Effect.sync(() => db.close())
    )
    return { filename, store, run, db }
  })
  const next = (run: Journal.Writer) => run.commit("phase", [{ type: "turn_started", turnId: "run:t2" }])
  const reasonOf = <A, E extends { readonly _tag: string; readonly reason?: string }, R>(
    effect: Effect.Effect<A, E, R>
  ) => Effect.map(Effect.flip(effect), (error) => error.reason ?? error._tag)

  it("uses no numbered parameters, which the oldest supported Node.js binds wrongly", () => {
    const files = readdirSync("src/sql", { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".ts"))
    const numbered = files.filter((file) =>
      /\?\d/.test(readFileSync(`src/sql/${file}`, "utf8").replace(/^ \*.*$/gm, ""))
    )
    assert.isAtLeast(files.length, 15)
    assert.deepStrictEqual(numbered, [])
  })

  it.effect("keeps committed runs when it is opened again", () =>
    Effect.gen(function* () {
      const filename = `${yield* folder}/runs.db`
      const run = Journal.begin("run")
      const commits = [run.last(), ...Journal.turn(run), ...Journal.turn(run)]
      yield* Effect.scoped(Effect.flatMap(at(filename), (store) => put(store, commits.slice(0, 15))))
      const store = yield* at(filename)
      yield* put(store, commits.slice(15))
      yield* loads(store, run.last())
    })
  )

  it.effect("names a file that it cannot open", () =>
    Effect.gen(function* () {
      const filename = `${yield* folder}/missing/runs.db`
      const error = yield* Effect.flip(Effect.scoped(at(filename)))
      assert.strictEqual(error.message, `the store failed to open: ${filename}: unable to open database file`)
    })
  )

  it.effect("writes a state part when a turn ends inside a transaction", () =>
    Effect.gen(function* () {
      const { db, store } = yield* stored
      const run = Journal.begin("grouped")
      yield* put(store, [run.last()])
      let held: ReadonlyArray<Journal.Commit> = []
      for (let turn = 0; turn < 66; turn++) {
        const commits = Journal.turn(run)
        yield* putAll(store, [...held, ...commits.slice(0, 3)])
        held = commits.slice(3)
      }
      assert.strictEqual(db.prepare("SELECT count(*) AS n FROM kernai_parts").get()?.["n"], 1)
      yield* putAll(store, held)
      yield* loads(store, run.last())
    })
  )

  it.effect("writes a row for each append, however many records it has", () =>
    Effect.gen(function* () {
      const { db, store } = yield* stored
      const run = Journal.begin("rows")
      yield* putAll(store, [run.last()])
      yield* putAll(store, Journal.turn(run))
      yield* putAll(store, Journal.finish(run))
      const rows = db
        .prepare("SELECT entry & 4294967295 AS first, records FROM kernai_journal WHERE entry >> 32 = 2")
        .all()
      assert.deepStrictEqual(
        rows.map(({ first, records }) => [first, records]),
        [
          [1, 1],
          [2, 10],
          [12, 6]
        ]
      )
      yield* loads(store, run.last())
    })
  )

  it.effect("reads records after a state part that ends in the middle of an append, or that was removed", () =>
    Effect.gen(function* () {
      const { db, filename, store } = yield* stored
      const run = Journal.begin("parts")
      yield* putAll(store, [run.last()])
      let held: ReadonlyArray<Journal.Commit> = []
      for (let turn = 0; turn < 130; turn++) {
        const commits = Journal.turn(run)
        yield* putAll(store, [...held, ...commits.slice(0, 3)])
        held = commits.slice(3)
      }
      yield* putAll(store, held)
      const count = () => db.prepare("SELECT count(*) AS n FROM kernai_parts").get()?.["n"]
      assert.strictEqual(count(), 2)
      // What is written in parts is not read again from the journal.
      db.exec("UPDATE kernai_journal SET body = 'x' WHERE entry & 4294967295 BETWEEN 2 AND 1000 AND entry >> 32 = 2")
      yield* loads(yield* at(filename), run.last())
    })
  )

  it.effect("creates, completes and removes a run atomically (R-1)", () =>
    Effect.gen(function* () {
      const { db, run, store } = yield* stored
      const fails = <A, E extends { readonly _tag: string }>(event: string, effect: Effect.Effect<A, E>) =>
        Effect.gen(function* () {
          db.exec(`CREATE TRIGGER full BEFORE ${event} ON kernai_words BEGIN SELECT RAISE(ABORT, 'full'); END`)
          assert.strictEqual(yield* tagOf(effect), "StoreError")
          db.exec("DROP TRIGGER full")
        })
      const other = Journal.begin("other").last()
      yield* fails("INSERT", store.append([other.record], other.state))
      assert.isTrue(Option.isNone(yield* store.load("other")))
      yield* put(store, [other])
      assert.lengthOf(yield* store.list({ search: "fiber" }), 2)
      const commits = Journal.finish(run)
      yield* put(store, commits.slice(0, -1))
      yield* fails("INSERT", putAll(store, commits.slice(-1)))
      assert.strictEqual(Option.getOrThrow(yield* store.head("run")).status.type, "running")
      yield* put(store, commits.slice(-1))
      yield* fails("DELETE", store.remove(["run"]))
      yield* loads(store, run.last())
      const many = Array.from({ length: 201 }, (_, index) => Journal.begin(`many/${index}`).last())
      yield* put(store, many)
      yield* store.remove(["run", "other", ...many.map(({ state }) => state.runId)])
      for (const table of ["runs", "journal", "parts", "words"]) {
        assert.deepStrictEqual(db.prepare(`SELECT * FROM kernai_${table}`).all(), [], table)
      }
    })
  )

  it.effect("notifies subscribers at once of commits of this process", () =>
    Effect.gen(function* () {
      const filename = `${yield* folder}/runs.db`
      const store = yield* open(SqlRunStore.layerSqlite({ filename, pollInterval: "1 hour" }))
      const run = Journal.begin("run")
      yield* put(store, [run.last()])
      const seen: Array<number> = []
      const follower = yield* Effect.forkChild(
        Stream.runForEach(Stream.take(store.tail("run"), 2), ({ revision }) => Effect.sync(() => seen.push(revision)))
      )
      yield* Effect.yieldNow
      while (seen.length === 0) yield* Effect.yieldNow
      yield* put(store, [next(run)])
      yield* Fiber.join(follower)
      assert.deepStrictEqual(seen, [1, 2])
    })
  )

  it.live("commits nothing to a file that was removed (R-1)", () =>
    Effect.gen(function* () {
      const { filename, run, store } = yield* stored
      for (const end of ["", "-wal", "-shm"]) rmSync(filename + end)
      // The store looks at its file from time to time.
      const refused = Effect.repeat(putAll(store, [next(run)]), Schedule.spaced("5 millis"))
      assert.strictEqual(yield* tagOf(refused), "StoreError")
    })
  )

  it.effect("can be opened several times at once on a new database", () =>
    Effect.gen(function* () {
      const filename = `${yield* folder}/runs.db`
      const stores = yield* Effect.all(
        [1, 2, 3, 4].map(() => at(filename)),
        { concurrency: "unbounded" }
      )
      assert.lengthOf(yield* Effect.forEach(stores, (store) => store.list()), 4)
    })
  )

  it.effect("writes each message once, so twice the turns take twice the bytes (DR-5)", () =>
    Effect.gen(function* () {
      const { db, store } = yield* stored
      const bytes = (table: string) =>
        Number(db.prepare(`SELECT sum(length(body)) AS n FROM ${table}`).get()?.["n"] ?? 0)
      const run = Journal.begin("long")
      yield* put(store, [run.last()])
      const grow = Effect.fnUntraced(function* (turns: number) {
        for (let turn = 0; turn < turns; turn++) yield* put(store, Journal.turn(run, { text: "said ".repeat(100) }))
        return bytes("kernai_journal") + bytes("kernai_parts")
      })
      const half = yield* grow(150)
      assert.isAtMost((yield* grow(150)) / half, 2.2)
      assert.strictEqual(db.prepare("SELECT count(*) AS n FROM kernai_parts").get()?.["n"], 4)
      yield* loads(store, run.last())
      db.exec("UPDATE kernai_journal SET body = 'x' WHERE entry & 4294967295 BETWEEN 2 AND 2500 AND entry >> 32 = 2")
      // What is written in parts is not read again from the journal.
      yield* loads(store, run.last())
    })
  )

  it.effect("ignores state parts that are missing or damaged, and writes them again", () =>
    Effect.gen(function* () {
      const { db, filename, store } = yield* stored
      const run = Journal.begin("long")
      const text = "much ".repeat(110_000)
      yield* put(store, [run.last(), ...Journal.turn(run, { text }), ...Journal.turn(run, { text })])
      for (const change of ["UPDATE kernai_parts SET body = substr(body, 1, 99)", "DELETE FROM kernai_parts"]) {
        db.exec(change)
        yield* loads(yield* at(filename), run.last())
        assert.strictEqual(db.prepare("SELECT count(*) AS n FROM kernai_parts").get()?.["n"], 0)
        const other = yield* at(filename)
        yield* resume(other, "long", [...Journal.turn(run, { text }), ...Journal.turn(run, { text })])
        assert.strictEqual(db.prepare("SELECT count(*) AS n FROM kernai_parts").get()?.["n"], 1)
        yield* loads(yield* at(filename), run.last())
      }
    })
  )

  it.effect("fails with a typed error when records are missing or damaged (R-1)", () =>
    Effect.gen(function* () {
      const { db, store } = yield* stored
      const damages = [
        "UPDATE kernai_journal SET body = substr(body, 1, 30) WHERE entry & 4294967295 = 11",
        `UPDATE kernai_journal SET body = '{"lc":1,"type":"constructor"}' WHERE entry & 4294967295 = 3`,
        "DELETE FROM kernai_journal WHERE entry & 4294967295 = 4",
        "DELETE FROM kernai_journal WHERE entry & 4294967295 = 1",
        "DELETE FROM kernai_journal"
      ]
      for (const damage of damages) {
        db.exec("BEGIN")
        db.exec(damage)
        db.exec("COMMIT")
        assert.strictEqual(yield* reasonOf(store.load("run")), "corrupt", damage)
      }
    })
  )

  it.effect("reads and forks a run up to a damaged record", () =>
    Effect.gen(function* () {
      const { db, store } = yield* stored
      db.exec("UPDATE kernai_journal SET body = substr(body, 1, 30) WHERE entry & 4294967295 = 5")
      yield* soundUpTo(store, "run", 4)
    })
  )

  it.effect("rejects a run of a newer format, leaves it unchanged, and lists the others (R-9)", () =>
    Effect.gen(function* () {
      const { db, run, store } = yield* stored
      yield* put(store, [Journal.begin("other").last()])
      db.exec(`UPDATE kernai_runs SET format = ${RunCodec.format + 1} WHERE id = 'run'`)
      const before = db.prepare("SELECT * FROM kernai_journal").all()
      const commit = next(run)
      const refusal = yield* Effect.flip(store.load("run"))
      assert.strictEqual(refusal.reason, "format")
      assert.match(refusal.message, /format 4 is newer than 3, .*; update kernai/)
      assert.strictEqual(yield* reasonOf(store.append([commit.record], commit.state)), "format")
      assert.deepStrictEqual(db.prepare("SELECT * FROM kernai_journal").all(), before)
      assert.deepStrictEqual(
        (yield* store.list()).map(({ runId }) => runId),
        ["other"]
      )
      db.exec(`UPDATE kernai_runs SET format = ${RunCodec.format}`)
      // A newer version may have another checksum.
      db.exec("UPDATE kernai_journal SET body = '{' || substr(body, 19)")
      db.exec(`UPDATE kernai_journal SET body = replace(body, '"format":2', '"format":${RunCodec.format + 1}')`)
      assert.strictEqual(yield* reasonOf(store.load("run")), "format")
    })
  )

  it.effect("continues runs in tables that a newer version expanded, as after a release is rolled back", () =>
    Effect.gen(function* () {
      const { db, filename, run } = yield* stored
      db.exec("ALTER TABLE kernai_runs ADD COLUMN later TEXT")
      db.exec("INSERT INTO kernai_migrations (migration_id, name) VALUES (99, 'later')")
      const store = yield* at(filename)
      yield* put(store, [next(run)])
      yield* loads(store, run.last())
      yield* put(store, [Journal.begin("new").last()])
    })
  )

  it.effect("does not open tables that a newer version contracted, and leaves them unchanged (R-9)", () =>
    Effect.gen(function* () {
      const { db, filename } = yield* stored
      const count = () => db.prepare("SELECT count(*) AS n FROM kernai_migrations").get()?.["n"]
      const before = count()
      db.exec("INSERT INTO kernai_migrations (migration_id, name) VALUES (99, 'contract_later')")
      assert.strictEqual(yield* reasonOf(at(filename)), "format")
      assert.strictEqual(count(), Number(before) + 1)
    })
  )

  it.effect("lists runs without an answer, and poisoned ones, that ended before these statuses existed", () =>
    Effect.gen(function* () {
      const { db, filename, store } = yield* stored
      const failed = (runId: string, tag: string, reason?: string) => {
        const run = Journal.begin(runId)
        const message = 'it said "tag":"EmptyReplies"'
        const error = { tag, message, ...(reason === undefined ? {} : { fields: { reason } }) }
        return put(store, [run.last(), run.commit("phase", [{ type: "run_failed", error }])])
      }
      yield* failed("empty", "EmptyReplies")
      yield* failed("refused", "ProviderError", "refusal")
      yield* failed("slow", "ProviderError", "timeout")
      yield* failed("poisoned", "RunPoisoned")
      db.exec("UPDATE kernai_runs SET status = 'failed' WHERE status IN ('no_answer', 'poisoned')")
      db.exec("DROP INDEX kernai_runs_counts")
      before(db, 5)
      const idsWith = (status: RunStore.StatusWord) =>
        Effect.map(
          Effect.flatMap(at(filename), (store) => store.list({ status: [status], order: "oldest" })),
          (heads) => heads.map(({ runId }) => runId).sort()
        )
      assert.deepStrictEqual(yield* idsWith("no_answer"), ["empty", "refused"])
      assert.deepStrictEqual(yield* idsWith("poisoned"), ["poisoned"])
      assert.deepStrictEqual(yield* idsWith("failed"), ["poisoned", "slow"])
    })
  )

  it.effect("finds the deadlines of runs that waited before their tables had them", () =>
    Effect.gen(function* () {
      const { db, filename, store } = yield* stored
      for (const metadata of awaiting) {
        const run = Journal.begin(`run${awaiting.indexOf(metadata)}`)
        yield* put(store, [run.last(), run.commit("pause", [{ type: "paused", reason: "asked", metadata }])])
      }
      before(db, 7)
      const due = yield* Effect.flatMap(at(filename), (store) => store.list({ order: "due" }))
      assert.deepStrictEqual(
        due.map(({ runId }) => runId),
        ["run1", "run0"]
      )
    })
  )

  const walks = [
    {
      name: "counts runs by walking an index once, and sorts none of them",
      query: SqlCounts.query,
      index: "kernai_runs_counts",
      range: "(agent=? AND status=? AND created_at>? AND created_at<?)"
    },
    {
      name: "sums what runs used by walking an index once, and sorts none of them",
      query: SqlSpending.query,
      index: "kernai_runs_spending",
      range: "COVERING INDEX kernai_runs_spending (agent=? AND model=? AND pace=? AND created_at>? AND created_at<?)"
    }
  ]
  for (const { index, name, query, range } of walks) {
    it.live(name, () =>
      Effect.gen(function* () {
        const { db, filename } = yield* stored
        const sql = yield* SqlClient.SqlClient.pipe(Effect.provide(SqliteClient.layer({ filename })))
        const [text, params] = query(sql, { from: 0, to: 1_000, slots: 4 }).compile()
        const steps = db
          .prepare(`EXPLAIN QUERY PLAN ${text}`)
          .all(...params.map(Number))
          .map(({ detail }) => String(detail))
        const reads = steps.filter((step) => /^(SCAN|SEARCH) (kernai_runs|r) /.test(step))
        assert.isAtLeast(reads.length, 4)
        for (const read of reads) assert.match(read, new RegExp(`INDEX ${index}|INTEGER PRIMARY KEY`))
        assert.include(reads.at(-1), range)
        assert.lengthOf(
          reads.filter((read) => read.includes(range)),
          1
        )
        assert.notInclude(steps.join(), "TEMP B-TREE")
      })
    )
  }

  it.effect("lists the other runs when a head is unreadable (S-16)", () =>
    Effect.gen(function* () {
      const { db, store } = yield* stored
      yield* put(store, [Journal.begin("other").last()])
      for (const change of [
        "UPDATE kernai_journal SET detail = 'exploded' WHERE entry >> 32 = 1",
        "UPDATE kernai_journal SET turns = 'many' WHERE entry >> 32 = 1",
        "UPDATE kernai_runs SET facts = '{}' WHERE id = 'run'"
      ]) {
        db.exec(change)
        assert.deepStrictEqual(
          (yield* store.list()).map(({ runId }) => runId),
          ["other"]
        )
        assert.strictEqual(yield* reasonOf(store.head("run")), "corrupt")
      }
    })
  )

  it.effect("returns a full page despite an unreadable head, since a short page is the last (S-16)", () =>
    Effect.gen(function* () {
      const { db, store } = yield* stored
      for (const [id, createdAt] of [
        ["b", 2_000],
        ["c", 3_000],
        ["d", 3_000],
        ["e", 4_000]
      ] as const) {
        yield* put(store, [Journal.begin(id, { createdAt }).last()])
      }
      db.exec("UPDATE kernai_runs SET facts = '{' WHERE id IN ('run', 'c')")
      const page = (filter: RunStore.RunFilter) =>
        Effect.map(store.list(filter), (heads) => heads.map((head) => head.runId))
      assert.deepStrictEqual(yield* page({ order: "oldest", limit: 2 }), ["b", "d"])
      assert.deepStrictEqual(yield* page({ order: "oldest", limit: 2, after: { createdAt: 3_000, runId: "b" } }), [
        "d",
        "e"
      ])
      assert.deepStrictEqual(yield* page({ limit: 2 }), ["e", "d"])
      assert.deepStrictEqual(yield* page({ limit: 3 }), ["e", "d", "b"])
      assert.deepStrictEqual(yield* page({ limit: 0 }), [])
    })
  )

  it.effect("finds the runs whose ids begin with a text by the index of ids", () =>
    Effect.gen(function* () {
      const { db } = yield* stored
      for (const range of Key.rangesOf("ada~").concat(Key.rangesOf("n".repeat(100)))) {
        const plan = db
          .prepare(
            "EXPLAIN QUERY PLAN SELECT id FROM kernai_runs WHERE format <= 9 AND parent IS NULL AND (id >= ? AND id < ?) ORDER BY created_at + 0 DESC, id LIMIT 21"
          )
          .all(range.from, range.to ?? "")
        assert.include(JSON.stringify(plan), "(id>? AND id<?)")
      }
    })
  )

  it.live("creates its files for their owner alone, and leaves the rights of a file that is there", () =>
    Effect.gen(function* () {
      const directory = yield* folder
      const modeOf = (file: string) => statSync(`${directory}/${file}`).mode & 0o777
      const before = process.umask(0)
      yield* Effect.addFinalizer(() => Effect.sync(() => process.umask(before)))
      yield* put(yield* at(`${directory}/new.db`), [Journal.begin("run").last()])
      assert.deepStrictEqual(readdirSync(directory).map(modeOf), [0o600, 0o600, 0o600])
      writeFileSync(`${directory}/shared.db`, "", { mode: 0o660 })
      yield* put(yield* at(`${directory}/shared.db`), [Journal.begin("run").last()])
      assert.strictEqual(modeOf("shared.db"), 0o660)
    })
  )

  it.live("notices a bit that is flipped in a record, and names its run, its revision and the reason", () =>
    Effect.gen(function* () {
      const { db, filename } = yield* stored
      db.exec("UPDATE kernai_journal SET body = replace(body, 'model_completed', 'modeh_completed')")
      const store = yield* at(filename)
      const error = yield* Effect.flip(store.load("run"))
      assert.match(error.detail, /^record \d+ of run 'run': its checksum is wrong$/)
      db.exec("UPDATE kernai_journal SET body = replace(body, '\"run_started\"', '\"run_startee\"')")
      assert.strictEqual((yield* Effect.flip(store.load("run"))).detail, "record 1 of run 'run': its checksum is wrong")
      const other = Journal.begin("run", { input: "another" }).last()
      assert.strictEqual((yield* Effect.flip(store.append([other.record], other.state)))._tag, "RunExists")
    })
  )

  it.live("acquires a run whose lease has no expiry", () =>
    Effect.gen(function* () {
      const { db, store } = yield* stored
      db.exec("UPDATE kernai_runs SET worker = 'x', expires_at = NULL")
      yield* Effect.timeout(store.acquire("run", { workerId: "y", lease: "1 minute" }), "1 second")
      assert.strictEqual(Option.getOrThrow(yield* store.head("run")).lease?.workerId, "y")
    })
  )

  it.live("does not send subscribers of a removed run the records of the run that reuses its row", () =>
    Effect.gen(function* () {
      const { run, store } = yield* stored
      const seen: Array<string> = []
      yield* Effect.forkChild(
        Stream.runForEach(store.tail("run"), ({ runId }) => Effect.sync(() => seen.push(runId))),
        { startImmediately: true }
      )
      yield* Effect.repeat(Effect.sleep("1 millis"), { until: () => seen.length === run.last().record.revision })
      yield* store.remove(["run"])
      const other = Journal.begin("other")
      yield* put(store, [other.last(), ...Journal.turn(other), ...Journal.finish(other)])
      yield* Effect.sleep("60 millis")
      assert.notInclude(seen, "other")
    })
  )

  it.effect("reports the operation that a lock or a missing folder prevented (F2)", () =>
    Effect.gen(function* () {
      const { db, filename, run } = yield* stored
      assert.strictEqual(yield* reasonOf(at(`${filename}/missing/runs.db`)), "unavailable")
      const hasty = yield* open(SqlRunStore.layerSqlite({ filename, busyTimeout: 0 }))
      db.exec("BEGIN IMMEDIATE")
      const commit = next(run)
      assert.strictEqual(yield* reasonOf(hasty.append([commit.record], commit.state)), "timeout")
      assert.strictEqual(yield* reasonOf(hasty.remove(["run"])), "timeout")
      db.exec("ROLLBACK")
      yield* put(hasty, [commit])
      yield* loads(hasty, commit)
    })
  )

  it.effect("fails every operation when its tables are gone (F2)", () =>
    Effect.gen(function* () {
      const { db, run, store } = yield* stored
      const { record, state } = next(run)
      const begun = Journal.begin("new").last()
      for (const table of ["journal", "parts", "words", "runs"]) db.exec(`DROP TABLE kernai_${table}`)
      for (const [operation, effect] of [
        ["append", store.append([begun.record], begun.state)],
        ["append", store.append([record], state)],
        ["load", store.load("run")],
        ["read", store.head("run")],
        ["read", Stream.runDrain(store.read("run"))],
        ["list", store.list()],
        ["acquire", store.acquire("run", { workerId: "w", lease: "1 minute" })],
        ["release", store.release("run", "w")],
        ["remove", store.remove(["run"])]
      ] as const) {
        const said = Effect.map(
          Effect.flip(Effect.asVoid<unknown, { readonly _tag: string }, never>(effect)),
          (error) => [error._tag, "operation" in error && error.operation]
        )
        assert.deepStrictEqual(yield* said, ["StoreError", operation])
      }
    })
  )

  it.effect("joins a transaction of the host, and notifies subscribers when that commits", () =>
    Effect.gen(function* () {
      const client = SqliteClient.layer({ filename: `${yield* folder}/runs.db` })
      const context = yield* Layer.build(client)
      const sql = Context.get(context, SqlClient.SqlClient)
      const store = yield* open(
        Layer.provide(SqlRunStore.layer({ pollInterval: "1 hour" }), Layer.succeedContext(context))
      )
      const run = Journal.begin("run")
      yield* put(store, [run.last()])
      const seen: Array<number> = []
      const follower = yield* Effect.forkChild(
        Stream.runForEach(Stream.take(store.tail("run", 1), 1), ({ revision }) =>
          Effect.sync(() => seen.push(revision))
        ),
        { startImmediately: true }
      )
      const commit = next(run)
      const failing = Effect.andThen(store.append([commit.record], commit.state), Effect.fail("no"))
      assert.strictEqual(yield* Effect.flip(sql.withTransaction(failing)), "no")
      assert.strictEqual(Option.getOrThrow(yield* store.head("run")).revision, 1)
      yield* sql.withTransaction(store.append([commit.record], commit.state))
      yield* Fiber.join(follower)
      assert.deepStrictEqual(seen, [2])
    })
  )

  it.effect("gives each revision to one of two processes (R-5)", () => race("sqlite"), 30_000)
})
