/** What the overview and the list of runs cost the server over a million runs. */
import { Context, Effect, Layer } from "effect"
import { DatabaseSync } from "node:sqlite"
import { RunStore } from "../src/index.ts"
import { SqlRunStore } from "../src/sql/index.ts"
import { atMost, inFolder, type Line } from "./support.ts"

const runs = 1_000_000
const day = 86_400_000
const to = 30 * day

/** Stores runs that five agents started over a month with three models, most of them completed. */
const fill = (filename: string): void => {
  const db = new DatabaseSync(filename)
  db.exec(`
    WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < ${runs - 1})
    INSERT INTO kernai_runs
      (id, root, agent, facts, format, created_at, status, model, pace, tokens, cost)
    SELECT 'run_' || i, 'run_' || i, 'agent' || (i % 5),
      json_object('runId', 'run_' || i, 'rootRunId', 'run_' || i, 'parentRunId', NULL, 'agent', 'agent' || (i % 5), 'createdAt', i * ${to / runs}),
      1, i * ${to / runs},
      CASE i * 7919 % 10 WHEN 0 THEN 'failed' WHEN 1 THEN 'no_answer' WHEN 2 THEN 'cancelled' ELSE 'completed' END,
      'anthropic/model-' || (i % 3), i * 31 % 60, i % 9000, i % 100 / 1000.0
    FROM n`)
  db.exec(`
    INSERT INTO kernai_journal (entry, records, body, turns, detail, at)
    SELECT (run << 32) + 1, 1, '{}', 1, '{"type":"completed","source":"model_done","phase":"turn_completed","createdAt":0}', created_at
    FROM kernai_runs`)
  db.exec(`
    INSERT INTO kernai_words (run, body)
    SELECT run, 'the answer to a question about fibers, invoice ' || run FROM kernai_runs`)
  db.close()
}

/** Returns the median of the CPU milliseconds of a few runs of an effect, and its last result. */
const measured = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const spent: Array<number> = []
    let last = yield* effect
    for (let round = 0; round < 5; round++) {
      const before = process.cpuUsage()
      last = yield* effect
      const { system, user } = process.cpuUsage(before)
      spent.push((user + system) / 1_000)
    }
    return { last, milliseconds: Math.round(spent.toSorted((a, b) => a - b)[2] ?? Infinity) }
  })

const line = (what: string, milliseconds: number, most: number, isRight: boolean): Line => {
  const found = atMost(`CPU milliseconds of ${what} with 1,000,000 runs`, milliseconds, most)
  return { ...found, pass: found.pass && isRight }
}

const lines = (filename: string) =>
  Effect.gen(function* () {
    const context = yield* Layer.build(SqlRunStore.layerSqlite(filename))
    const { counts, list, spending } = Context.get(context, RunStore.RunStore)
    if (counts === undefined || spending === undefined) return []
    fill(filename)
    const range = { from: 0, to, slots: 48 }
    const overview = yield* measured(Effect.all([counts(range), spending(range)]))
    const [counted, spent] = overview.last
    const all = counted.reduce((sum, { count }) => sum + count, 0)
    const priced = spent.reduce((sum, one) => sum + one.runs, 0)
    const page = yield* measured(list({ roots: true, limit: 100 }))
    const failed = yield* measured(list({ roots: true, limit: 100, status: ["failed"], agent: "agent0" }))
    const frequent = yield* measured(list({ roots: true, limit: 100, search: "fibers invoice" }))
    const rare = yield* measured(list({ roots: true, limit: 100, search: "invoice 777777" }))
    return [
      line("the overview of a month", overview.milliseconds, 300, all === runs && priced === runs),
      line("a page of the list", page.milliseconds, 100, page.last.length === 100),
      line("a page of one agent's failed runs", failed.milliseconds, 100, failed.last.length === 100),
      line("a search for frequent words", frequent.milliseconds, 200, frequent.last.length === 100),
      line("a search for a rare word", rare.milliseconds, 200, rare.last.length === 1)
    ]
  }).pipe(Effect.scoped)

export const countLines = (): Promise<ReadonlyArray<Line>> =>
  inFolder((folder) => Effect.runPromise(lines(`${folder}/runs.db`)))
