/** Fills a store in a file with runs that ended, by one statement for each table. */
import { DatabaseSync } from "node:sqlite"

export interface Filling {
  readonly runs: number
  /** The instants between which the runs start, in milliseconds since the epoch. */
  readonly from: number
  readonly to: number
  readonly agents: ReadonlyArray<string>
  readonly models: ReadonlyArray<string>
  /** How much more runs start in a busy hour than in a quiet one, from 0 to 1. */
  readonly swing: number
}

/** Returns an SQL expression that chooses a text by a number. */
const oneOf = (texts: ReadonlyArray<string>, number: string) =>
  `(CASE (${number}) % ${texts.length} ${texts.map((text, at) => `WHEN ${at} THEN '${text}'`).join(" ")} END)`

/** Adds runs to the store of a file whose tables exist: nine of ten are completed. */
export const fill = (filename: string, { agents, from, models, runs, swing, to }: Filling): void => {
  const db = new DatabaseSync(filename)
  const share = `(i * 1.0 / ${runs})`
  const start = `CAST(${from} + ${to - from} * (${share} + ${swing} * sin(12.6 * ${share}) / 12.7) AS INTEGER)`
  // Their statuses follow `i` too, and every agent has runs of each.
  const [agent, id] = [oneOf(agents, "i / 30 + i"), "'filled_' || i"]
  db.exec(`
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${runs - 1})
    INSERT INTO kernai_runs (id, root, agent, facts, format, created_at, status, model, pace, tokens, cost)
    SELECT ${id}, ${id}, ${agent},
      json_object('runId', ${id}, 'rootRunId', ${id}, 'parentRunId', NULL, 'agent', ${agent}, 'createdAt', ${start}),
      1, ${start},
      CASE i * 7919 % 30 WHEN 0 THEN 'failed' WHEN 11 THEN 'no_answer' WHEN 17 THEN 'cancelled' ELSE 'completed' END,
      ${oneOf(models, "i / 3 + i")}, 42 + (i / 30 + i) % 3 * 2 + i * 31 % 13 + i * 7 % 5, 900 + i * 61 % 9000, i * 17 % 100 / 2000.0
    FROM n`)
  db.exec(`
    INSERT INTO kernai_journal (entry, records, body, turns, detail, at)
    SELECT (run << 32) + 1, 1, '{}', 1,
      '{"type":"completed","source":"model_done","phase":"turn_completed","createdAt":0}', created_at
    FROM kernai_runs WHERE id LIKE 'filled%'`)
  db.exec(`
    INSERT INTO kernai_words (run, body)
    SELECT run, 'the answer to a question about fibers, invoice ' || run FROM kernai_runs WHERE id LIKE 'filled%'`)
  db.close()
}
