/**
 * Appends to the journals in a database.
 */

import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Cancellations, Followers } from "../../store-kit/Polling.ts"
import { areStored, searchText, storedStatus } from "../../store-kit/StoreRules.ts"
import type { DuePart, Marks } from "../../store-kit/StateParts.ts"
import { ConcurrentAppendError, RunExists, type StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import { turnCount } from "../../RunState.ts"
import * as RunStore from "../../RunStore.ts"
import type { SqliteClient } from "../SqliteClient.ts"
import type { Announce } from "./announcer.ts"
import type { AppendRow } from "./groupAppend.ts"
import * as Key from "./key.ts"
import * as Tables from "./runTables.ts"
import { failed, readable } from "./sqlFault.ts"
import { facts } from "./sqlHeads.ts"
import { appendAtOnce } from "./sqliteAppend.ts"
import type { Journal } from "./sqlJournal.ts"

/** A database, with the cached state of its runs. */
export interface Database {
  readonly sql: SqlClient
  readonly journal: Journal
  readonly marks: Marks
  readonly followers: Followers
  readonly cancellations: Cancellations
  /** Appends a row, unless it can be appended at once. */
  readonly appendRow: AppendRow
  /** Announces a run with new records to other processes, if the database can. */
  readonly announce: Announce | undefined
  /** Runs a statement at once, if the client can. */
  readonly attempt: SqliteClient["attempt"] | undefined
}

/** Appends records (see `RunStore.append`). */
export const append = (
  database: Database,
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  state: RunState
): Effect.Effect<void, RunExists | ConcurrentAppendError | StoreError> => {
  const refused = RunStore.refusal(records, state)
  if (refused !== undefined) return Effect.fail(refused)
  const encoded = rowOf(records, state)
  if (Result.isFailure(encoded)) return Effect.fail(encoded.failure)
  const row = encoded.success
  if (appendAtOnce(database.attempt, row)) return afterwards(database, records, state, row)
  return database.appendRow(row).pipe(
    Effect.flatMap((isDone) => (isDone ? Effect.void : unlessStored(database, records, row))),
    Effect.catchTag("SqlError", failed("append")),
    Effect.flatMap(() => afterwards(database, records, state, row))
  )
}

const rowOf = (records: Arr.NonEmptyReadonlyArray<RunRecord>, state: RunState): Result.Result<Tables.Row, StoreError> =>
  Result.flatMap(RunCodec.encodeRecords(records), (body) =>
    Result.map(RunCodec.encodeStatus(state.status), (detail) => {
      const isNew = records[0].revision === 1
      return {
        id: Key.make(state.runId),
        first: records[0].revision,
        records: records.length,
        body,
        turns: turnCount(state),
        detail,
        at: state.updatedAt,
        status: storedStatus(state.status),
        ...(isNew ? { origin: originOf(state) } : {}),
        ...(isNew || state.status.type === "completed" ? { words: searchText(state) } : {})
      }
    })
  )

const originOf = (state: RunState): Tables.Origin => ({
  root: Key.make(state.rootRunId),
  parent: state.parentRunId === undefined ? null : Key.make(state.parentRunId),
  agent: Key.make(state.agent),
  caller: state.caller === undefined ? null : Key.make(state.caller.id),
  tenant: state.caller?.tenant === undefined ? null : Key.make(state.caller.tenant),
  labels: Tables.labelKeys(state.caller?.labels),
  facts: facts(RunStore.headOf(state)),
  created_at: state.createdAt
})

/** Succeeds if the records of a rejected row are stored already. */
const unlessStored = Effect.fnUntraced(function* (
  { journal }: Database,
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  { first }: Tables.Row
): Effect.fn.Return<void, RunExists | ConcurrentAppendError | StoreError | SqlError> {
  const { runId } = records[0]
  const found = yield* journal.find(runId)
  if (found !== undefined) {
    yield* readable(found.format)
    if (areStored(records, yield* journal.between(runId, first - 1, records.length))) return
    if (first === 1) return yield* new RunExists({ runId })
  }
  return yield* new ConcurrentAppendError({ runId, expected: first - 1, actual: found?.revision ?? 0 })
})

// ---------------------------------------------------------------- after an append

/** Wakes followers once the append is committed, and writes a part of the state if one is due. Usually does nothing. */
const afterwards = (
  database: Database,
  records: ReadonlyArray<RunRecord>,
  state: RunState,
  { body, first, id }: Tables.Row
): Effect.Effect<void> => {
  const { announce, cancellations, followers, marks, sql } = database
  if (first === 1) marks.set(state, RunCodec.start)
  if (state.status.type === "cancelled") cancellations.complete(id)
  const part = marks.due(records, state, body.length)
  const written = part === undefined ? Effect.void : writePart(database, part)
  if (announce === undefined && !followers.has(id)) return written
  const wake = Effect.sync(() => {
    followers.wake(id)
    announce?.(id)
  })
  return Effect.andThen(sql.afterCommit(wake), written)
}

/** Writes a part of the state. A failure only makes the next load slower. */
const writePart = ({ marks, sql }: Database, part: DuePart): Effect.Effect<void> =>
  Effect.fromResult(RunCodec.encodeState(part.state, part.mark)).pipe(
    Effect.flatMap(
      (body) => sql`
        INSERT INTO kernai_parts (entry, body)
        SELECT (CAST(run AS BIGINT) << 32) + CAST(${part.state.revision} AS BIGINT), ${body} FROM kernai_runs
        WHERE id = ${Key.make(part.state.runId)}`
    ),
    Effect.matchEffect({
      onFailure: (error) => Effect.logDebug("a part of a run was not written", error),
      onSuccess: () => Effect.sync(() => marks.written(part))
    })
  )
