/**
 * Keeps the earlier messages of conversations in a table that all runs share; see `SharedHistory`.
 *
 * A run is stored in one transaction with the chunks that it brings. On PostgreSQL a foreign key keeps a chunk whose run
 * is stored while another process removes the last run before it: one of the two is refused.
 */

import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Result from "effect/Result"
import { createHash } from "node:crypto"
import type { StoreError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import * as RunCodec from "../../RunCodec.ts"
import * as SharedHistory from "../../store-kit/SharedHistory.ts"
import type { ChunkRow } from "./runTables.ts"
import { orLost } from "./sqlFault.ts"

/** The chunks of a database. */
export interface Histories {
  readonly cut: SharedHistory.Cut
  /** Returns the rows of those chunks that are not stored yet. */
  readonly missing: (
    chunks: ReadonlyArray<SharedHistory.Chunk>
  ) => Effect.Effect<ReadonlyArray<ChunkRow>, StoreError | SqlError>
  /** Returns the messages that a text refers to. */
  readonly earlier: (text: string | undefined) => Effect.Effect<ReadonlyArray<Message>, SqlError>
  /** Removes the chunks that nothing refers to any more, from a chunk backwards. */
  readonly release: (chunk: string) => Effect.Effect<void, SqlError>
}

/** Creates the chunks on a client without transformations. */
export const make = (sql: SqlClient, codec: RunCodec.RunCodec): Histories => ({
  cut: SharedHistory.make((text) => createHash("sha256").update(text).digest("hex")),
  missing: (chunks) => missing(sql, chunks),
  earlier: (text) => earlier(sql, codec, text),
  release: (chunk) => release(sql, chunk)
})

/** Encodes a chunk as a row. */
export const rowOf = (chunk: SharedHistory.Chunk): Result.Result<ChunkRow, StoreError> =>
  Result.map(SharedHistory.encode(chunk), (body) => ({
    id: chunk.id,
    before: chunk.before ?? null,
    messages: chunk.messages,
    body
  }))

const missing = Effect.fnUntraced(function* (sql: SqlClient, chunks: ReadonlyArray<SharedHistory.Chunk>) {
  // The chunks before a stored one are stored, too.
  let start = chunks.length
  while (start > 0) {
    const page = chunks.slice(Math.max(0, start - newest), start)
    const rows = yield* sql<{ readonly id: string }>`SELECT id FROM kernai_histories WHERE ${sql.in(
      "id",
      page.map(({ id }) => id)
    )}`
    const stored = new Set(rows.map(({ id }) => id))
    const last = page.findLastIndex(({ id }) => stored.has(id))
    start -= page.length - 1 - last
    if (last >= 0) break
  }
  return yield* Effect.forEach(chunks.slice(start), (chunk) => Effect.fromResult(rowOf(chunk)))
})

/** The number of chunks that are looked for at once. Usually all but the last one or two are stored. */
const newest = 8

const earlier = Effect.fnUntraced(function* (sql: SqlClient, codec: RunCodec.RunCodec, text: string | undefined) {
  const wanted = text === undefined ? undefined : RunCodec.earlierIn(text)
  if (wanted === undefined) return []
  // Their numbers of messages decrease, so damaged rows that refer to each other in a circle end, too.
  const rows = yield* sql<{ readonly id: string; readonly body: string }>`
    WITH RECURSIVE chain AS (
      SELECT id, before, messages, body FROM kernai_histories WHERE id = ${wanted.chunk}
      UNION ALL
      SELECT h.id, h.before, h.messages, h.body
      FROM kernai_histories AS h JOIN chain ON h.id = chain.before AND h.messages < chain.messages
    )
    SELECT id, body FROM chain`
  const bodies = new Map(rows.map(({ body, id }) => [id, body]))
  return yield* SharedHistory.read(wanted, (id) => {
    const body = bodies.get(id)
    return Effect.succeed(body === undefined ? undefined : Result.getOrUndefined(codec.decodeChunk(body)))
  })
})

const release = Effect.fnUntraced(function* (sql: SqlClient, chunk: string) {
  for (let id: string | null | undefined = chunk; id != null;) {
    const removed: ReadonlyArray<{ readonly before: string | null }> = yield* sql<{ readonly before: string | null }>`
      DELETE FROM kernai_histories WHERE id = ${id}
      AND NOT EXISTS (SELECT 1 FROM kernai_runs WHERE history = ${id})
      AND NOT EXISTS (SELECT 1 FROM kernai_histories AS h WHERE h.before = ${id})
      RETURNING before`.pipe(
      sql.withTransaction,
      orLost,
      // A run that refers to it is being stored.
      Effect.catchIf(isReferredTo, () => Effect.succeed([]))
    )
    id = removed[0]?.before
  }
})

/** Returns true if a foreign key refused a statement. */
export const isReferredTo = ({ reason }: SqlError): boolean => reason._tag === "ConstraintError"
