/**
 * Keeps media in a database, so that a run can continue in another process.
 *
 * A medium is one row, so it is stored as a whole or not at all, and its id is used once. Bytes are stored unchanged,
 * with their digest. Works on any `SqlClient` of SQLite or PostgreSQL, also in the database of a `SqlRunStore`; several
 * processes may share it.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { createHash } from "node:crypto"
import * as Medium from "../store-kit/Medium.ts"
import * as Buckets from "../store-kit/MediaScope.ts"
import type { LimitExceeded, StoreError } from "../KernelError.ts"
import type * as Media from "../MediaStore.ts"
import { MediaStore, type StoredMedia } from "../MediaStore.ts"
import { failed, orLost } from "./internal/sqlFault.ts"
import * as Key from "./internal/key.ts"
import { migrate } from "./internal/migrate.ts"
import { onPg, onSqlite } from "./internal/ownClient.ts"
import type * as Postgres from "./internal/postgres.ts"
import type * as SqliteClient from "./SqliteClient.ts"

/**
 * Options of a store.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** The only folder from which media given by path are read. Default: the current one. */
  readonly root?: string | undefined
}

/**
 * Creates a store on the database in context. Creates its table if necessary.
 *
 * `Limits.mediaBytes` bounds the media of each root run and those of the application.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = Effect.fnUntraced(function* (
  options: Options = {}
): Effect.fn.Return<Media.MediaStoreShape, StoreError, SqlClient.SqlClient | Scope.Scope> {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  yield* migrate(sql, "kernai_media_migrations", {
    "0001_media": sql.onDialectOrElse({
      pg: () =>
        table({ place: "INTEGER GENERATED ALWAYS AS IDENTITY PRIMARY KEY", text: 'TEXT COLLATE "C"', bytes: "BYTEA" }),
      orElse: () => table({ place: "INTEGER PRIMARY KEY AUTOINCREMENT", text: "TEXT", bytes: "BLOB" })
    })
  })
  const buckets: Buckets.Buckets = {
    application: bucket(sql, application),
    run: yield* Buckets.shared((rootRunId) => Effect.sync(() => Buckets.remembering(bucket(sql, keyOf(rootRunId))))),
    release: (rootRunIds) =>
      Effect.forEach(rootRunIds, (id) => sql`DELETE FROM kernai_media WHERE bucket = ${keyOf(id)}`, {
        discard: true
      }).pipe(Effect.catchTag("SqlError", failed("release media")))
  }
  return yield* Buckets.store(buckets, options.root ?? ".")
})

/**
 * Keeps media in the database in context.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options?: Options): Layer.Layer<MediaStore, StoreError, SqlClient.SqlClient> =>
  Layer.effect(MediaStore, make(options))

/**
 * Keeps media in a SQLite file, which may be that of a run store.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerSqlite = (file: string | (SqliteClient.Options & Options)): Layer.Layer<MediaStore, StoreError> =>
  onSqlite(MediaStore, file, make(typeof file === "string" ? {} : file))

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
 * Keeps media in PostgreSQL, in a database which may be that of a run store. Needs the package `@effect/sql-pg`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerPg = (options: Postgres.Options & Options): Layer.Layer<MediaStore, StoreError> =>
  onPg(MediaStore, options, make(options))

// ---------------------------------------------------------------- helpers

const table = (types: { readonly place: string; readonly text: string; readonly bytes: string }) => [
  `CREATE TABLE kernai_media (
    place ${types.place},
    bucket ${types.text} NOT NULL,
    id ${types.text} NOT NULL,
    size INTEGER NOT NULL,
    body TEXT NOT NULL,
    data ${types.bytes} NOT NULL,
    UNIQUE (bucket, id)
  )`,
  "CREATE INDEX kernai_media_size ON kernai_media (bucket, size)"
]

const application = "application"

const keyOf = (rootRunId: string): string => `run:${Key.make(rootRunId)}`

interface Row {
  readonly body: string
  readonly data: Uint8Array
}

const bucket = (sql: SqlClient.SqlClient, key: string): Buckets.Bucket => {
  const find = (id: string) =>
    Effect.flatMap(
      sql<Row>`SELECT body, data FROM kernai_media WHERE bucket = ${key} AND id = ${Key.make(id)}`,
      ([row]) => (row === undefined ? Effect.undefined : read(row))
    )

  // If a transaction does not lock the whole database, it locks the tree, so that two cannot both take the last space.
  const hold = sql.onDialectOrElse({
    pg: () => Effect.asVoid(sql`SELECT pg_advisory_xact_lock(hashtextextended(${`kernai_media ${key}`}, 0))`),
    orElse: () => Effect.void
  })

  const add = Effect.fnUntraced(function* (
    media: StoredMedia,
    limit: number
  ): Effect.fn.Return<StoredMedia, StoreError | LimitExceeded | SqlError> {
    yield* hold
    const there = yield* find(media.id)
    if (there !== undefined) return there
    const size = Buckets.sizeOf(media)
    const [sums] = yield* sql<{ bytes: number; media: number }>`
      SELECT CAST(coalesce(sum(size), 0) AS DOUBLE PRECISION) AS bytes, CAST(count(*) AS INTEGER) AS media
      FROM kernai_media WHERE bucket = ${key}`
    if ((sums?.bytes ?? 0) + size > limit) return yield* Buckets.full(limit)
    const data = media.source._tag === "Bytes" ? media.source.bytes : none
    const body = Medium.encode(media, digestOf(data), sums?.media ?? 0)
    yield* sql`INSERT INTO kernai_media ${sql.insert({ bucket: key, id: Key.make(media.id), size, body, data })}`
    return media
  })

  return {
    find: (id) => Effect.catchTag(find(id), "SqlError", failed("read media")),
    add: (media, limit) =>
      Effect.catchTag(orLost(sql.withTransaction(add(media, limit))), "SqlError", failed("keep media")),
    list: sql<Row>`SELECT body, data FROM kernai_media WHERE bucket = ${key} ORDER BY place`.pipe(
      Effect.flatMap(Effect.forEach(read)),
      Effect.catchTag("SqlError", failed("read media"))
    ),
    size: sql<{ size: number }>`
      SELECT CAST(count(*) AS INTEGER) AS size FROM kernai_media WHERE bucket = ${key}`.pipe(
      Effect.map(([row]) => row?.size ?? 0),
      Effect.catchTag("SqlError", failed("read media"))
    )
  }
}

const read = Effect.fnUntraced(function* ({ body, data }: Row): Effect.fn.Return<StoredMedia, StoreError> {
  const record = yield* Medium.decode(body)
  const { source } = record
  if (source.type === "bytes" && digestOf(data) !== source.digest) {
    return yield* Medium.corrupt(`the bytes of '${record.id}' are not what they were`)
  }
  return Medium.mediaOf(record, data)
})

const none = new Uint8Array(0)

const digestOf = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")
