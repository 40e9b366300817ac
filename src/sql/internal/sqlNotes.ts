/**
 * Small texts beside the runs of a database.
 */

import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Notes } from "../../RunStore.ts"
import { sortedNotes } from "../../store-kit/StoreRules.ts"
import * as Key from "./key.ts"
import { failed } from "./sqlFault.ts"

/** Creates the notes of a database. There are few, so a list reads them all. */
export const make = (sql: SqlClient): Notes => ({
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
    ).pipe(Effect.asVoid, Effect.catchTag("SqlError", failed("write")))
})
