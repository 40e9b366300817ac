/**
 * What programs that sleep cost a worker on PostgreSQL: bytes of its heap for each, and queries in a second. Takes how
 * many there are, and prints one JSON object. Needs `--expose-gc`.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Layer, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { Kernel, MediaStore, Program, ProtocolRegistry, RunStore, RunWorker, SkillRegistry } from "kernai"
import { PgRunStore } from "kernai/sql"
import { heapUsed } from "../../bench/support.ts"
import * as Postgres from "../support/postgres.ts"

/** What was measured, of a worker without runs and of one whose runs are asleep. */
export interface Asleep {
  readonly runs: number
  readonly bytesPerRun: number
  readonly emptyQueriesPerSecond: number
  readonly queriesPerSecond: number
}

const sleeper = Program.make("sleeper", { run: () => Effect.as(Program.sleep("30 days"), "awake") })

const transactions = (url: string) =>
  SqlClient.SqlClient.use(
    (sql) => sql<{ n: string }>`
      SELECT xact_commit + xact_rollback AS n FROM pg_stat_database WHERE datname = current_database()`
  ).pipe(
    Effect.map((rows) => Number(rows[0]?.n)),
    Effect.provide(PgClient.layer({ url: Redacted.make(url) }))
  )

const seconds = 60

/** Transactions of the worker in some seconds. The two of this measurement are left out. */
const queriesWithin = (url: string, seconds: number) =>
  Effect.gen(function* () {
    const before = yield* transactions(url)
    yield* Effect.sleep(`${seconds} seconds`)
    return Math.max(0, (yield* transactions(url)) - before - 2)
  })

/** Queries of the worker in a second, once it has read all runs that wait: a page of them in five seconds. */
const queries = (url: string) =>
  Effect.gen(function* () {
    yield* Effect.repeat(queriesWithin(url, 12), { until: (count) => count <= 2, times: 20 })
    return (yield* queriesWithin(url, seconds)) / seconds
  })

const asleep = (prefix: string, count: number) =>
  Effect.gen(function* () {
    const store = yield* RunStore.RunStore
    const ids = Array.from({ length: count }, (_, index) => `${prefix}${index}`)
    yield* Effect.forEach(ids, (runId) => Kernel.submit(sleeper, "go", { runId }), { concurrency: 20, discard: true })
    const awake = store.list({ status: ["queued", "running"], roots: true, limit: 1 })
    yield* Effect.repeat(Effect.delay(awake, "200 millis"), { while: (heads) => heads.length > 0 })
    yield* Effect.sleep("10 seconds")
    return heapUsed()
  })

const measured = (runs: number) =>
  Effect.gen(function* () {
    const { url } = yield* Postgres.database
    const parts = Layer.mergeAll(SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory)
    const kernel = Kernel.layerNoProvider.pipe(
      Layer.provide(parts),
      Layer.provideMerge(PgRunStore.layer({ url: Redacted.make(url), maxConnections: 8 }))
    )
    return yield* Effect.gen(function* () {
      yield* Effect.forkScoped(RunWorker.run({ agents: [sleeper], concurrency: 64, onRun: () => Effect.void }))
      // What the first runs leave behind is no cost of the runs that follow.
      const before = yield* asleep("warm", 100)
      const emptyQueriesPerSecond = yield* queries(url)
      const after = yield* asleep("run", runs)
      const queriesPerSecond = yield* queries(url)
      return { runs, bytesPerRun: (after - before) / runs, emptyQueriesPerSecond, queriesPerSecond }
    }).pipe(Effect.provide(kernel))
  }).pipe(Effect.scoped)

console.log(JSON.stringify(await Effect.runPromise(measured(Number(process.argv[2] ?? 10_000)))))
process.exit(0)
