/**
 * Reads journals from tables.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { type Found as Records, damaged, foldFrom, noteUnsealed, readAfter } from "../../store-kit/StoreRules.ts"
import type { DuePart } from "../../store-kit/StateParts.ts"
import type { StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import * as Key from "./key.ts"
import * as Tables from "./runTables.ts"
import { readable } from "./sqlFault.ts"
import type { Histories } from "./sqlHistories.ts"

/** A run as found in its table. */
interface Found {
  readonly run: number
  readonly revision: number
  readonly format: number
}

/** Rows read at once. */
export const PAGE = 200

interface Page extends Pick<Records, "records" | "unsealed"> {
  readonly isLast: boolean
}

/** The journals of a database. */
export interface Journal {
  /** Finds a run. */
  readonly find: (runId: string) => Effect.Effect<Found | undefined, SqlError>
  /** Returns this many stored records after a revision, up to the first unreadable one. */
  readonly between: (runId: string, after: number, count: number) => Effect.Effect<ReadonlyArray<RunRecord>, SqlError>
  /** Returns the next records after a revision, also for a run that does not exist yet. */
  readonly page: (runId: string, after: number) => Effect.Effect<Page, StoreError | SqlError>
  /** Returns the state of a run, and the mark up to which it is stored in parts. */
  readonly load: (runId: string) => Effect.Effect<Option.Option<DuePart>, StoreError | SqlError>
  /** Returns the earlier messages that a run refers to. */
  readonly earlier: (runId: string) => Effect.Effect<RunCodec.Earlier | undefined, SqlError>
  /** Deletes the journal of a run by its number. */
  readonly remove: (run: number) => Effect.Effect<void, SqlError>
}

/** Creates the journals on a client without transformations. */
export const make = (sql: SqlClient, codec: RunCodec.RunCodec, histories: Histories): Journal => {
  const read = Effect.fnUntraced(function* (runId: string, after: number, limit: number) {
    const texts = yield* bodies(sql, runId, after, limit)
    const earlier = yield* histories.earlier(texts[0])
    return { texts, ...readAfter(runId, after, texts, (text) => codec.decodeRecords(text, earlier)) }
  })
  const page: Journal["page"] = (runId, after) => Effect.flatMap(read(runId, after, PAGE), sound)
  return {
    page,
    find: (runId) => find(sql, runId),
    between: (runId, after, count) => Effect.map(read(runId, after, count), ({ records }) => records.slice(0, count)),
    load: (runId) => load(sql, codec, histories, page, runId),
    earlier: (runId) => Effect.map(bodies(sql, runId, 0, 1), ([text = ""]) => RunCodec.earlierIn(text)),
    remove: (run) => remove(sql, run)
  }
}

/** Returns the key of a row, from the number of a run and a revision. */
const entry = (sql: SqlClient, run: number | Fragment, revision: number): Fragment =>
  sql`(CAST(${run} AS BIGINT) << 32) + CAST(${revision} AS BIGINT)`

/** Returns SQL for the number of a run at the time of a query, since SQLite may reuse the number of a removed run. */
const numberOf = (sql: SqlClient, runId: string): Fragment =>
  sql`(SELECT run FROM kernai_runs WHERE id = ${Key.make(runId)})`

const find = (sql: SqlClient, runId: string): Effect.Effect<Found | undefined, SqlError> =>
  Effect.map(sql<Found>`${foundBy(sql, runId)}`, (rows) => rows[0])

const foundBy = (sql: SqlClient, runId: string): Fragment => sql`
  SELECT run, format, CAST(coalesce((
    SELECT entry + records - 1 FROM kernai_journal WHERE entry = ${sql.literal(Tables.lastEntry)}
  ), 0) - (CAST(run AS BIGINT) << 32) AS INTEGER) AS revision
  FROM kernai_runs AS r WHERE id = ${Key.make(runId)}`

/** Finds a run with the parts of its state: a row for each part, or one row without a body. */
const withParts = (sql: SqlClient, runId: string) =>
  sql<Found & { readonly body: string | null }>`
    SELECT found.run, format, revision, body FROM (${foundBy(sql, runId)}) AS found
    LEFT JOIN kernai_parts
      ON entry > CAST(found.run AS BIGINT) << 32 AND entry < (CAST(found.run AS BIGINT) + 1) << 32
    ORDER BY entry`

/** Returns the texts of the rows with records after a revision: the first one may also hold earlier records. */
const bodies = (
  sql: SqlClient,
  runId: string,
  after: number,
  limit: number
): Effect.Effect<ReadonlyArray<string>, SqlError> => {
  const run = numberOf(sql, runId)
  const next = entry(sql, run, after + 1)
  return Effect.map(
    sql<{ readonly body: string }>`
      SELECT body FROM kernai_journal
      WHERE entry >= coalesce(
          (SELECT max(entry) FROM kernai_journal WHERE entry > ${entry(sql, run, 0)} AND entry <= ${next}),
          ${entry(sql, run, 0)}
        )
        AND entry < ${entry(sql, run, 2 ** 32)} AND entry + records > ${next}
      ORDER BY entry LIMIT ${limit}`,
    (rows) => rows.map((row) => row.body)
  )
}

/** Fails for a page that begins with an unreadable record. */
const sound = ({ fault, records, texts, unsealed }: Records & { readonly texts: ReadonlyArray<string> }) =>
  fault !== undefined && records.length === 0
    ? Effect.fail(fault)
    : Effect.succeed({ records, isLast: fault === undefined && texts.length < PAGE, unsealed })

/** Returns the state that is stored in parts. Parts are only a shortcut, so unreadable ones are removed. */
const written = Effect.fnUntraced(function* (
  sql: SqlClient,
  codec: RunCodec.RunCodec,
  histories: Histories,
  run: number,
  parts: ReadonlyArray<string>
) {
  const earlier = yield* histories.earlier(parts[0])
  const state = Result.getOrUndefined(codec.decodeState(parts, earlier))
  if (state !== undefined) return { state, mark: { turns: state.turns.length, prompt: state.prompt } }
  if (parts.length > 0) {
    yield* sql`
      DELETE FROM kernai_parts WHERE entry > ${entry(sql, run, 0)} AND entry < ${entry(sql, run + 1, 0)}`
  }
  return { state, mark: RunCodec.start }
})

const load = Effect.fnUntraced(function* (
  sql: SqlClient,
  codec: RunCodec.RunCodec,
  histories: Histories,
  page: Journal["page"],
  runId: string
): Effect.fn.Return<Option.Option<DuePart>, StoreError | SqlError> {
  const rows = yield* withParts(sql, runId)
  const found = rows[0]
  if (found === undefined) return Option.none()
  yield* readable(found.format)
  const bodies = rows.flatMap(({ body }) => body ?? [])
  const { mark, state: start } = yield* written(sql, codec, histories, found.run, bodies)
  let state: RunState | undefined = start
  for (;;) {
    const { isLast, records, unsealed } = yield* page(runId, state?.revision ?? 0)
    yield* noteUnsealed(runId, { unsealed })
    state = yield* foldFrom(state, records)
    if (isLast) break
  }
  if (state !== undefined && state.revision >= found.revision) return Option.some({ state, mark })
  // The run may have been removed in the meantime.
  if ((yield* find(sql, runId)) === undefined) return Option.none()
  return yield* damaged(runId, (state?.revision ?? 0) + 1, "it is missing")
})

const remove = Effect.fnUntraced(function* (sql: SqlClient, run: number) {
  for (const table of ["kernai_journal", "kernai_parts"]) {
    yield* sql`DELETE FROM ${sql(table)} WHERE entry > ${entry(sql, run, 0)} AND entry < ${entry(sql, run + 1, 0)}`
  }
  for (const table of ["kernai_words", "kernai_unindexed", "kernai_labels"]) {
    yield* sql`DELETE FROM ${sql(table)} WHERE run = ${run}`
  }
})
