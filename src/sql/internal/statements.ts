/**
 * The statements of a SQLite database, which stay prepared, and how their rows are read.
 */

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

  /** A statement that is kept. */
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

  /** A statement for a single use. */
  prepare(sql: string): StatementSync {
    const statement = this.#db.prepare(sql)
    // SQLite would run the first statement and silently drop the rest.
    if (sql.length > statement.sourceSQL.length && sql.slice(statement.sourceSQL.length).trim() !== "") {
      throw severalStatements()
    }
    return statement
  }
}

/** How many statements stay prepared; the least recently used is dropped first. */
const PREPARED_STATEMENTS = 256

/** Runs a statement and reads its result. */
export type Read<A> = (statement: StatementSync, params: ReadonlyArray<SQLInputValue>) => A

/** Rows as objects. */
export const rows: Read<ReadonlyArray<object>> = (statement, params) => {
  statement.setReturnArrays(false)
  const rows = statement.all(...params)
  for (const row of rows) Object.setPrototypeOf(row, Object.prototype)
  return rows
}

/** Rows as lists. */
export const values: Read<ReadonlyArray<ReadonlyArray<unknown>>> = (statement, params) => {
  statement.setReturnArrays(true)
  return statement.all(...params).map((row) => (Array.isArray(row) ? row : Object.values(row)))
}

/** Rows as objects, or, for a statement without rows, what it changed. */
export const raw: Read<unknown> = (statement, params) =>
  statement.columns().length === 0 ? statement.run(...params) : rows(statement, params)
