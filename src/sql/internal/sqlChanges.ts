/**
 * Announces that a process has changed a database: notifications of PostgreSQL, or writes to the log of a SQLite file.
 */

import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { existsSync, watch } from "node:fs"
import type { Changes } from "../../RunStore.ts"
import type { Followers } from "../../store-kit/Polling.ts"

/** Creates the changes of a database. Absent if those of other processes are not announced. */
export const make = (
  sql: SqlClient,
  followers: Followers,
  isListening: boolean
): Effect.Effect<Changes | undefined, SqlError> => {
  const { next } = followers
  return sql.onDialectOrElse({
    pg: () => Effect.succeed(isListening ? { next, recheck } : undefined),
    orElse: () =>
      Effect.map(fileOf(sql), (file) =>
        // No other process has a database in memory.
        file === "" ? { next, recheck: Infinity } : { next: nextWrite(file), recheck }
      )
  })
}

/** Announcements are lost with a process that dies right after a commit, and by some file systems. */
const recheck = "1 minute"

/** Returns the file of a SQLite database, empty for one in memory. */
export const fileOf = (sql: SqlClient): Effect.Effect<string, SqlError> =>
  Effect.map(
    sql<{ readonly file: string }>`SELECT file FROM pragma_database_list WHERE name = 'main'`,
    (rows) => rows[0]?.file ?? ""
  )

/** Waits until any process writes to a database. Succeeds at once if its files cannot be watched, so that it is polled. */
const nextWrite = (file: string): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const log = `${file}-wal`
    const done = () => resume(Effect.void)
    try {
      const watcher = watch(existsSync(log) ? log : file, { persistent: false }, done)
      watcher.on("error", done)
      return Effect.sync(() => watcher.close())
    } catch {
      done()
    }
  })
