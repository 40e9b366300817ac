/**
 * Appends to the journals in a database.
 */

import type * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Cancellations, Followers } from "../../store-kit/Polling.ts"
import { areStored, storedStatus } from "../../store-kit/StoreRules.ts"
import * as StoreSearch from "../../store-kit/StoreSearch.ts"
import * as SharedHistory from "../../store-kit/SharedHistory.ts"
import type { DuePart, Marks } from "../../store-kit/StateParts.ts"
import { ConcurrentAppendError, RunExists, type StoreError } from "../../KernelError.ts"
import * as RunCodec from "../../RunCodec.ts"
import type { RunRecord, RunState } from "../../RunState.ts"
import { turnCount } from "../../RunState.ts"
import * as RunStore from "../../RunStore.ts"
import type { SqliteClient } from "../SqliteClient.ts"
import { type Announce, cancelledMark } from "./announcer.ts"
import type { AppendRow } from "./groupAppend.ts"
import * as Key from "./key.ts"
import * as Tables from "./runTables.ts"
import { failed, readable } from "./sqlFault.ts"
import { spentOf } from "./sqlSpending.ts"
import { deadlineOf, facts } from "./sqlHeads.ts"
import { appendAtOnce } from "./sqliteAppend.ts"
import * as Histories from "./sqlHistories.ts"
import type { Journal } from "./sqlJournal.ts"
import type { SearchIndex } from "./searchIndex.ts"

/** A database, with the cached state of its runs. */
export interface Database {
  readonly sql: SqlClient
  readonly journal: Journal
  readonly histories: Histories.Histories
  readonly index: SearchIndex
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
  const chunks = database.histories.cut(records)
  if (Result.isFailure(chunks)) return Effect.fail(chunks.failure)
  const encoded = rowOf(records, state, SharedHistory.earlierOf(chunks.success))
  if (Result.isFailure(encoded)) return Effect.fail(encoded.failure)
  const row = encoded.success
  if (appendAtOnce(database.attempt, row)) return afterwards(database, records, state, row)
  return rowAppended(database, row, chunks.success).pipe(
    Effect.flatMap((isDone) => (isDone ? Effect.void : unlessStored(database, records, row))),
    Effect.catchTag("SqlError", failed("append")),
    Effect.flatMap(() => afterwards(database, records, state, row))
  )
}

/** Appends a row with the chunks that are not stored yet. */
const rowAppended = (
  { appendRow, histories }: Database,
  row: Tables.Row,
  shared: ReadonlyArray<SharedHistory.Chunk>
): Effect.Effect<boolean, StoreError | SqlError> => {
  const { origin } = row
  if (origin === undefined || shared.length === 0) return appendRow(row)
  const withChunks = (chunks: ReadonlyArray<Tables.ChunkRow>) => appendRow({ ...row, origin: { ...origin, chunks } })
  return Effect.flatMap(histories.missing(shared), withChunks).pipe(
    // Another process removed a chunk in the meantime.
    Effect.catchIf(isRefused, () =>
      Effect.flatMap(
        Effect.forEach(shared, (chunk) => Effect.fromResult(Histories.rowOf(chunk))),
        withChunks
      )
    )
  )
}

const isRefused = (error: StoreError | SqlError): error is SqlError =>
  error._tag === "SqlError" && Histories.isReferredTo(error)

const rowOf = (
  records: Arr.NonEmptyReadonlyArray<RunRecord>,
  state: RunState,
  earlier: RunCodec.Earlier | undefined
): Result.Result<Tables.Row, StoreError> =>
  Result.flatMap(RunCodec.encodeRecords(records, earlier), (body) =>
    Result.map(RunCodec.encodeStatus(state.status), (detail) => {
      const isNew = records[0].revision === 1
      const spent = spentOf(state)
      return {
        id: Key.make(state.runId),
        first: records[0].revision,
        records: records.length,
        body,
        turns: turnCount(state),
        detail,
        at: state.updatedAt,
        status: storedStatus(state.status),
        due_at: deadlineOf(state),
        format: earlier === undefined ? RunCodec.oldestFormat : RunCodec.format,
        ...(isNew ? { origin: originOf(state, earlier) } : {}),
        ...(spent === undefined ? {} : { spent }),
        ...(isNew || state.status.type !== "running" ? { words: StoreSearch.textOf(state) } : {})
      }
    })
  )

const originOf = (state: RunState, earlier: RunCodec.Earlier | undefined): Tables.Origin => ({
  root: Key.make(state.rootRunId),
  parent: state.parentRunId === undefined ? null : Key.make(state.parentRunId),
  agent: Key.make(state.agent),
  caller: state.caller === undefined ? null : Key.make(state.caller.id),
  tenant: state.caller?.tenant === undefined ? null : Key.make(state.caller.tenant),
  labels: Tables.labelKeys(state.caller?.labels),
  facts: facts(RunStore.headOf(state)),
  created_at: state.createdAt,
  history: earlier?.chunk ?? null,
  chunks: []
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
  { body, first, id, words }: Tables.Row
): Effect.Effect<void> => {
  const { announce, cancellations, followers, index, marks, sql } = database
  if (words !== undefined) index.written()
  if (first === 1) marks.set(state, RunCodec.start)
  if (state.status.type === "cancelled") cancellations.complete(id)
  const part = marks.due(records, state, body.length)
  const written = part === undefined ? Effect.void : writePart(database, part)
  if (announce === undefined && !followers.has(id)) return written
  const { type } = state.status
  const wake = Effect.sync(() => {
    followers.wake(id)
    announce?.(id, type !== "running")
    if (type === "cancelled") announce?.(cancelledMark + id, true)
  })
  return Effect.andThen(sql.afterCommit(wake), written)
}

/** Writes a part of the state. A failure only makes the next load slower. */
const writePart = (database: Database, part: DuePart): Effect.Effect<void> => {
  const { marks, sql } = database
  return partOf(database, part).pipe(
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
}

/** Encodes a part of a state. The first one refers to the earlier messages as its run does. */
const partOf = Effect.fnUntraced(function* ({ journal }: Database, { mark, state }: DuePart) {
  const earlier = mark === RunCodec.start ? yield* journal.earlier(state.runId) : undefined
  return yield* Effect.fromResult(RunCodec.encodeState(state, mark, earlier))
})
