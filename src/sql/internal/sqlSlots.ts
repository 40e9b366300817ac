/** The slots of a range of time, as parts of a query. */

import type { SqlClient } from "effect/sql/SqlClient"
import type { Fragment } from "effect/sql/Statement"
import type { CountRange } from "../../RunStore.ts"

/** Returns the tables `slots (slot, starts, ends)` of a range, for a recursive `WITH`. */
export const slotsOf = (sql: SqlClient, { from, slots, to }: CountRange): Fragment => {
  const number = (value: number) => sql`CAST(${value} AS DOUBLE PRECISION)`
  const [first, width] = [number(from), number((to - from) / slots)]
  return sql`
    numbers (slot) AS (
      SELECT 0 UNION ALL SELECT slot + 1 FROM numbers WHERE slot < CAST(${slots} AS INTEGER) - 1
    ), slots (slot, starts, ends) AS (
      SELECT slot, ${first} + slot * ${width},
        CASE WHEN slot = CAST(${slots} AS INTEGER) - 1 THEN ${number(to)} ELSE ${first} + (slot + 1) * ${width} END
      FROM numbers
    )`
}
