/**
 * Reading journals from tables.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { foldFrom, readAfter } from "../../internal/store/journalRules.ts"
import type { StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { RunState } from "../../RunState.ts"
import { corrupt, readable } from "./sqlFault.ts"
import * as Key from "./key.ts"
import * as Tables from "./runTables.ts"

/** A run as it is found in its table. */
export interface Found {
  readonly run: number
  readonly revision: number
  readonly format: number
}

/** A state, and how far it is written down in parts. */
export interface Loaded {
  readonly state: RunState
  readonly mark: RunCodec.Mark
}

/** Records or bodies read at once. */
export const PAGE = 200

/** What there is to read. */
export type Journal = ReturnType<typeof make>

/** Reads with a client, which transforms nothing. */
export const make = (sql: SqlClient, codec: RunCodec.RunCodec) => {
  const find = (id: string): Effect.Effect<Found | undefined, SqlError> =>
    Effect.map(
      sql<Found>`
        SELECT run, format, CAST(coalesce(${sql.literal(Tables.lastEntry)}, 0) - (CAST(run AS BIGINT) << 32) AS INTEGER) AS revision
        FROM kernai_runs AS r WHERE id = ${Key.make(id)}`,
      (rows) => rows[0]
    )

  /** The key of an entry: of a run and revision. */
  const entry = (run: number | Fragment, revision: number): Fragment =>
    sql`(CAST(${run} AS BIGINT) << 32) + CAST(${revision} AS BIGINT)`

  /** The number of a run at the time of a query: SQLite may give that of one that was removed to another. */
  const numberOf = (id: string): Fragment => sql`(SELECT run FROM kernai_runs WHERE id = ${Key.make(id)})`

  /** The texts of a run after a revision. */
  const bodies = (
    table: "kernai_journal" | "kernai_parts",
    run: number | Fragment,
    after: number,
    limit: number
  ): Effect.Effect<ReadonlyArray<string>, SqlError> =>
    Effect.map(
      sql<{ readonly body: string }>`
        SELECT body FROM ${sql(table)} WHERE entry > ${entry(run, after)} AND entry < ${entry(run, 2 ** 32)}
        ORDER BY entry LIMIT ${limit}`,
      (rows) => rows.map((row) => row.body)
    )

  /** The next records of a run. One that cannot be read fails the page that begins with it. */
  const page = Effect.fnUntraced(function* (runId: string, after: number) {
    const texts = yield* bodies("kernai_journal", numberOf(runId), after, PAGE)
    const { fault, records } = readAfter(after, texts, codec.decodeRecord)
    if (fault !== undefined && records.length === 0) return yield* fault
    return { records, isLast: fault === undefined && texts.length < PAGE }
  })

  /** The state as far as it is written down. Parts are only a shortcut: those that cannot be read are removed. */
  const written = Effect.fnUntraced(function* (run: number) {
    const parts = yield* bodies("kernai_parts", run, 0, Number.MAX_SAFE_INTEGER)
    const state = Result.getOrUndefined(codec.decodeState(parts))
    if (state !== undefined) return { state, mark: { turns: state.turns.length, prompt: state.prompt } }
    if (parts.length > 0) {
      yield* sql`DELETE FROM kernai_parts WHERE entry > ${entry(run, 0)} AND entry < ${entry(run + 1, 0)}`
    }
    return { state, mark: RunCodec.start }
  })

  const load = Effect.fnUntraced(function* (
    runId: string
  ): Effect.fn.Return<Option.Option<Loaded>, StoreError | SqlError> {
    const found = yield* find(runId)
    if (found === undefined) return Option.none()
    yield* readable(found.format)
    const { mark, state: start } = yield* written(found.run)
    let state = start
    for (;;) {
      const { isLast, records } = yield* page(runId, state?.revision ?? 0)
      state = yield* foldFrom(state, records)
      if (isLast) break
    }
    if (state !== undefined && state.revision >= found.revision) return Option.some({ state, mark })
    // It may have been removed meanwhile.
    if ((yield* find(runId)) === undefined) return Option.none()
    return yield* corrupt(`records of run '${runId}' are missing`)
  })

  /** Reads on from a revision, also in a run that is not there yet. */
  const reader = (runId: string) => (after: number) => page(runId, after)

  return { find, entry, bodies, load, reader }
}
