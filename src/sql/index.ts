/**
 * Databases: runs, media, memories and conversations in SQLite and PostgreSQL, and our SQLite driver for effect/sql.
 *
 * @since 0.1.0
 */

/**
 * @category stores
 * @since 0.1.0
 */
export * as PgRunStore from "./PgRunStore.ts"
/**
 * @category clients
 * @since 0.1.0
 */
export * as SqliteClient from "./SqliteClient.ts"
/**
 * @category stores
 * @since 0.1.0
 */
export * as SqlChatHistory from "./SqlChatHistory.ts"
/**
 * @category stores
 * @since 0.1.0
 */
export * as SqlMediaStore from "./SqlMediaStore.ts"
/**
 * @category stores
 * @since 0.1.0
 */
export * as SqlMemory from "./SqlMemory.ts"
/**
 * @category stores
 * @since 0.1.0
 */
export * as SqlRunStore from "./SqlRunStore.ts"
