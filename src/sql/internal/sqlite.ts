/**
 * Converts values and errors between effect/sql and Node's SQLite.
 */

import { classifySqliteError, SqlError, SqlSyntaxError } from "effect/sql/SqlError"
import type { DatabaseSync, SQLInputValue } from "node:sqlite"

/** Converts a parameter for binding. Throws for values without a SQLite type. */
export const toInput = (value: unknown, index: number): SQLInputValue => {
  switch (typeof value) {
    case "string":
    case "bigint":
      return value
    case "number":
      if (Number.isNaN(value)) break
      // Node binds every number as REAL, and SQLite would write 5 into a TEXT column as '5.0'.
      return Number.isSafeInteger(value) && !Object.is(value, -0) ? BigInt(value) : value
    case "boolean":
      return value ? 1n : 0n
    case "undefined":
      return null
  }
  if (value === null || value instanceof Uint8Array) return value
  if (value instanceof Date) return value.toISOString()
  const kind = typeof value === "number" ? "NaN" : Array.isArray(value) ? "array" : typeof value
  throw new TypeError(`parameter ${index + 1} is not a SQLite value: ${kind}`)
}

const SQLITE_ERROR = 1
const SQLITE_CONSTRAINT_PRIMARYKEY = 1555
const SQLITE_CONSTRAINT_UNIQUE = 2067
const SQLITE_CONSTRAINT_ROWID = 2579

/** Creates the error for several statements in one query, of which SQLite would run only the first. */
export const severalStatements = (): Error =>
  Object.assign(new Error("more than one statement in a query"), { errcode: SQLITE_ERROR })

/** Converts an error of Node to an `SqlError` with its reason. */
export const toSqlError =
  (operation: string, subject = "") =>
  (cause: unknown): SqlError => {
    const message = subject + (cause instanceof Error ? cause.message : String(cause))
    if (!(cause instanceof Error && "errcode" in cause)) {
      return new SqlError({ reason: classifySqliteError(cause, { message, operation }) })
    }
    if (cause.errcode === SQLITE_ERROR && operation === "prepare") {
      return new SqlError({ reason: new SqlSyntaxError({ cause, message, operation }) })
    }
    // The classifier reads `errno`, and knows only one of the three codes for a duplicate key.
    const taken = cause.errcode === SQLITE_CONSTRAINT_PRIMARYKEY || cause.errcode === SQLITE_CONSTRAINT_ROWID
    const numbered = Object.assign(cause, { errno: taken ? SQLITE_CONSTRAINT_UNIQUE : cause.errcode })
    return new SqlError({ reason: classifySqliteError(numbered, { message, operation }) })
  }

/** Returns true if a transaction is open. Reading that from a closed database would throw. */
export const isInTransaction = (db: DatabaseSync): boolean => db.isOpen && db.isTransaction
