/** Prepares the statements of a SQLite database, keeps them, and reads their rows. */

import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite"
import { severalStatements } from "./sqlite.ts"

/** Prepares statements and keeps the most recently used. */
export class Statements {
  readonly #db: DatabaseSync
  readonly #kept = new Map<string, StatementSync>()
  #last: { readonly sql: string; readonly statement: StatementSync } | undefined

  constructor(db: DatabaseSync) {
    this.#db = db
  }

  /** Returns a prepared statement that is kept. */
  prepared(sql: string): StatementSync {
    if (this.#last?.sql === sql) return this.#last.statement
    const kept = this.#kept
    const statement = kept.get(sql) ?? this.prepare(sql)
    kept.delete(sql)
    kept.set(sql, statement)
    const oldest = kept.keys().next()
    if (kept.size > PREPARED_STATEMENTS && !oldest.done) kept.delete(oldest.value)
    this.#last = { sql, statement }
    return statement
  }

  /** Prepares a statement for a single use. */
  prepare(sql: string): StatementSync {
    const statement = this.#db.prepare(sql)
    // SQLite would run the first statement and silently drop the rest.
    if (sql.length > statement.sourceSQL.length && sql.slice(statement.sourceSQL.length).trim() !== "") {
      throw severalStatements()
    }
    return statement
  }
}

/** Maximum number of prepared statements. The least recently used one is dropped first. */
const PREPARED_STATEMENTS = 256

/** Runs a statement and reads its result. */
export type Read<A> = (statement: StatementSync, params: ReadonlyArray<SQLInputValue>) => A

/** Returns rows as objects. */
export const rows: Read<ReadonlyArray<object>> = (statement, params) => {
  statement.setReturnArrays(false)
  const rows = statement.all(...params)
  for (const row of rows) Object.setPrototypeOf(row, Object.prototype)
  return rows
}

/** Returns rows as lists. */
export const values: Read<ReadonlyArray<ReadonlyArray<unknown>>> = (statement, params) => {
  statement.setReturnArrays(true)
  return statement.all(...params).map((row) => (Array.isArray(row) ? row : Object.values(row)))
}

/** Returns rows as objects, or `{ changes, lastInsertRowid }` for a statement without rows. */
export const raw: Read<unknown> = (statement, params) =>
  statement.columns().length === 0 ? statement.run(...params) : rows(statement, params)
