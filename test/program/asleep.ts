/**
 * What programs that sleep cost a worker on PostgreSQL: bytes of its heap for each, and queries in a second. Takes how
 * many there are, and prints one JSON object. Needs `--expose-gc`.
 */
import { Effect, Layer, Redacted, Tracer } from "effect"
import { Kernel, Limits, MediaStore, Program, ProtocolRegistry, RunStore, RunWorker, SkillRegistry } from "kernai"
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

/**
 * A tracer that counts the statements of the store's client. PostgreSQL counts only transactions, and among them those
 * of its autovacuum, which follow from the runs that were stored before.
 */
const counting = () => {
  let count = 0
  const tracer = Tracer.make({
    span: (options) => {
      if (options.kind === "client" && options.name === "postgresql") count++
      return new Tracer.NativeSpan(options)
    }
  })
  return { tracer, counted: () => count }
}

const seconds = 60

/** Queries in some seconds. */
const queriesWithin = (counted: () => number, seconds: number) =>
  Effect.suspend(() => {
    const before = counted()
    return Effect.map(Effect.sleep(`${seconds} seconds`), () => counted() - before)
  })

/** Queries of the worker in a second, once it rests, that is when twelve seconds pass without one. */
const queries = (counted: () => number) =>
  Effect.gen(function* () {
    const inTwelve = queriesWithin(counted, 12)
    const last = yield* Effect.repeat(inTwelve, { until: (count) => count === 0, times: 40 })
    if (last > 0) return yield* Effect.die("the worker never rested")
    return (yield* queriesWithin(counted, seconds)) / seconds
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
    const { counted, tracer } = counting()
    const parts = Layer.mergeAll(SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory)
    const kernel = Kernel.layerNoProvider.pipe(
      Layer.provide(parts),
      Layer.provideMerge(PgRunStore.layer({ url: Redacted.make(url), maxConnections: 8 }))
    )
    return yield* Effect.gen(function* () {
      yield* Effect.forkScoped(RunWorker.run({ agents: [sleeper], concurrency: 64, onRun: () => Effect.void }))
      // What the first runs leave behind is no cost of the runs that follow.
      const before = yield* asleep("warm", 100)
      if (counted() < 100) return yield* Effect.die("the tracer missed the statements of the client")
      const emptyQueriesPerSecond = yield* queries(counted)
      const after = yield* asleep("run", runs)
      const queriesPerSecond = yield* queries(counted)
      return { runs, bytesPerRun: (after - before) / runs, emptyQueriesPerSecond, queriesPerSecond }
    }).pipe(Effect.provide(kernel), Effect.provideService(Tracer.Tracer, tracer))
  }).pipe(
    Effect.scoped,
    // The verdict is about heap and queries: an append that is late on a busy machine does not end the measurement.
    Effect.provideService(Limits.Limits, Limits.make({ appendTimeout: "1 minute" }))
  )

console.log(JSON.stringify(await Effect.runPromise(measured(Number(process.argv[2] ?? 10_000)))))
process.exit(0)
