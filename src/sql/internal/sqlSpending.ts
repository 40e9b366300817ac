/** Sums what the runs of a database used, by the time of their start. */

import * as Effect from "effect/Effect"
import type { SqlClient } from "effect/sql/SqlClient"
import type { Statement } from "effect/sql/Statement"
import type { RunState } from "../../RunState.ts"
import type { CountRange, RunStoreShape } from "../../RunStore.ts"
import { modelOf } from "../../store-kit/StoreRules.ts"
import * as Key from "./key.ts"
import type { Spent } from "./runTables.ts"
import { failed } from "./sqlFault.ts"
import { slotsOf } from "./sqlSlots.ts"

/** Returns what a root run used that has ended with a reply. */
export const spentOf = (state: RunState): Spent | undefined => {
  const { costUsd, createdAt, updatedAt, usage } = state
  const model = modelOf(state)
  if (model === undefined) return undefined
  return {
    model: Key.make(model),
    pace: Math.round(steps * Math.log2(Math.max(1, updatedAt - createdAt))),
    tokens: usage.inputTokens + usage.outputTokens,
    cost: costUsd ?? null
  }
}

/** The duration of a run is stored as its pace, of which this many fit between a duration and its double. */
const steps = 4

interface Row {
  readonly slot: number
  readonly agent: string
  readonly model: string
  readonly pace: number
  /** The number of runs, their tokens and their cost, separated by blanks. */
  readonly sums: string
}

/** Creates the sums of a database. */
export const make =
  (sql: SqlClient): NonNullable<RunStoreShape["spending"]> =>
  (range) =>
    query(sql, range).pipe(
      Effect.map((rows) =>
        rows.map(({ agent, model, pace, slot, sums }) => {
          const [runs, tokens, cost] = sums.split(" ")
          return {
            slot,
            agent: Key.unescape(agent),
            model: Key.unescape(model),
            took: 2 ** (pace / steps),
            runs: Number(runs),
            tokens: Number(tokens),
            ...(cost === undefined || cost === "" ? {} : { costUsd: Number(cost) })
          }
        })
      ),
      Effect.catchTag("SqlError", failed("list"))
    )

/**
 * Sums the runs of each agent, model, pace and slot by walking its part of the index once, so that none are sorted.
 * The groups are found by leaps in the index, from each to the next. Unless the sums are materialized, SQLite computes
 * them twice: for the condition and for the row.
 */
export const query = (sql: SqlClient, range: CountRange): Statement<Row> =>
  sql<Row>`
    WITH RECURSIVE paces (run, agent, model, pace) AS (
      SELECT * FROM (
        SELECT run, agent, model, pace FROM kernai_runs WHERE model IS NOT NULL
        ORDER BY agent, model, pace LIMIT 1
      ) AS least
      UNION ALL
      SELECT r.run, r.agent, r.model, r.pace FROM paces AS p JOIN kernai_runs AS r ON r.run = coalesce(
        (
          SELECT run FROM kernai_runs WHERE agent = p.agent AND model = p.model AND pace > p.pace
          ORDER BY pace LIMIT 1
        ),
        (SELECT run FROM kernai_runs WHERE agent = p.agent AND model > p.model ORDER BY model, pace LIMIT 1),
        (SELECT run FROM kernai_runs WHERE model IS NOT NULL AND agent > p.agent ORDER BY agent, model, pace LIMIT 1)
      )
    ), ${slotsOf(sql, range)}, found AS MATERIALIZED (
      SELECT slot, agent, model, pace, (
        SELECT CAST(count(*) AS TEXT) || ' ' || CAST(sum(tokens) AS TEXT) || ' ' || coalesce(CAST(sum(cost) AS TEXT), '')
        FROM kernai_runs AS r
        WHERE r.agent = p.agent AND r.model = p.model AND r.pace = p.pace
        AND created_at >= starts AND created_at < ends
      ) AS sums
      FROM paces AS p CROSS JOIN slots
    )
    SELECT * FROM found WHERE sums IS NOT NULL`
