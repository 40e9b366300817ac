/** Counts the runs of a database by the time of their start. */

import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { RunStoreShape, StatusWord } from "../../RunStore.ts"
import * as Key from "./key.ts"
import { failed } from "./sqlFault.ts"

interface Row {
  readonly slot: number
  readonly agent: string
  readonly status: string
  readonly count: number | string
}

/** Creates the counts of a database: one query over the index of the times. */
export const make =
  (sql: SqlClient): NonNullable<RunStoreShape["counts"]> =>
  ({ from, slots, to }) =>
    sql<Row>`
      SELECT slot, agent, status, count(*) AS count FROM (
        SELECT CAST(floor((created_at - ${from}) * ${slots} / ${to - from}) AS INTEGER) AS slot, agent, status
        FROM kernai_runs WHERE created_at >= ${from} AND created_at < ${to} AND parent IS NULL
      ) AS started
      GROUP BY slot, agent, status ORDER BY slot, agent, status`.pipe(
      Effect.map((rows) =>
        rows.map(({ agent, count, slot, status }) => ({
          slot,
          agent: Key.unescape(agent),
          status: wordOf(status),
          count: Number(count)
        }))
      ),
      Effect.catchTag("SqlError", failed("list"))
    )

const words: ReadonlyArray<StatusWord> = ["completed", "failed", "cancelled", "no_answer", "poisoned", "running"]

/** Returns the status of a row. A paused run waits. */
const wordOf = (status: string): StatusWord => words.find((word) => word === status) ?? "waiting"
