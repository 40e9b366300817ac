/**
 * A statement that is run at once, in front of all that wait for the connection.
 */

import type { DatabaseSync, SQLInputValue, StatementSync } from "node:sqlite"
import type { SqliteClient } from "../SqliteClient.ts"
import { isInTransaction } from "./sqlite.ts"
import type { Statements } from "./statements.ts"

/** How a database is changed without waiting (see `SqliteClient.attempt`). */
export const attempting = (
  db: DatabaseSync,
  statements: Statements,
  missing: () => string | undefined
): SqliteClient["attempt"] => {
  const begin = db.prepare("BEGIN IMMEDIATE")
  const commit = db.prepare("COMMIT")
  const isChange = (statement: StatementSync, params: ReadonlyArray<SQLInputValue>) =>
    Number(statement.run(...params).changes) > 0
  /** Ends a transaction that is to change nothing, unless SQLite did so by itself. */
  const undo = () => {
    try {
      if (isInTransaction(db)) db.exec("ROLLBACK")
    } catch {
      // What comes next must not become part of it: a database that is closed keeps nothing of it, and says what is wrong.
      if (isInTransaction(db)) db.close()
    }
  }
  return (sql, lists) => {
    // In a transaction, a statement may be that of another fiber.
    if (!db.isOpen || db.isTransaction || missing() !== undefined) return undefined
    const [first] = lists
    try {
      const statement = statements.prepared(sql)
      if (lists.length === 1 && first !== undefined) return isChange(statement, first)
      begin.run()
      const isDone = lists.every((params) => isChange(statement, params))
      if (isDone) commit.run()
      else undo()
      return isDone
    } catch {
      undo()
      return undefined
    }
  }
}
