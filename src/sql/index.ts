/**
 * Databases: runs, media, memories, conversations and shared budgets in SQLite and PostgreSQL, and a SQLite driver for
 * effect/sql.
 *
 * @since 0.1.0
 */

export * as PgRunStore from "./PgRunStore.ts"
export * as SqlBudgetStore from "./SqlBudgetStore.ts"
export * as SqliteClient from "./SqliteClient.ts"
export * as SqlChatHistory from "./SqlChatHistory.ts"
export * as SqlMediaStore from "./SqlMediaStore.ts"
export * as SqlMemory from "./SqlMemory.ts"
export * as SqlRunStore from "./SqlRunStore.ts"
