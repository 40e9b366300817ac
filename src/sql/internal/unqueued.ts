/** Runs a statement at once, ahead of statements that wait for the connection. */

import type { DatabaseSync } from "node:sqlite"
import type { SqliteClient } from "../SqliteClient.ts"
import type { Statements } from "./statements.ts"

/** Changes a database without waiting (see `SqliteClient.attempt`). */
export const attempting =
  (db: DatabaseSync, statements: Statements, missing: () => string | undefined): SqliteClient["attempt"] =>
  (sql, params) => {
    // In a transaction, the statement would become part of another fiber's transaction.
    if (!db.isOpen || db.isTransaction || missing() !== undefined) return undefined
    try {
      return Number(statements.prepared(sql).run(...params).changes) > 0
    } catch {
      return undefined
    }
  }
