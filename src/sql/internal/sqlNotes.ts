/**
 * Small texts beside the runs of a database.
 */

import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Changes, Notes } from "../../RunStore.ts"
import { sortedNotes } from "../../store-kit/StoreRules.ts"
import * as Key from "./key.ts"
import { failed } from "./sqlFault.ts"

/** The announcement of a note that was set. No key of a run begins like this. */
export const mark = "%n"

/** Creates the notes of a database. There are few, so a list reads them all. `announce` is called after each change. */
export const make = (sql: SqlClient, announce: () => void, changes: Changes | undefined): Notes => ({
  list: (prefix) =>
    sql<{ readonly note: string; readonly body: string }>`SELECT note, body FROM kernai_notes`.pipe(
      Effect.map((rows) =>
        sortedNotes(
          rows.map(({ body, note }) => ({ key: Key.unescape(note), text: Key.unescape(body) })),
          prefix
        )
      ),
      Effect.catchTag("SqlError", failed("read"))
    ),
  set: (key, text) =>
    (text === undefined
      ? sql`DELETE FROM kernai_notes WHERE note = ${Key.escape(key)}`
      : sql`INSERT INTO kernai_notes (note, body) VALUES (${Key.escape(key)}, ${Key.escape(text)})
            ON CONFLICT (note) DO UPDATE SET body = excluded.body`
    ).pipe(Effect.andThen(Effect.sync(announce)), Effect.catchTag("SqlError", failed("write"))),
  changes
})
