/**
 * The figures of a cluster: two runners as processes, a client in this one, and PostgreSQL that waits for its disk.
 * Prints one JSON object, and how long each part took to standard error: about a minute each, the idle one three.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import { Duration, Effect, Redacted, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { Sharding } from "effect/cluster"
import { Kernel, type RunStore } from "kernai"
import { RunEntity } from "kernai/cluster"
import { setTimeout as sleep } from "node:timers/promises"
import * as Bare from "./bare.ts"
import { faults, meet } from "./faults.ts"
import { type Cluster, type Machine, make, type Setting } from "./machines.ts"
import { agent } from "./process.ts"

/** What was measured. Times are milliseconds. */
export interface Figures {
  readonly recordsPerSecond: number
  /** A bare commit while 200 are under way, and a bare message, each measured beside what it is compared to. */
  readonly commitAtOnce: number
  readonly message: number
  readonly startP50: number
  /** The statements and the message of a start, bare, before each of them. */
  readonly startBare: number
  readonly messageP50: number
  readonly liveP50: number
  readonly liveP99: number
  readonly takeover: number
  readonly idleBytes: number
  readonly idleQueriesPerSecond: number
  readonly emptyQueriesPerSecond: number
  readonly waitingBytes: number
  readonly waitingQueriesPerSecond: number
}

const quick: Setting = { lockExpiration: 10_000, model: 0, call: 0, turns: 5, durable: true, direct: true }

type Services = Kernel.Kernel | RunStore.RunStore | Sharding.Sharding

const at = <A, E>(cluster: Cluster, effect: Effect.Effect<A, E, Services>) =>
  Effect.runPromise(Effect.provideContext(effect, cluster.services))

const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, number) => `${prefix}${number}`)

const withCluster = <A>(setting: Setting, body: (cluster: Cluster, machines: ReadonlyArray<Machine>) => Promise<A>) =>
  Effect.gen(function* () {
    const cluster = yield* make(setting)
    return yield* Effect.promise(async () => {
      const machines = await Promise.all([cluster.start(), cluster.start()])
      await sleep(4_000)
      return body(cluster, machines)
    })
  }).pipe(Effect.scoped, Effect.runPromise)

/** Records of all runs in a second, while 200 runs are under way. */
const throughput = () =>
  withCluster(quick, async (cluster) => {
    const runs = ids("r", 200)
    const started = performance.now()
    await at(
      cluster,
      Effect.forEach(runs, (runId) => Kernel.run(agent, "go", { runId }), { concurrency: "unbounded", discard: true })
    )
    const seconds = (performance.now() - started) / 1_000
    const heads = await Effect.runPromise(cluster.store.list({ roots: true }))
    const commitAtOnce = await Bare.commitAtOnce(cluster.url)
    return { recordsPerSecond: heads.reduce((sum, { revision }) => sum + revision, 0) / seconds, commitAtOnce }
  })

/** From submitting a run to its first turn, one at a time, and the same bare before each. */
const starts = (cluster: Cluster) =>
  at(
    cluster,
    Effect.gen(function* () {
      const bare = yield* Bare.start(cluster.url)
      return yield* Effect.forEach(ids("start", 110), (runId) =>
        Effect.gen(function* () {
          const [peer] = yield* Effect.timed(bare)
          const submitted = performance.timeOrigin + performance.now()
          yield* Kernel.submit(agent, "go", { runId })
          const events = yield* Stream.runCollect(Kernel.follow(runId))
          const begun = events.find(({ type }) => type === "turn_started")?.at ?? NaN
          return { ours: begun - submitted, peer: Duration.toMillis(peer) }
        })
      )
    }).pipe(Effect.scoped)
  )

/** From a word of a reply to a client that follows it. */
const words = (cluster: Cluster) =>
  at(
    cluster,
    Effect.gen(function* () {
      const times: Array<number> = []
      yield* Stream.runForEach(Kernel.stream(agent, "words 300", { runId: "words" }), (event) =>
        Effect.sync(() => {
          const now = performance.timeOrigin + performance.now()
          if (event.type === "text_chunk")
            for (const sent of event.text.trim().split(" ")) times.push(now - Number(sent))
        })
      )
      return times.slice(10)
    })
  )

const ping = (cluster: Cluster, runs: ReadonlyArray<string>, concurrency: number) =>
  at(
    cluster,
    Effect.flatMap(RunEntity.RunEntity.client, (to) =>
      Effect.forEach(runs, (id) => Effect.map(Effect.timed(to(id).Ping()), ([took]) => Duration.toMillis(took)), {
        concurrency
      })
    )
  )

/** Transactions of a cluster in a second. */
const queries = async ({ url }: Cluster, seconds = 10) => {
  const count = () =>
    SqlClient.SqlClient.use(
      (sql) => sql<{ n: string }>`
        SELECT xact_commit + xact_rollback AS n FROM pg_stat_database WHERE datname = current_database()`
    ).pipe(
      Effect.map((rows) => Number(rows[0]?.n)),
      Effect.provide(PgClient.layer({ url: Redacted.make(url) })),
      Effect.runPromise
    )
  const before = await count()
  await sleep(seconds * 1_000)
  return ((await count()) - before) / seconds
}

const heaps = async (machines: ReadonlyArray<Machine>) =>
  (await Promise.all(machines.map(({ heap }) => heap()))).reduce((sum, heap) => sum + heap, 0)

/** Starts runs until a number of runs waits for a person, and until they have left their runners. */
const waiting = async (cluster: Cluster, runs: ReadonlyArray<string>, count: number) => {
  await at(
    cluster,
    Effect.forEach(runs, (runId) => Kernel.submit(agent, "go", { runId }), { concurrency: 20 })
  )
  for (;;) {
    const heads = await Effect.runPromise(cluster.store.list({ status: ["waiting"], roots: true }))
    if (heads.length === count) break
    await sleep(200)
  }
  await sleep(20_000)
}

/** The cost of runs that do nothing. */
const idle = () =>
  withCluster(quick, async (cluster, machines) => {
    const emptyQueriesPerSecond = await queries(cluster)
    // The code that the first runs compile is no cost of the runs that follow. The heap grows until the second thousand.
    await waiting(cluster, ids("askwarm", 3_000), 3_000)
    const warm = await heaps(machines)
    await waiting(cluster, ids("ask", 1_000), 4_000)
    const asked = { heap: await heaps(machines), queries: await queries(cluster) }
    await ping(cluster, ids("idle", 10_000), 200)
    const resident = await heaps(machines)
    const busy = await queries(cluster)
    return {
      idleBytes: (resident - asked.heap) / 10_000,
      idleQueriesPerSecond: busy,
      emptyQueriesPerSecond,
      waitingBytes: (asked.heap - warm) / 1_000,
      waitingQueriesPerSecond: asked.queries
    }
  })

const latencies = () =>
  withCluster({ ...quick, turns: 0 }, async (cluster) => {
    const started = (await starts(cluster)).slice(10)
    const message = await Bare.message()
    const live = await words(cluster)
    await ping(cluster, ids("m", 100), 10)
    const messages = await ping(cluster, Array.from({ length: 10 }, () => ids("m", 100)).flat(), 1)
    return {
      message,
      startP50: Bare.quantile(
        started.map(({ ours }) => ours),
        0.5
      ),
      startBare: Bare.quantile(
        started.map(({ peer }) => peer),
        0.5
      ),
      messageP50: Bare.quantile(messages, 0.5),
      liveP50: Bare.quantile(live, 0.5),
      liveP99: Bare.quantile(live, 0.99)
    }
  })

const taken = async () => {
  const { findings, takeover = NaN } = await meet(faults["SIGKILL"] ?? (() => Promise.resolve()))
  return { takeover: findings.length === 0 ? takeover : NaN }
}

const parts: { readonly [name: string]: () => Promise<Partial<Figures>> } = { throughput, latencies, taken, idle }

/** Measures everything, or the parts that are named. */
const measured = async (names: ReadonlyArray<string>): Promise<Partial<Figures>> => {
  let figures: Partial<Figures> = {}
  for (const [name, part] of Object.entries(parts)) {
    if (names.length > 0 && !names.includes(name)) continue
    const began = performance.now()
    figures = { ...figures, ...(await part()) }
    console.error(`${name}: ${((performance.now() - began) / 1_000).toFixed(0)} s`)
  }
  return figures
}

if (import.meta.filename === process.argv[1]) {
  console.log(JSON.stringify(await measured(process.argv.slice(2))))
  process.exit(0)
}
