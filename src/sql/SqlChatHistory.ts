/**
 * Keeps conversations in a database.
 *
 * Messages appended together are one row, so they are stored as a whole or not at all, and a key is used once. Works on
 * any `SqlClient` of SQLite or PostgreSQL. Many conversations may share the table, and many processes a conversation.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import * as Stream from "effect/Stream"
import * as ChatHistory from "../ChatHistory.ts"
import * as MessageText from "../store-kit/MessageText.ts"
import { StoreError } from "../KernelError.ts"
import type { Message } from "../Message.ts"
import { failed } from "./internal/sqlFault.ts"
import * as Key from "./internal/key.ts"
import { migrate } from "./internal/migrate.ts"
import { onPg, onSqlite } from "./internal/ownClient.ts"
import type * as Postgres from "./internal/postgres.ts"
import type * as SqliteClient from "./SqliteClient.ts"

/** Rows read at once. */
const page = 100

interface Row {
  readonly id: number
  readonly body: string
}

/**
 * Creates one conversation in the database in context. Creates the table if necessary.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  conversation: string
): Effect.fn.Return<ChatHistory.ChatHistoryShape, StoreError, SqlClient.SqlClient> {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  yield* migrate(sql, "kernai_chat_migrations", {
    "0001_messages": sql.onDialectOrElse({
      pg: () => table("INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY", 'TEXT COLLATE "C"'),
      orElse: () => table("INTEGER PRIMARY KEY AUTOINCREMENT", "TEXT")
    })
  })
  const mine = sql`conversation = ${Key.make(conversation)}`

  const append: ChatHistory.ChatHistoryShape["append"] = Effect.fnUntraced(function* (given, key) {
    const messages = "role" in given ? [given] : given
    if (messages.length === 0 && key === undefined) return
    const body = yield* Effect.fromResult(MessageText.encode(messages))
    const row = {
      conversation: Key.make(conversation),
      append_key: key === undefined ? null : Key.make(key),
      count: messages.length,
      body
    }
    yield* guarded("append", sql`INSERT INTO kernai_messages ${sql.insert(row)} ON CONFLICT DO NOTHING`)
  })

  const stream: ChatHistory.ChatHistoryShape["stream"] = Stream.paginate(0, (after) =>
    guarded(
      "read messages",
      sql<Row>`
      SELECT id, body FROM kernai_messages WHERE ${mine} AND id > ${after} ORDER BY id LIMIT ${page}
    `
    ).pipe(Effect.flatMap((rows) => Effect.map(messagesOf(rows), (messages) => [messages, next(rows)] as const)))
  )

  return {
    append,
    stream,
    toArray: Stream.runCollect(stream),
    size: Effect.map(
      guarded(
        "read messages",
        sql<{ size: number }>`
        SELECT CAST(COALESCE(SUM(count), 0) AS INTEGER) AS size FROM kernai_messages WHERE ${mine}
      `
      ),
      (rows) => rows[0]?.size ?? 0
    ),
    last: (n) => last(sql, mine, n),
    clear: Effect.asVoid(guarded("clear", sql`DELETE FROM kernai_messages WHERE ${mine}`))
  }
})

/**
 * Keeps a conversation in the database in context.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (conversation: string): Layer.Layer<ChatHistory.ChatHistory, StoreError, SqlClient.SqlClient> =>
  Layer.effect(ChatHistory.ChatHistory, make(conversation))

/**
 * Keeps a conversation in a SQLite file, which may be that of a run store.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSqlite = (
  conversation: string,
  file: string | SqliteClient.Options
): Layer.Layer<ChatHistory.ChatHistory, StoreError> => onSqlite(ChatHistory.ChatHistory, file, make(conversation))

export type {
  /**
   * Options of the PostgreSQL connection.
   *
   * @category models
   * @since 0.1.0
   */
  Options as PgOptions
} from "./internal/postgres.ts"

/**
 * Keeps a conversation in PostgreSQL, in a database which may be that of a run store. Needs the package
 * `@effect/sql-pg`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerPg = (
  conversation: string,
  options: Postgres.Options
): Layer.Layer<ChatHistory.ChatHistory, StoreError> => onPg(ChatHistory.ChatHistory, options, make(conversation))

// ---------------------------------------------------------------- helpers

/** Returns the last `n` messages of a conversation, read from its end. */
const last = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, mine: Fragment, n: number) {
  const wanted = n > 0 ? Math.ceil(n) : 0
  const found: Array<ReadonlyArray<Message>> = []
  let before: number | undefined
  for (let count = 0; count < wanted;) {
    const until = before === undefined ? sql`` : sql`AND id < ${before}`
    const rows = yield* guarded(
      "read messages",
      sql<Row>`
      SELECT id, body FROM kernai_messages WHERE ${mine} ${until} ORDER BY id DESC LIMIT ${Math.min(page, wanted)}
    `
    )
    for (const row of rows) {
      const messages = yield* Effect.fromResult(MessageText.decode(row.body))
      found.push(messages)
      count += messages.length
      before = row.id
      if (count >= wanted) break
    }
    if (rows.length < Math.min(page, wanted)) break
  }
  return wanted === 0 ? [] : found.toReversed().flat().slice(-wanted)
})

const table = (id: string, text: string) => [
  `CREATE TABLE kernai_messages (
    id ${id},
    conversation ${text} NOT NULL,
    append_key ${text},
    count INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (conversation, append_key)
  )`,
  "CREATE INDEX kernai_messages_order ON kernai_messages (conversation, id)"
]

const guarded = <A>(operation: string, effect: Effect.Effect<A, SqlError>): Effect.Effect<A, StoreError> =>
  Effect.catchTag(effect, "SqlError", failed(operation))

const messagesOf = (rows: ReadonlyArray<Row>): Effect.Effect<ReadonlyArray<Message>, StoreError> =>
  Effect.map(
    Effect.forEach(rows, (row) => Effect.fromResult(MessageText.decode(row.body))),
    (lists) => lists.flat()
  )

const next = (rows: ReadonlyArray<Row>): Option.Option<number> =>
  rows.length < page ? Option.none() : Option.fromUndefinedOr(rows.at(-1)?.id)
