/**
 * Heads and leases in the table of runs.
 */

import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { atMost, heldAt } from "../../internal/store/runHead.ts"
import * as Search from "../../internal/store/runSearch.ts"
import { RunBusy, RunNotFound, StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { Lease, RunFilter, RunHead, RunStatus } from "../../RunStore.ts"
import { corrupt } from "./sqlFault.ts"
import * as Key from "./key.ts"
import * as Tables from "./runTables.ts"

/** The heads and leases of a database. */
export interface Heads {
  readonly head: (runId: string) => Effect.Effect<Option.Option<RunHead>, StoreError | SqlError>
  readonly list: (filter?: RunFilter) => Effect.Effect<ReadonlyArray<RunHead>, SqlError>
  readonly acquire: (
    runId: string,
    lease: Lease,
    now: number
  ) => Effect.Effect<void, RunBusy | RunNotFound | StoreError | SqlError>
  readonly release: (runId: string, workerId: string) => Effect.Effect<void, SqlError>
  /** Returns the keys of the runs that are cancelled, among some. */
  readonly cancelled: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, SqlError>
}

/** Reads with a client that transforms nothing. */
export const make = (sql: SqlClient): Heads => ({
  head: (runId) => head(sql, runId),
  list: (filter) => list(sql, filter),
  acquire: (runId, lease, now) => acquire(sql, runId, lease, now),
  release: (runId, workerId) =>
    Effect.asVoid(sql`
      UPDATE kernai_runs SET worker = NULL, expires_at = NULL
      WHERE id = ${Key.make(runId)} AND worker = ${Key.escape(workerId)}`),
  cancelled: (keys) => cancelled(sql, keys)
})

const cancelled = (sql: SqlClient, keys: ReadonlyArray<string>): Effect.Effect<ReadonlyArray<string>, SqlError> =>
  Effect.map(
    Effect.forEach(
      Arr.chunksOf(keys, 500),
      (some) =>
        sql<{ readonly id: string }>`
          SELECT id FROM kernai_runs WHERE status = 'cancelled' AND ${sql.in("id", some)}`
    ),
    (pages) => pages.flat().map(({ id }) => id)
  )

/** A head is the row of a run with the last row of its journal. */
const columns = `facts, worker, expires_at, turns, detail, at,
  CAST(entry + records - 1 - (CAST(r.run AS BIGINT) << 32) AS INTEGER) AS revision`

const joined = `kernai_runs AS r JOIN kernai_journal AS j ON j.entry = ${Tables.lastEntry}`

const head = Effect.fnUntraced(function* (
  sql: SqlClient,
  runId: string
): Effect.fn.Return<Option.Option<RunHead>, StoreError | SqlError> {
  const now = yield* Clock.currentTimeMillis
  const rows = yield* sql`SELECT ${sql.literal(columns)} FROM ${sql.literal(joined)} WHERE id = ${Key.make(runId)}`
  return rows[0] === undefined ? Option.none() : Option.some(yield* toHead(rows[0], now))
})

const list = Effect.fnUntraced(function* (sql: SqlClient, filter: RunFilter = {}) {
  const now = yield* Clock.currentTimeMillis
  const where = conditions(sql, filter, now)
  const isOldest = filter.order === "oldest"
  const heads: Array<RunHead> = []
  const most = atMost(filter)
  let last = filter.after && { created_at: filter.after.createdAt, id: Key.make(filter.after.runId) }
  for (;;) {
    const wanted = most - heads.length
    const rows = yield* sql<Place>`
      SELECT created_at, id, ${sql.literal(columns)} FROM ${sql.literal(joined)}
      WHERE ${sql.and(last === undefined ? where : [...where, behind(sql, last, isOldest)])}
      ORDER BY created_at ${sql.literal(isOldest ? "ASC" : "DESC")}, id LIMIT ${wanted}`
    for (const row of rows) {
      // A head that cannot be read hides no other, and takes no place of a page.
      const head = yield* Effect.catch(toHead(row, now), (error) =>
        Effect.as(Effect.logWarning("a run is left out", error), undefined)
      )
      if (head !== undefined) heads.push(head)
    }
    last = rows.at(-1)
    if (rows.length < wanted || heads.length === most) return heads
  }
})

const conditions = (sql: SqlClient, filter: RunFilter, now: number): ReadonlyArray<Fragment> => {
  const { agent, rootRunId, roots, search, status, unleasedAt, updatedBefore } = filter
  const where: Array<Fragment> = [sql`format <= ${RunCodec.format}`]
  if (status !== undefined) where.push(stands(sql, status, now))
  if (agent !== undefined) where.push(sql`agent = ${Key.make(agent)}`)
  if (rootRunId !== undefined) where.push(sql`root = ${Key.make(rootRunId)}`)
  if (roots === true) where.push(sql`parent IS NULL`)
  if (updatedBefore !== undefined) where.push(sql`at < ${updatedBefore}`)
  if (unleasedAt !== undefined) where.push(sql`(expires_at IS NULL OR expires_at <= ${unleasedAt})`)
  const position = sql.onDialectOrElse({ pg: () => "strpos", orElse: () => "instr" })
  for (const word of Search.wanted(search)) {
    const found = sql`${sql.literal(position)}(kernai_words.body, ${word}) > 0`
    where.push(sql`EXISTS (SELECT 1 FROM kernai_words WHERE kernai_words.run = r.run AND ${found})`)
  }
  return where
}

/** Takes the runs that stand as one of some words says. */
const stands = (sql: SqlClient, words: ReadonlyArray<RunStatus["type"]>, now: number): Fragment => {
  const leased = {
    queued: sql`expires_at = 0`,
    running: sql`(expires_at IS NULL OR expires_at > ${now})`,
    interrupted: sql`expires_at <> 0 AND expires_at <= ${now}`
  }
  const statuses: Array<string> = []
  const conditions: Array<Fragment> = []
  for (const word of words) {
    if (word === "queued" || word === "running" || word === "interrupted") {
      conditions.push(sql`(r.status = 'running' AND ${leased[word]})`)
    } else statuses.push(word === "waiting" ? "paused" : word)
  }
  if (statuses.length > 0) conditions.push(sql.in("r.status", statuses))
  return conditions.length === 0 ? sql`1 = 0` : sql.or(conditions)
}

const behind = (sql: SqlClient, { created_at, id }: Place, isOldest: boolean): Fragment => {
  const later = isOldest ? sql`created_at > ${created_at}` : sql`created_at < ${created_at}`
  return sql`(${later} OR (created_at = ${created_at} AND id > ${id}))`
}

const acquire = Effect.fnUntraced(function* (
  sql: SqlClient,
  runId: string,
  lease: Lease,
  now: number
): Effect.fn.Return<void, RunBusy | RunNotFound | StoreError | SqlError> {
  const worker = Key.escape(lease.workerId)
  const taken = yield* sql`
    UPDATE kernai_runs SET worker = ${worker}, expires_at = ${lease.expiresAt}
    WHERE id = ${Key.make(runId)} AND (worker IS NULL OR worker = ${worker} OR expires_at IS NULL OR expires_at <= ${now})
    RETURNING run`
  if (taken.length > 0) return
  const found = Option.getOrUndefined(yield* head(sql, runId))
  if (found === undefined) return yield* new RunNotFound({ runId })
  const held = found.lease
  // Its holder may have released it in between.
  return held === undefined || held.expiresAt <= now
    ? yield* acquire(sql, runId, lease, now)
    : yield* new RunBusy({ runId, ...held })
})

/** The place of a run in a list. */
interface Place {
  readonly created_at: number
  readonly id: string
}

/** The fields of a head that never change, as text: keys may be shortened. */
const Facts = Schema.fromJsonString(
  Schema.Struct({
    runId: Schema.String,
    rootRunId: Schema.String,
    parentRunId: Schema.NullOr(Schema.String),
    agent: Schema.String,
    createdAt: Schema.Finite
  })
)

/** Writes the fields of a head that never change. */
export const facts = ({ agent, createdAt, parentRunId, rootRunId, runId }: RunHead): string =>
  JSON.stringify({ runId, rootRunId, parentRunId: parentRunId ?? null, agent, createdAt })

const readRow = Schema.decodeUnknownResult(
  Schema.Struct({
    facts: Facts,
    revision: Schema.Int,
    turns: Schema.Int,
    detail: Schema.String,
    at: Schema.Finite,
    worker: Schema.NullOr(Schema.String),
    expires_at: Schema.NullOr(Schema.Finite)
  })
)

const toHead = (row: unknown, now: number): Effect.Effect<RunHead, StoreError> =>
  Effect.fromResult(
    Result.flatMap(readRow(row), ({ at, detail, expires_at, facts, revision, turns, worker }) =>
      Result.map(RunCodec.decodeStatus(detail), (status) =>
        heldAt(
          now,
          { ...facts, parentRunId: facts.parentRunId ?? undefined, revision, status, turns, updatedAt: at },
          worker === null || expires_at === null ? undefined : { workerId: Key.unescape(worker), expiresAt: expires_at }
        )
      )
    )
  ).pipe(Effect.catchTag("SchemaError", () => corrupt("a head cannot be read")))
