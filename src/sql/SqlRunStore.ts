/**
 * Runs in a database.
 *
 * A commit is one statement: it appends the record and moves the head if the
 * head is just before it, or it does nothing (DR-6). Bodies are JSON text in
 * columns of text, keys are escaped, everything else is a bound parameter
 * (S-16). Works on any `SqlClient` of SQLite or PostgreSQL; several processes
 * may share the database.
 *
 * @since 0.1.0
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Reactivity from "effect/reactivity/Reactivity"
import type { MigrationError } from "effect/sql/Migrator"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import * as Stream from "effect/Stream"
import * as Follow from "../internal/follow.ts"
import * as Marks from "../internal/marks.ts"
import * as RunCodec from "../RunCodec.ts"
import type { RunRecord, RunState } from "../RunState.ts"
import { advance, turnCount } from "../RunState.ts"
import * as RunStore from "../RunStore.ts"
import { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "../RunStore.ts"
import * as Key from "./internal/key.ts"
import * as Tables from "./internal/runTables.ts"
import * as SqliteClient from "./SqliteClient.ts"

/**
 * How a store looks after those who follow a run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** How often to look for what other processes committed: half a second unless told. */
  readonly pollInterval?: Duration.Input
  /** Keys of runs that went on, told by the database: those who follow need not wait for the next look. */
  readonly changes?: Stream.Stream<string>
}

/**
 * A store on the database of the context; its tables are made, or brought up to date.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (options: Options = {}) {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  yield* prepare(sql)
  const codec = yield* RunCodec.fromContext
  const followers = Follow.make()
  const marks = Marks.make()
  const interval = options.pollInterval ?? "500 millis"
  if (options.changes !== undefined) {
    yield* Effect.forkScoped(Stream.runForEach(options.changes, (key) => Effect.sync(() => followers.wake(key))))
  }
  const dialect = sql.onDialectOrElse({
    pg: () => ({ commit: Tables.commitPostgres, position: "strpos" }),
    orElse: () => ({ commit: Tables.commitSqlite, position: "instr" })
  })

  // ---------------------------------------------------------------- reading

  const find = (id: string) =>
    Effect.map(
      sql<{ run: number; revision: number; format: number }>`
        SELECT run, revision, format FROM kernai_runs WHERE id = ${Key.make(id)}`,
      (rows) => rows[0]
    )

  /** The number of an entry: of a run and revision. */
  const entry = (run: number, revision: number): Fragment =>
    sql`(CAST(${run} AS BIGINT) << 32) + CAST(${revision} AS BIGINT)`

  const bodies = (table: "kernai_journal" | "kernai_parts", run: number, after: number, limit: number) =>
    Effect.map(
      sql<{ body: string }>`
        SELECT body FROM ${sql(table)} WHERE entry > ${entry(run, after)} AND entry < ${entry(run + 1, 0)}
        ORDER BY entry LIMIT ${limit}`,
      (rows) => rows.map((row) => row.body)
    )

  /** The next records of a run. */
  const page = Effect.fnUntraced(function* (run: number, after: number) {
    const records: Array<RunRecord> = []
    for (const body of yield* bodies("kernai_journal", run, after, PAGE)) {
      const record = yield* Effect.fromResult(codec.decodeRecord(body))
      if (record.revision !== after + records.length + 1) return yield* gap(record)
      records.push(record)
    }
    return records
  })

  /** The state as far as it is written down in parts. They are only a shortcut: unreadable ones are passed over. */
  const written = Effect.fnUntraced(function* (run: number) {
    const parts = yield* bodies("kernai_parts", run, 0, Number.MAX_SAFE_INTEGER)
    const state = Result.getOrUndefined(codec.decodeState(parts))
    return { state, mark: state === undefined ? RunCodec.start : { turns: state.turns.length, prompt: state.prompt } }
  })

  const load = Effect.fnUntraced(function* (runId: string) {
    const found = yield* find(runId)
    if (found === undefined) return Option.none<RunState>()
    yield* readable(found.format)
    const { mark, state: start } = yield* written(found.run)
    let state = start
    for (;;) {
      const records = yield* page(found.run, state?.revision ?? 0)
      state = yield* fold(state, records)
      if (records.length < PAGE) break
    }
    if (state === undefined || state.revision < found.revision)
      return yield* corrupt(`records of run '${runId}' are missing`)
    marks.set(state, mark)
    return Option.some(state)
  })

  /** Reads on from a revision, also in a run that is not there yet. */
  const reader = (runId: string) => {
    let run: number | undefined
    return Effect.fnUntraced(
      function* (after: number) {
        run ??= (yield* find(runId))?.run
        return run === undefined ? [] : yield* page(run, after)
      },
      Effect.catchTag("SqlError", failed("read"))
    )
  }

  const read = (runId: string, fromRevision = 0) =>
    Stream.suspend(() => {
      const next = reader(runId)
      return Stream.paginate(fromRevision, (after) =>
        Effect.map(next(after), (records) => {
          const last = records.at(-1)
          return [records, last !== undefined && records.length === PAGE ? Option.some(last.revision) : Option.none()]
        })
      )
    })

  const tail = (runId: string, fromRevision = 0) =>
    Stream.suspend(() =>
      followers.follow({ runId: Key.make(runId), from: fromRevision, page: reader(runId), interval })
    )

  // ---------------------------------------------------------------- writing

  const append = Effect.fnUntraced(function* (record: RunRecord, state: RunState, body: string) {
    const id = Key.make(record.runId)
    const detail = yield* Effect.fromResult(RunCodec.encodeStatus(state.status))
    const { createdAt, revision } = record
    const parameters: Tables.CommitParameters = [
      revision,
      body,
      turnCount(state),
      state.status.type,
      detail,
      createdAt,
      id,
      RunCodec.format
    ]
    const done = yield* sql.unsafe(dialect.commit, parameters)
    if (done.length > 0 && followers.has(id)) yield* sql.afterCommit(Effect.sync(() => followers.wake(id)))
    return done.length > 0
  })

  /** What was asked and answered, for those who search. */
  const remember = (state: RunState) => sql`
    INSERT INTO kernai_words (run, body)
    SELECT run, ${RunStore.words(state)} FROM kernai_runs WHERE id = ${Key.make(state.runId)}
    ON CONFLICT (run) DO UPDATE SET body = excluded.body`

  const insert = Effect.fnUntraced(function* (record: RunRecord, state: RunState, body: string) {
    const { agent, createdAt, parentRunId, rootRunId, runId } = state
    const facts = yield* Effect.fromResult(
      encodeFacts({ runId, rootRunId, parentRunId: parentRunId ?? null, agent, createdAt })
    )
    const added = yield* sql`
      INSERT INTO kernai_runs ${sql.insert({
        id: Key.make(runId),
        root: Key.make(rootRunId),
        parent: parentRunId === undefined ? null : Key.make(parentRunId),
        agent: Key.make(agent),
        facts,
        format: RunCodec.format,
        created_at: createdAt,
        revision: 0,
        turns: 0,
        status: state.status.type,
        detail: "",
        updated_at: createdAt
      })} ON CONFLICT (id) DO NOTHING RETURNING run`
    if (added.length === 0) return false
    yield* append(record, state, body)
    yield* remember(state)
    return true
  })

  const create = Effect.fnUntraced(function* (record: RunRecord, state: RunState) {
    if (record.revision !== 1) return yield* RunStore.notFirst(record)
    const body = yield* Effect.fromResult(RunCodec.encodeRecord(record))
    const isNew = yield* sql.withTransaction(insert(record, state, body))
    if (!isNew) {
      const found = yield* find(record.runId)
      const first = found === undefined ? [] : yield* bodies("kernai_journal", found.run, 0, 1)
      if (first[0] === undefined || !RunCodec.isSame(first[0], body))
        return yield* new RunExists({ runId: record.runId })
    }
    marks.set(state, RunCodec.start)
  })

  /** Why a record was not appended; nothing when it had been before. */
  const refused = Effect.fnUntraced(function* ({ revision, runId }: RunRecord, body: string) {
    const found = yield* find(runId)
    if (found !== undefined) {
      yield* readable(found.format)
      const stored = yield* bodies("kernai_journal", found.run, revision - 1, 1)
      if (stored[0] !== undefined && RunCodec.isSame(stored[0], body)) return
    }
    return yield* new ConcurrentAppendError({ runId, expectedSeq: revision - 1, actualSeq: found?.revision ?? 0 })
  })

  /** Writes a part of the state. A failure costs time at the next load, nothing else. */
  const writePart = (state: RunState, mark: RunCodec.Mark) =>
    Effect.fromResult(RunCodec.encodeState(state, mark)).pipe(
      Effect.flatMap(
        (body) => sql`
          INSERT INTO kernai_parts (entry, body)
          SELECT (CAST(run AS BIGINT) << 32) + revision, ${body} FROM kernai_runs
          WHERE id = ${Key.make(state.runId)} AND revision = ${state.revision}`
      ),
      Effect.matchEffect({
        onFailure: (error) => Effect.logDebug("a part of a run was not written", error),
        onSuccess: () => Effect.sync(() => marks.written(state))
      })
    )

  const commit = Effect.fnUntraced(function* (record: RunRecord, state: RunState) {
    const body = yield* Effect.fromResult(RunCodec.encodeRecord(record))
    const appended = append(record, state, body)
    const isDone = yield* state.status.type === "completed"
      ? sql.withTransaction(Effect.tap(appended, remember(state)))
      : appended
    if (!isDone) return yield* refused(record, body)
    const mark = marks.due(state, body.length)
    if (mark !== undefined) yield* writePart(state, mark)
  })

  const remove = Effect.fnUntraced(function* (runIds: ReadonlyArray<string>) {
    for (let start = 0; start < runIds.length; start += PAGE) {
      const ids = runIds.slice(start, start + PAGE).map(Key.make)
      const runs = yield* sql<{ run: number }>`DELETE FROM kernai_runs WHERE ${sql.in("id", ids)} RETURNING run`
      for (const { run } of runs) {
        for (const table of ["kernai_journal", "kernai_parts"]) {
          yield* sql`DELETE FROM ${sql(table)} WHERE entry > ${entry(run, 0)} AND entry < ${entry(run + 1, 0)}`
        }
        yield* sql`DELETE FROM kernai_words WHERE run = ${run}`
      }
    }
  })

  // ---------------------------------------------------------------- heads and leases

  const head = Effect.fnUntraced(function* (runId: string) {
    const rows = yield* sql`SELECT * FROM kernai_runs WHERE id = ${Key.make(runId)}`
    if (rows[0] === undefined) return Option.none<RunStore.RunHead>()
    return Option.some(yield* toHead(rows[0]))
  })

  const list = Effect.fnUntraced(function* (filter: RunStore.RunFilter = {}) {
    const { agent, limit, rootRunId, roots, search, status, unleasedAt, updatedBefore } = filter
    const where: Array<Fragment> = [sql`format <= ${RunCodec.format}`]
    if (status !== undefined) where.push(status.length === 0 ? sql`1 = 0` : sql.in("status", status))
    if (agent !== undefined) where.push(sql`agent = ${Key.make(agent)}`)
    if (rootRunId !== undefined) where.push(sql`root = ${Key.make(rootRunId)}`)
    if (roots === true) where.push(sql`parent IS NULL`)
    if (updatedBefore !== undefined) where.push(sql`updated_at < ${updatedBefore}`)
    if (unleasedAt !== undefined) where.push(sql`(expires_at IS NULL OR expires_at <= ${unleasedAt})`)
    for (const word of RunStore.wanted(search)) {
      const found = sql`${sql.literal(dialect.position)}(kernai_words.body, ${word}) > 0`
      where.push(sql`EXISTS (SELECT 1 FROM kernai_words WHERE kernai_words.run = kernai_runs.run AND ${found})`)
    }
    const rows = yield* sql`
      SELECT * FROM kernai_runs WHERE ${sql.and(where)} ORDER BY created_at DESC, id
      LIMIT ${limit ?? Number.MAX_SAFE_INTEGER}`
    return yield* Effect.forEach(rows, toHead)
  })

  const acquire = Effect.fnUntraced(function* (
    runId: string,
    lease: RunStore.Lease,
    now: number
  ): Effect.fn.Return<void, RunBusy | RunNotFound | StoreError | SqlError> {
    const worker = Key.escape(lease.workerId)
    const taken = yield* sql`
      UPDATE kernai_runs SET worker = ${worker}, expires_at = ${lease.expiresAt}
      WHERE id = ${Key.make(runId)} AND (worker IS NULL OR worker = ${worker} OR expires_at <= ${now})
      RETURNING run`
    if (taken.length > 0) return
    const found = Option.getOrUndefined(yield* head(runId))
    if (found === undefined) return yield* new RunNotFound({ runId })
    const held = found.lease
    // Whoever held it may have let go in between.
    return held === undefined || held.expiresAt <= now
      ? yield* acquire(runId, lease, now)
      : yield* new RunBusy({ runId, ...held })
  })

  const release = (runId: string, workerId: string) => sql`
    UPDATE kernai_runs SET worker = NULL, expires_at = NULL
    WHERE id = ${Key.make(runId)} AND worker = ${Key.escape(workerId)}`

  return RunStore.RunStore.of({
    create: (record, state) => Effect.catchTag(create(record, state), "SqlError", failed("create")),
    commit: (record, state) => Effect.catchTag(commit(record, state), "SqlError", failed("commit")),
    load: (runId) => Effect.catchTag(load(runId), "SqlError", failed("load")),
    head: (runId) => Effect.catchTag(head(runId), "SqlError", failed("read")),
    read,
    tail,
    list: (filter) => Effect.catchTag(list(filter), "SqlError", failed("list")),
    acquire: (runId, lease, now) => Effect.catchTag(acquire(runId, lease, now), "SqlError", failed("acquire")),
    release: (runId, workerId) =>
      Effect.asVoid(Effect.catchTag(release(runId, workerId), "SqlError", failed("release"))),
    remove: (runIds) => Effect.catchTag(sql.withTransaction(remove(runIds)), "SqlError", failed("remove"))
  })
})

/**
 * Keeps runs in the database of the context.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<RunStore.RunStore, StoreError, SqlClient.SqlClient> =>
  Layer.effect(RunStore.RunStore, make(options))

/**
 * Keeps runs in a SQLite file.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSqlite = (
  file: string | (SqliteClient.Options & Options)
): Layer.Layer<RunStore.RunStore, StoreError> => {
  const options = typeof file === "string" ? { filename: file } : file
  const client = Layer.effect(
    SqlClient.SqlClient,
    Effect.catchTag(SqliteClient.make(options), "SqlError", failed("open"))
  )
  return layer(options).pipe(Layer.provide(client), Layer.provide(Reactivity.layer))
}

// ---------------------------------------------------------------- helpers

/** Rows read at once. */
const PAGE = 200

/** Makes the tables, or refuses those of a newer version. */
const prepare = (sql: SqlClient.SqlClient): Effect.Effect<void, StoreError> =>
  Effect.gen(function* () {
    yield* Tables.migrate
    const rows = yield* sql<{ last: number }>`SELECT max(migration_id) AS last FROM ${sql(Tables.migrationsTable)}`
    const last = rows[0]?.last ?? 0
    if (last > Tables.latest) {
      return yield* new StoreError({
        operation: "open",
        reason: "format",
        detail: `the tables are of version ${last}, newer than ${Tables.latest}, the newest this version knows`
      })
    }
  }).pipe(
    Effect.provideService(SqlClient.SqlClient, sql),
    Effect.catchTag("SqlError", failed("open")),
    Effect.catchTag("MigrationError", (error: MigrationError) =>
      Effect.fail(new StoreError({ operation: "open", reason: "unavailable", detail: error.message }))
    )
  )

const Facts = Schema.fromJsonString(
  Schema.Struct({
    runId: Schema.String,
    rootRunId: Schema.String,
    parentRunId: Schema.NullOr(Schema.String),
    agent: Schema.String,
    createdAt: Schema.Finite
  })
)

const Row = Schema.Struct({
  facts: Facts,
  revision: Schema.Int,
  turns: Schema.Int,
  detail: Schema.String,
  updated_at: Schema.Finite,
  worker: Schema.NullOr(Schema.String),
  expires_at: Schema.NullOr(Schema.Finite)
})

const encodeFacts = Schema.encodeResult(Facts)

const readRow = Schema.decodeUnknownResult(Row)

const toHead = (row: unknown): Effect.Effect<RunStore.RunHead, StoreError> =>
  Effect.fromResult(
    Result.flatMap(readRow(row), ({ detail, expires_at, facts, revision, turns, updated_at, worker }) =>
      Result.map(RunCodec.decodeStatus(detail), (status) => ({
        ...facts,
        parentRunId: facts.parentRunId ?? undefined,
        revision,
        status,
        turns,
        updatedAt: updated_at,
        lease:
          worker === null || expires_at === null ? undefined : { workerId: Key.unescape(worker), expiresAt: expires_at }
      }))
    )
  ).pipe(Effect.catchTag("SchemaError", () => corrupt("a head cannot be read")))

const fold = (state: RunState | undefined, records: ReadonlyArray<RunRecord>) =>
  Effect.try({
    try: () => {
      let next = state
      for (const record of records) next = advance(next, record)
      return next
    },
    catch: (error) => new StoreError({ operation: "load", reason: "corrupt", detail: String(error) })
  })

const readable = (format: number): Effect.Effect<void, StoreError> =>
  format <= RunCodec.format
    ? Effect.void
    : Effect.fail(
        new StoreError({
          operation: "load",
          reason: "format",
          detail: `format ${format} is newer than ${RunCodec.format}, the newest this version reads`
        })
      )

const corrupt = (detail: string) => Effect.fail(new StoreError({ operation: "read", reason: "corrupt", detail }))

const gap = (record: RunRecord) => corrupt(`a record before revision ${record.revision} is missing`)

const failed =
  (operation: string) =>
  (error: SqlError): Effect.Effect<never, StoreError> => {
    const { _tag } = error.reason
    const reason = _tag === "LockTimeoutError" || _tag === "StatementTimeoutError" ? "timeout" : "unavailable"
    return Effect.fail(new StoreError({ operation, reason, detail: error.message }))
  }
