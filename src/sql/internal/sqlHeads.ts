/** Reads and writes heads and leases in the table of runs. */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { Caller } from "../../Caller.ts"
import { atMost, dueAt, leaseOf, movedSince, storedStatuses, underLease, withTags } from "../../store-kit/StoreRules.ts"
import * as StoreSearch from "../../store-kit/StoreSearch.ts"
import { type ConcurrentAppendError, RunBusy, RunNotFound, type StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { Status } from "../../RunState.ts"
import type { Claim, Lease, RunFilter, RunHead } from "../../RunStore.ts"
import { nowOf } from "./databaseTime.ts"
import { corrupt } from "./sqlFault.ts"
import * as Key from "./key.ts"
import { columnsOf, joined, pageOf, type Place, runsOf } from "./listQuery.ts"
import type { SearchIndex } from "./searchIndex.ts"
import * as Tables from "./runTables.ts"
import * as SqlTags from "./sqlTags.ts"

/** The heads and leases of a database. */
export interface Heads {
  readonly head: (runId: string) => Effect.Effect<Option.Option<RunHead>, StoreError | SqlError>
  readonly list: (filter?: RunFilter) => Effect.Effect<ReadonlyArray<RunHead>, SqlError>
  readonly acquire: (
    runId: string,
    claim: Claim
  ) => Effect.Effect<void, RunBusy | RunNotFound | ConcurrentAppendError | StoreError | SqlError>
  readonly release: (runId: string, workerId: string) => Effect.Effect<void, SqlError>
  /** Returns the keys of the runs among these that are cancelled. */
  readonly cancelled: (keys: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, SqlError>
}

/** Creates the heads on a client without transformations. */
export const make = (sql: SqlClient, index: SearchIndex): Heads => ({
  head: sql.onDialectOrElse({ pg: () => readTogether(sql), orElse: () => (runId: string) => head(sql, runId) }),
  list: (filter = {}) =>
    StoreSearch.wordsOf(filter.search).length === 0 ? list(sql, filter) : search(sql, index, filter),
  acquire: (runId, claim) => acquire(sql, runId, claim),
  release: (runId, workerId) =>
    Effect.asVoid(sql`
      UPDATE kernai_runs SET worker = NULL, expires_at = NULL
      WHERE id = ${Key.make(runId)} AND worker = ${Key.escape(workerId)} AND ${soon(sql)}`),
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

const head = Effect.fnUntraced(function* (
  sql: SqlClient,
  runId: string
): Effect.fn.Return<Option.Option<RunHead>, StoreError | SqlError> {
  const rows =
    yield* sql`SELECT ${sql.literal(columnsOf(sql))} FROM ${sql.literal(joined)} WHERE id = ${Key.make(runId)}`
  return rows[0] === undefined ? Option.none() : Option.some(yield* toHead(rows[0]))
})

class HeadOf extends Request.Class<{ readonly runId: string }, Option.Option<RunHead>, StoreError | SqlError> {}

/**
 * Reads heads that fibers request at the same time in one query, since each call of a `write` skill requests one. In a
 * transaction of the host a head is read by itself.
 */
const readTogether = (sql: SqlClient): Heads["head"] => {
  const columns = sql.literal(columnsOf(sql))
  const find = (keys: ReadonlyArray<string>) => sql<{ readonly id: string }>`
    SELECT found.* FROM json_array_elements_text(${JSON.stringify(keys)}::json) AS wanted (id) CROSS JOIN LATERAL (
      SELECT r.id, ${columns} FROM ${sql.literal(joined)} WHERE r.id = wanted.id LIMIT 1
    ) AS found`
  const resolver = RequestResolver.make<HeadOf>((entries) => {
    const wanted = entries.map(({ request }) => Key.make(request.runId))
    return Effect.flatMap(find(wanted), (rows) => {
      const found = new Map(rows.map((row) => [row.id, row]))
      return Effect.forEach(
        entries,
        (entry, index) => {
          const row = found.get(wanted[index] ?? "")
          return Request.completeEffect(entry, row === undefined ? Effect.succeedNone : Effect.asSome(toHead(row)))
        },
        { discard: true }
      )
    })
  }).pipe(RequestResolver.batchN(256))
  return (runId) =>
    Effect.flatMap(Effect.serviceOption(sql.transactionService), (transaction) =>
      Option.isSome(transaction) ? head(sql, runId) : Effect.request(new HeadOf({ runId }), resolver)
    )
}

/**
 * Lists runs that mention words: first among as many runs as frequent words need, or as a filter leaves, and then among
 * those that the index names.
 */
const search = Effect.fnUntraced(function* (sql: SqlClient, index: SearchIndex, filter: RunFilter) {
  const some = runsOf(sql, { ...filter, search: undefined }, { last: lastOf(filter), limit: compared })
  const found = yield* list(sql, filter, some)
  if (found.length === atMost(filter)) return found
  const more = yield* sql`SELECT found FROM (${some}) AS runs LIMIT 1 OFFSET ${compared - 1}`
  return more.length === 0
    ? found
    : yield* list(sql, filter, yield* index.candidates(StoreSearch.wordsOf(filter.search)))
})

/** Texts that a search compares without asking the index, which would take longer. */
const compared = 4000

/** Returns the position after which a list begins. */
const lastOf = ({ after }: RunFilter): Place | undefined =>
  after && { created_at: after.createdAt, due_at: dueAt(after) ?? 0, id: Key.make(after.runId) }

const list = Effect.fnUntraced(function* (sql: SqlClient, filter: RunFilter, among?: Fragment) {
  const { prefix = "" } = filter
  const heads: Array<RunHead> = []
  const most = atMost(filter)
  let last = lastOf(filter)
  for (;;) {
    const wanted = most - heads.length
    const rows = yield* sql<Place>`${pageOf(sql, filter, { last, limit: wanted, among })}`
    // An unreadable head does not hide others, and does not count toward a page.
    const found = yield* Effect.forEach(rows, (row) =>
      Effect.catch(toHead(row), (error) => Effect.as(Effect.logWarning("a run is left out", error), undefined))
    )
    if (filter.order === "due" && (yield* corrected(sql, rows, found))) continue
    for (const head of found) if (head?.runId.startsWith(prefix) === true) heads.push(head)
    last = rows.at(-1)
    if (rows.length < wanted || heads.length === most) return heads
  }
})

/**
 * Corrects deadlines in rows, which are unknown or old after a process of the version before stored a run. Returns
 * whether any was wrong, so that its row has another place in the list.
 */
const corrected = Effect.fnUntraced(function* (
  sql: SqlClient,
  rows: ReadonlyArray<Place>,
  heads: ReadonlyArray<RunHead | undefined>
) {
  let isCorrected = false
  for (const [index, head] of heads.entries()) {
    if (head === undefined || rows[index]?.due_at === deadlineOf(head)) continue
    const changed = yield* sql`
      UPDATE kernai_runs AS r SET due_at = ${deadlineOf(head)}
      WHERE id = ${Key.make(head.runId)} AND ${stands(sql, head)} RETURNING run`
    isCorrected ||= changed.length > 0
  }
  return isCorrected
})

const acquire = Effect.fnUntraced(function* (
  sql: SqlClient,
  runId: string,
  claim: Claim
): Effect.fn.Return<void, RunBusy | RunNotFound | ConcurrentAppendError | StoreError | SqlError> {
  const millis = yield* Effect.fromResult(leaseOf(claim))
  const worker = Key.escape(claim.workerId)
  const now = sql.literal(nowOf(sql))
  const expiry = millis === 0 ? sql`0` : sql`clock.now + ${millis}`
  const isHeld = sql`r.worker = ${worker} AND r.expires_at > clock.now AND r.since IS NOT NULL`
  // The clock is read once, so that the lease lasts from `since` for exactly as long as it was claimed.
  const taken = yield* sql`
    UPDATE kernai_runs AS r SET worker = ${worker}, (expires_at, since) = (
      SELECT ${expiry}, CASE WHEN ${isHeld} THEN r.since ELSE clock.now END
      FROM (SELECT ${now} AS now LIMIT 1) AS clock
    )
    WHERE id = ${Key.make(runId)}
      AND (worker IS NULL OR worker = ${worker} OR expires_at IS NULL OR expires_at <= ${now})
      AND ${claim.seen === undefined ? sql`1 = 1` : stands(sql, claim.seen)}
      AND ${soon(sql)}
    RETURNING run`
  if (taken.length > 0) return
  const found = Option.getOrUndefined(yield* head(sql, runId))
  if (found === undefined) return yield* new RunNotFound({ runId })
  const held = found.lease
  if (held?.isLive === true && held.workerId !== claim.workerId) {
    return yield* new RunBusy({ runId, workerId: held.workerId, expiresAt: held.expiresAt })
  }
  // Its holder may have released it in the meantime.
  return yield* movedSince(claim, found) ?? acquire(sql, runId, claim)
})

/**
 * Returns a condition that is always true and makes its statement not wait for the disk. If a crash of the database
 * loses a lease, its worker notices at the next renewal, and the revision of the run lets only one worker append. If it
 * loses an offer, the run is claimed like any abandoned run, only later.
 */
const soon = (sql: SqlClient): Fragment =>
  sql.onDialectOrElse({
    pg: () => sql`(SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL`,
    orElse: () => sql`1 = 1`
  })

/**
 * Returns a condition that a run is unchanged since a worker saw it. An append that changes the status locks the row of
 * its run.
 */
const stands = (sql: SqlClient, { revision, status }: NonNullable<Claim["seen"]>): Fragment => {
  const last = sql`(SELECT entry + records FROM kernai_journal WHERE entry = ${sql.literal(Tables.lastEntry)})`
  return sql`${sql.in("status", storedStatuses(status.type))} AND ${last} = (CAST(r.run AS BIGINT) << 32) + CAST(${revision + 1} AS BIGINT)`
}

/** The fields of a head that never change, as text, because keys may be shortened. */
const Facts = Schema.fromJsonString(
  Schema.Struct({
    runId: Schema.String,
    rootRunId: Schema.String,
    parentRunId: Schema.NullOr(Schema.String),
    agent: Schema.String,
    version: Schema.optionalKey(Schema.String),
    caller: Schema.optionalKey(Caller),
    createdAt: Schema.Finite
  })
)

/** Returns the `due_at` in the row of a run. */
export const deadlineOf = ({ status }: { readonly status: RunHead["status"] | Status }): number | null =>
  status.type === "paused" || status.type === "waiting" ? (dueAt({ status }) ?? Tables.noDeadline) : null

/** Encodes the fields of a head that never change. */
export const facts = ({ agent, caller, createdAt, parentRunId, rootRunId, runId, version }: RunHead): string =>
  JSON.stringify({ runId, rootRunId, parentRunId: parentRunId ?? null, agent, version, caller, createdAt })

const Row = Schema.Struct({
  facts: Facts,
  model: Schema.NullOr(Schema.String),
  revision: Schema.Int,
  turns: Schema.Int,
  detail: Schema.String,
  at: Schema.Finite,
  worker: Schema.NullOr(Schema.String),
  expires_at: Schema.NullOr(Schema.Finite),
  since: Schema.NullOr(Schema.Finite),
  live: Schema.Int,
  tags: Schema.NullOr(Schema.fromJsonString(Schema.Array(Schema.String)))
})

const readRow = Schema.decodeUnknownResult(Row)

const toHead = (row: unknown): Effect.Effect<RunHead, StoreError> =>
  Effect.fromResult(
    Result.flatMap(readRow(row), (found) =>
      Result.map(RunCodec.decodeStatus(found.detail), (status) => {
        const { at, facts, model, revision, tags, turns } = found
        const hasModel = model !== null && status.type !== "running" && status.type !== "paused"
        const head = {
          ...facts,
          version: facts.version,
          caller: facts.caller,
          parentRunId: facts.parentRunId ?? undefined,
          revision,
          status,
          turns,
          model: hasModel ? Key.unescape(model) : undefined,
          updatedAt: at
        }
        return withTags(underLease(head, leaseIn(found)), (tags ?? []).map(SqlTags.tagOf).toSorted())
      })
    )
  ).pipe(Effect.catchTag("SchemaError", () => corrupt("a head cannot be read")))

const leaseIn = ({ expires_at, live, since, worker }: typeof Row.Type): Lease | undefined =>
  worker === null || expires_at === null
    ? undefined
    : {
        workerId: Key.unescape(worker),
        expiresAt: expires_at,
        isLive: live === 1,
        ...(since === null || expires_at === 0 ? {} : { since: Math.round(since) })
      }
