/** The tags of the runs of a database, which are kept among the labels. */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Tags } from "../../RunStore.ts"
import { tagsBy } from "../../store-kit/StoreRules.ts"
import * as Key from "./key.ts"
import { failed } from "./sqlFault.ts"

/** A label is a list in JSON, which begins with another character. */
const mark = "#"

/** Returns the key of a tag in the table of labels. */
export const keyOf = (tag: string): string => mark + Key.make(tag)

/** Returns the tag of a key. */
export const tagOf = (key: string): string => Key.unescape(key.slice(mark.length))

/** The keys of the tags of a run `r`, as a list in JSON. */
export const columnOf = (sql: SqlClient): string => `(
  SELECT ${sql.onDialectOrElse({ pg: () => "CAST(json_agg(label) AS TEXT)", orElse: () => "json_group_array(label)" })}
  FROM kernai_labels AS l WHERE l.run = r.run AND label >= '${mark}' AND label < '$'
)`

/** Creates the tags of a database. */
export const make = (sql: SqlClient): Tags =>
  tagsBy((change, tag, runIds) =>
    Effect.forEach(
      Arr.chunksOf(runIds.map(Key.make), 500),
      (keys) => {
        const runs = sql`FROM kernai_runs WHERE ${sql.in("id", keys)}`
        return change === "add"
          ? sql`INSERT INTO kernai_labels (run, label) SELECT run, ${keyOf(tag)} ${runs} ON CONFLICT DO NOTHING`
          : sql`DELETE FROM kernai_labels WHERE label = ${keyOf(tag)} AND run IN (SELECT run ${runs})`
      },
      { discard: true }
    ).pipe(Effect.catchTag("SqlError", failed("write")))
  )
