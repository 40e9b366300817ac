/**
 * Databases: our SQLite driver for effect/sql.
 *
 * @since 0.1.0
 */
export * as SqliteClient from "./SqliteClient.ts"
