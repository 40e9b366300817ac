/** The figures of the overview over a million runs. */
import { Context, Effect, Layer } from "effect"
import { DatabaseSync } from "node:sqlite"
import { RunStore } from "../src/index.ts"
import { SqlRunStore } from "../src/sql/index.ts"
import { atMost, inFolder, type Line } from "./support.ts"

const runs = 1_000_000
const day = 86_400_000
const to = 30 * day

/** Stores rows of runs that five agents started over a month, most of them completed. */
const fill = (filename: string): void => {
  const db = new DatabaseSync(filename)
  db.exec(`
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${runs - 1})
    INSERT INTO kernai_runs (id, root, agent, facts, format, created_at, status)
    SELECT 'run_' || i, 'run_' || i, 'agent' || i % 5, '{}', 1, i * ${to / runs},
      CASE i * 7919 % 10 WHEN 0 THEN 'failed' WHEN 1 THEN 'no_answer' WHEN 2 THEN 'cancelled' ELSE 'completed' END
    FROM n`)
  db.close()
}

/** Returns the median of the CPU milliseconds of a few counts, and how many runs they found. */
const measured = (filename: string) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(SqlRunStore.layerSqlite(filename))
    const { counts } = Context.get(context, RunStore.RunStore)
    if (counts === undefined) return { found: 0, milliseconds: Infinity }
    fill(filename)
    const spent: Array<number> = []
    let found = 0
    for (let round = 0; round < 5; round++) {
      const before = process.cpuUsage()
      const lines = yield* counts({ from: 0, to, slots: 48 })
      const { system, user } = process.cpuUsage(before)
      spent.push((user + system) / 1_000)
      found = lines.reduce((sum, { count }) => sum + count, 0)
    }
    return { found, milliseconds: Math.round(spent.toSorted((a, b) => a - b)[2] ?? Infinity) }
  }).pipe(Effect.scoped)

export const countLines = async (): Promise<ReadonlyArray<Line>> => {
  const { found, milliseconds } = await inFolder((folder) => Effect.runPromise(measured(`${folder}/runs.db`)))
  const line = atMost("CPU milliseconds of the overview of a month with 1,000,000 runs", milliseconds, 300)
  return [{ ...line, pass: line.pass && found === runs }]
}
