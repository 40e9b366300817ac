/** Counts the runs of a database by the time of their start. */

import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Statement } from "effect/sql/Statement"
import type { CountRange, RunStoreShape, StatusWord } from "../../RunStore.ts"
import * as Key from "./key.ts"
import { failed } from "./sqlFault.ts"
import { slotsOf } from "./sqlSlots.ts"

interface Row {
  readonly slot: number
  readonly agent: string
  readonly status: string
  readonly count: number | string
}

/** Creates the counts of a database. */
export const make =
  (sql: SqlClient): NonNullable<RunStoreShape["counts"]> =>
  (range) =>
    query(sql, range).pipe(
      Effect.map((rows) =>
        rows.flatMap(({ agent, count, slot, status }) =>
          Number(count) === 0
            ? []
            : [{ slot, agent: Key.unescape(agent), status: wordOf(status), count: Number(count) }]
        )
      ),
      Effect.catchTag("SqlError", failed("list"))
    )

/**
 * Counts the runs of each agent, status and slot by walking its part of the index, which costs a fifteenth of sorting
 * all runs into groups. The agents and statuses are found by leaps in the index, from each pair to the next.
 */
export const query = (sql: SqlClient, range: CountRange): Statement<Row> =>
  sql<Row>`
    WITH RECURSIVE pairs (run, agent, status) AS (
      SELECT * FROM (
        SELECT run, agent, status FROM kernai_runs WHERE parent IS NULL ORDER BY agent, status LIMIT 1
      ) AS least
      UNION ALL
      SELECT r.run, r.agent, r.status FROM pairs AS p JOIN kernai_runs AS r ON r.run = coalesce(
        (
          SELECT run FROM kernai_runs WHERE parent IS NULL AND agent = p.agent AND status > p.status
          ORDER BY status LIMIT 1
        ),
        (SELECT run FROM kernai_runs WHERE parent IS NULL AND agent > p.agent ORDER BY agent, status LIMIT 1)
      )
    ), ${slotsOf(sql, range)}
    SELECT slot, agent, status, (
      SELECT count(*) FROM kernai_runs AS r
      WHERE parent IS NULL AND r.agent = p.agent AND r.status = p.status
      AND created_at >= starts AND created_at < ends
    ) AS count
    FROM pairs AS p CROSS JOIN slots`

const words: ReadonlyArray<StatusWord> = ["completed", "failed", "cancelled", "no_answer", "poisoned", "running"]

/** Returns the status of a row. A paused run waits. */
const wordOf = (status: string): StatusWord => words.find((word) => word === status) ?? "waiting"
