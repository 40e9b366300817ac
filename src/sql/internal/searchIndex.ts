/**
 * The index of the texts that a search compares, the same in every database.
 *
 * A trigger marks a text as unindexed when it is written, whichever version of kernai writes it. That is one small row of
 * each append with a text, and a search compares these texts, too. Once there are enough for a block, they are indexed
 * in the background.
 *
 * The index names runs whose texts may contain words, and a search compares their texts. So a block may hold runs that
 * were removed, or whose texts have changed and are unindexed again.
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import * as Grams from "./grams.ts"

/** The index of a database. */
export interface SearchIndex {
  /**
   * Returns a query of the runs that may mention all words, as `found`. Undefined if these are too many, if too many
   * texts are unindexed, or if no word has two characters: then the list of all runs is as fast.
   */
  readonly candidates: (words: ReadonlyArray<string>) => Effect.Effect<Fragment | undefined, SqlError>
  /** Counts a text that this process has written. */
  readonly written: () => void
  /** Removes the blocks of removed runs, whose other texts are unindexed then. */
  readonly removed: (runs: Arr.NonEmptyReadonlyArray<number>) => Effect.Effect<void, SqlError>
}

/** Creates the index, which grows while its scope is open. */
export const make = Effect.fnUntraced(function* (sql: SqlClient): Effect.fn.Return<SearchIndex, never, Scope.Scope> {
  const nudges = yield* Queue.sliding<void>(1)
  let texts = 0
  // A failure, such as that of a role that may only read, makes searches slower.
  const grown = Effect.ignore(grow(sql), { log: "Debug", message: "texts were not indexed" })
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Queue.take(nudges), grown)))
  return {
    candidates: (words) => {
      Queue.offerUnsafe(nudges, undefined)
      return candidates(sql, words)
    },
    written: () => {
      texts += 1
      if (texts % (Grams.blockSize / 2) === 0) Queue.offerUnsafe(nudges, undefined)
    },
    removed: (runs) => removed(sql, runs)
  }
})

// ---------------------------------------------------------------- searching

const candidates = Effect.fnUntraced(function* (
  sql: SqlClient,
  words: ReadonlyArray<string>
): Effect.fn.Return<Fragment | undefined, SqlError> {
  const slices = Grams.slicesOf(words)
  if (slices.length === 0) return undefined
  // Read before the blocks, so that none that is added in the meantime hides them.
  const unindexed = yield* sql<{ readonly run: number }>`SELECT run FROM kernai_unindexed LIMIT ${mostUnindexed + 1}`
  if (unindexed.length > mostUnindexed) return undefined
  const rows = yield* sql<{ readonly block: number; readonly bits: Uint8Array }>`
    SELECT b.block, s.bits FROM kernai_search_blocks AS b CROSS JOIN (${numbers(sql, slices)}) AS slice
    JOIN kernai_search_slices AS s
      ON s.entry = ${firstSlice(sql, sql`b.block`)} + (slice.value & (b.slices - 1))`
  const found = new Map<number, Array<Uint8Array>>()
  for (const { bits, block } of rows) found.set(block, [...(found.get(block) ?? []), bits])
  const places = new Map<number, ReadonlyArray<number>>()
  let count = 0
  for (const [block, slices] of found) {
    const common = Grams.placesIn(slices)
    if (common.length > 0) places.set(block, common)
    count += common.length
  }
  if (count > mostCandidates) return undefined
  const blocks = yield* sql<{ readonly block: number; readonly runs: Uint8Array }>`
    SELECT block, runs FROM kernai_search_blocks WHERE block IN (${numbers(sql, [...places.keys()])})`
  const indexed = blocks.flatMap(({ block, runs }) => {
    // Bytes from a database may start at any address, numbers may not.
    const all = new Uint32Array(new Uint8Array(runs).buffer)
    return (places.get(block) ?? []).map((place) => all[place] ?? 0)
  })
  const runs = new Set([...unindexed.map(({ run }) => run), ...indexed])
  return sql`SELECT value AS found FROM (${numbers(sql, [...runs])}) AS runs`
})

// ---------------------------------------------------------------- indexing

/** Adds blocks while enough texts are unindexed. */
const grow = Effect.fnUntraced(function* (sql: SqlClient) {
  while (yield* addBlock(sql)) yield* Effect.sleep(pause)
})

/** A text to index. `change` is another number after each change. */
interface Unindexed {
  readonly run: number
  readonly change: number
  readonly length: number
}

/** Indexes the texts of a block. Returns false if there are too few, or if another process was faster. */
const addBlock = Effect.fnUntraced(function* (sql: SqlClient): Effect.fn.Return<boolean, SqlError> {
  const texts = yield* sql<Unindexed>`
    SELECT u.run, u.change, coalesce(length(w.body), 0) AS length
    FROM kernai_unindexed AS u LEFT JOIN kernai_words AS w ON w.run = u.run ORDER BY u.run LIMIT ${Grams.blockSize}`
  if (!Arr.isReadonlyArrayNonEmpty(texts) || texts.length < Grams.blockSize) return false
  const runs = texts.map(({ run }) => run)
  const slices = Grams.make(texts.reduce((sum, { length }) => sum + length, 0) / texts.length)
  const places = new Map(runs.map((run, place) => [run, place]))
  for (const some of Arr.chunksOf(runs, pageOfTexts)) {
    const rows = yield* sql<{ readonly run: number; readonly body: string }>`
      SELECT run, body FROM kernai_words WHERE run IN (${numbers(sql, some)})`
    for (const { body, run } of rows) Grams.add(slices, places.get(run) ?? 0, body)
    yield* Effect.yieldNow
  }
  return yield* store(sql, texts, slices)
})

/** Stores a block. Texts that changed or were marked in the meantime stay unindexed. */
const store = (
  sql: SqlClient,
  texts: Arr.NonEmptyReadonlyArray<Unindexed>,
  { bits, count }: Grams.Slices
): Effect.Effect<boolean, SqlError> =>
  Effect.gen(function* () {
    const [first, last] = [texts[0].run, Arr.lastNonEmpty(texts).run]
    const [indexed, changes] = [texts.map(({ run }) => run), texts.map(({ change }) => change)]
    const done = yield* sql`
      DELETE FROM kernai_unindexed
      WHERE run IN (${numbers(sql, indexed)}) AND change IN (${numbers(sql, changes)}) RETURNING run`
    if (done.length === 0) return false
    const runs = new Uint8Array(Uint32Array.from(indexed).buffer)
    const blocks = yield* sql<{ readonly block: number }>`
      INSERT INTO kernai_search_blocks ${sql.insert({ first_run: first, last_run: last, slices: count, runs })}
      RETURNING block`
    for (const { block } of blocks) {
      for (let slice = 0; slice < count; slice += slicesAtOnce) {
        const some = bits.subarray(slice * Grams.sliceBytes, (slice + slicesAtOnce) * Grams.sliceBytes)
        yield* sql`
          INSERT INTO kernai_search_slices (entry, bits)
          WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${Math.min(count, slicesAtOnce) - 1})
          SELECT ${firstSlice(sql, sql`${block}`)} + ${slice} + i,
            substr(${bytes(sql, some)}, i * ${Grams.sliceBytes} + 1, ${Grams.sliceBytes})
          FROM n`
      }
    }
    return true
  }).pipe(sql.withTransaction)

// ---------------------------------------------------------------- removing

const removed = Effect.fnUntraced(function* (sql: SqlClient, runs: Arr.NonEmptyReadonlyArray<number>) {
  const few = Grams.blockSize / 2
  const blocks = yield* sql<{ readonly block: number; readonly first_run: number; readonly last_run: number }>`
    SELECT block, first_run, last_run FROM kernai_search_blocks AS b
    WHERE first_run <= ${Math.max(...runs)} AND last_run >= ${Math.min(...runs)} AND ${few} > (
      SELECT count(*) FROM (
        SELECT 1 FROM kernai_words WHERE run BETWEEN b.first_run AND b.last_run LIMIT ${few}
      ) AS kept
    )`
  for (const { block, first_run, last_run } of blocks) {
    yield* sql`
      INSERT INTO kernai_unindexed (run, change)
      SELECT run, 0 FROM kernai_words WHERE run BETWEEN ${first_run} AND ${last_run} ON CONFLICT (run) DO NOTHING`
    yield* sql`DELETE FROM kernai_search_blocks WHERE block = ${block}`
    yield* sql`
      DELETE FROM kernai_search_slices
      WHERE entry >= ${firstSlice(sql, sql`${block}`)} AND entry < ${firstSlice(sql, sql`${block + 1}`)}`
  }
})

// ---------------------------------------------------------------- helpers

/** Returns a query of numbers as `value`. */
const numbers = (sql: SqlClient, values: ReadonlyArray<number>): Fragment =>
  sql.onDialectOrElse({
    pg: () =>
      sql`SELECT CAST(value AS INTEGER) AS value FROM json_array_elements_text(${JSON.stringify(values)}::json)`,
    orElse: () => sql`SELECT value FROM json_each(${JSON.stringify(values)})`
  })

/** Returns the key of the first slice of a block. */
const firstSlice = (sql: SqlClient, block: Fragment): Fragment =>
  sql`(CAST(${block} AS BIGINT) << ${sql.literal(String(Grams.sliceBits))})`

const bytes = (sql: SqlClient, value: Uint8Array): Fragment =>
  sql.onDialectOrElse({ pg: () => sql`CAST(${value} AS BYTEA)`, orElse: () => sql`${value}` })

/** Texts that a search compares at most, because the index names them or because they are unindexed. */
const mostCandidates = 20_000
const mostUnindexed = 2 * Grams.blockSize

/** Texts that are read at once, and slices that are written at once: neither takes a process for long. */
const pageOfTexts = 64
const slicesAtOnce = 1024

/** Leaves a process time for other work, when it indexes many texts. */
const pause = "20 millis"
