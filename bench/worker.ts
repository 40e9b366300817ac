/**
 * Workers on one machine: how soon a submitted run starts, what an idle worker asks its store, and what thousands of
 * waiting runs cost. Beside them the `SingleRunner` of effect/cluster, which needs a database and serves one process.
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as PgClient from "@effect/sql-pg/PgClient"
import { Deferred, Duration, Effect, Layer, Redacted, Schema, type Scope, Stream } from "effect"
import { ClusterSchema, Entity, SingleRunner } from "effect/cluster"
import { Rpc } from "effect/rpc"
import { SqlClient } from "effect/sql"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import * as os from "node:os"
import * as path from "node:path"
import { shareOffers } from "../dist/store-kit/Offers.js"
import * as Kernel from "../dist/Kernel.js"
import * as RunStore from "../dist/RunStore.js"
import * as SqliteClient from "../dist/sql/SqliteClient.js"
import * as Postgres from "../test/support/postgres.ts"
import { heapUsed, median, type Row, row, shown, sleep } from "./support.ts"
import { bareStart } from "./workerBare.ts"
import { agent, foreign, kernelOn, type Place, quiet, storeAt, working } from "./workerSide.ts"

const now = () => performance.timeOrigin + performance.now()

const folder = fs.mkdtempSync(path.join(os.tmpdir(), "kernai-bench-worker-"))

const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, number) => `${prefix}${number}`)

/** A worker in a process of its own, until the scope closes. */
const elsewhere = (place: Place, concurrency: number, wait: number) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const side = path.join(import.meta.dirname, "workerSide.ts")
      const child = spawn(process.execPath, [side, JSON.stringify({ place, concurrency, wait })], {
        stdio: ["pipe", "pipe", "inherit"]
      })
      await new Promise<void>((resolve, reject) => {
        child.stdout.once("data", () => resolve())
        child.once("exit", (code) => reject(new Error(`a worker ended with ${code}`)))
      })
      return child
    }),
    (child) => Effect.sync(() => void child.kill("SIGKILL"))
  )

/** From submitting a run to its first turn. */
const started = Effect.fnUntraced(function* (runId: string) {
  const submitted = now()
  yield* Kernel.submit(agent, "go", { runId })
  const events = yield* Stream.runCollect(Kernel.follow(runId))
  return (events.find(({ type }) => type === "turn_started")?.at ?? Number.NaN) - submitted
})

/** How often a store is asked something. */
const counted = (store: RunStore.RunStoreShape, count: { asked: number }): RunStore.RunStoreShape => {
  const ask = <A>(effect: A) => (count.asked++, effect)
  const asking: RunStore.RunStoreShape = {
    ...store,
    list: (filter) => ask(store.list(filter)),
    head: (runId) => ask(store.head(runId)),
    acquire: (runId, claim) => ask(store.acquire(runId, claim))
  }
  shareOffers(asking, store)
  return asking
}

const named = (place: Place, what: string) => `worker.${place.kind}.${what}`

/** Starts of runs, one after another, each behind a bare one. The first ones, in which code is compiled, do not count. */
const starts = Effect.fnUntraced(function* (
  place: Place,
  where: "here" | "elsewhere",
  runs: ReadonlyArray<string>,
  first: number
) {
  const bare = yield* bareStart(place, where) ?? Effect.undefined
  const times = yield* Effect.forEach(runs, (runId) =>
    Effect.gen(function* () {
      const [peer] = yield* Effect.timed(bare ?? Effect.void)
      return { ours: yield* started(runId), peer: Duration.toMillis(peer) }
    })
  )
  const counted = times.slice(first)
  const ours = median(counted.map(({ ours }) => ours))
  return { ours, peer: bare === undefined ? undefined : median(counted.map(({ peer }) => peer)) }
})

/** The row of starts: milliseconds in memory, on other stores the ratio to the same steps bare. */
const startRow = (
  place: Place,
  what: string,
  name: string,
  { ours, peer }: { readonly ours: number; readonly peer: number | undefined }
): Row =>
  peer === undefined
    ? row(named(place, what), `${place.kind}: ms ${name}, p50`, ours, most.memory)
    : row(named(place, what), `${place.kind}: ${name} to its steps, bare, p50`, ours / peer, most[place.kind], {
        ours,
        peer,
        unit: "ms"
      })

/**
 * In memory milliseconds. Elsewhere chosen from the 20 ms of a quiet machine of two cores and the fastest twentieth of the
 * bare steps on a busy one (2.9 ms on files, 0.7 in SQLite, 3.8 in PostgreSQL): not measured on a quiet machine yet.
 */
const most: { readonly [kind in Place["kind"]]: number } = { memory: 20, file: 7, sqlite: 5, postgres: 5 }

/** The rows of one store, with the worker in this process or another one. */
const startRows = Effect.fnUntraced(function* (place: Place, where: "here" | "elsewhere") {
  if (where === "elsewhere") yield* elsewhere(place, 1, 0)
  else {
    yield* Effect.forkScoped(working(1))
    yield* Effect.sleep(300)
  }
  const times = yield* starts(place, where, ids(`${where}-`, 100), 60)
  return [startRow(place, `start.${where}`, `from submitting a run to its first turn, worker ${where}`, times)]
})

/** Twenty runs wait for a worker with twenty places whose model takes a while. */
const twenty = Effect.fnUntraced(function* (place: Place) {
  const waiting = ids("twenty-", 20)
  yield* Effect.forEach(waiting, (runId) => Kernel.submit(agent, "go", { runId }), { discard: true })
  const worker = yield* Effect.forkScoped(working(20))
  const begun = now()
  const starts = yield* Effect.forEach(
    waiting,
    (runId) =>
      Effect.map(Stream.runHead(Stream.filter(Kernel.follow(runId), ({ type }) => type === "turn_started")), (event) =>
        event._tag === "Some" ? event.value.at - begun : Number.NaN
      ),
    { concurrency: "unbounded" }
  )
  worker.interruptUnsafe()
  const name = `${place.kind}: ms until 20 waiting runs have started on a worker with 20 places`
  return [row(named(place, "twenty"), name, Math.max(...starts), 1_000)]
})

/** What an idle worker asks, and thousands of runs that it cannot take. */
const waitingRows = Effect.fnUntraced(function* (place: Place, many: number) {
  const store = yield* RunStore.RunStore
  yield* Effect.forEach(ids("waiting-", many), (runId) => Kernel.submit(foreign, "go", { runId }), {
    concurrency: 20,
    discard: true
  })
  const page = (after: Pick<RunStore.RunHead, "createdAt" | "runId"> | undefined) =>
    store.list({
      status: ["queued", "running", "interrupted"],
      roots: true,
      unleased: true,
      order: "oldest",
      limit: 100,
      after
    })
  const all = yield* store.list({ order: "oldest" })
  const timed = (after: Parameters<typeof page>[0]) =>
    Effect.map(
      Effect.forEach(ids("", 9), () => Effect.timed(page(after))),
      (found) => median(found.map(([took]) => Duration.toMillis(took)))
    )
  const first = yield* timed(undefined)
  const last = yield* timed(all[many - 150])
  const heap = heapUsed()
  const count = { asked: 0 }
  yield* Effect.forkScoped(Effect.provideService(working(1), RunStore.RunStore, counted(store, count)))
  yield* Effect.sleep(2_000)
  const grown = (heapUsed() - heap) / many
  count.asked = 0
  yield* Effect.sleep(10_000)
  const idle = count.asked / 10
  const times = yield* starts(place, "here", ids("behind-", 20), 0)
  return [
    row(named(place, "idle"), `${place.kind}: questions a second of an idle worker, ${many} runs wait`, idle, 1),
    row(named(place, "page"), `${place.kind}: last page of ${many} waiting runs over the first`, last / first, 2, {
      ours: last,
      peer: first,
      unit: "ms"
    }),
    startRow(place, "behind", `from submitting a run behind ${many} waiting ones to its first turn`, times),
    row(named(place, "heap"), `${place.kind}: bytes of a waiting run in its worker`, Math.max(0, grown), 1_000)
  ]
})

type Body = Effect.Effect<ReadonlyArray<Row>, unknown, Kernel.Kernel | RunStore.RunStore | Scope.Scope>

const on = (place: Place, body: Body, wait = 0): Promise<ReadonlyArray<Row>> =>
  Effect.runPromise(
    Effect.map(Effect.scoped(Effect.provide(body, [Layer.provideMerge(kernelOn(wait), storeAt(place)), quiet])), shown)
  )

// ---------------------------------------------------------------- effect/cluster

const Run = Entity.make("Run", [
  Rpc.make("Drive", { payload: { id: Schema.String }, primaryKey: ({ id }) => id }).annotate(
    ClusterSchema.Persisted,
    true
  )
])

/** The same questions to a `SingleRunner` in this process: the start of a message's handler, and 1,000 waiting messages. */
const singleRunner = async (
  name: string,
  client: Layer.Layer<SqlClient.SqlClient, unknown>
): Promise<ReadonlyArray<Row>> => {
  const waiting = new Map<string, Deferred.Deferred<number>>()
  const entity = Run.toLayer({
    Drive: ({ payload: { id } }) =>
      id.startsWith("wait")
        ? Effect.never
        : Effect.sync(() => {
            const done = waiting.get(id)
            if (done !== undefined) Deferred.doneUnsafe(done, Effect.succeed(now()))
          })
  })
  const layer = entity.pipe(
    Layer.provideMerge(SingleRunner.layer({ runnerStorage: "memory" })),
    Layer.provide([client, NodeCrypto.layerDigest, quiet])
  )
  const body = Effect.gen(function* () {
    const to = yield* Run.client
    yield* Effect.sleep(3_000)
    const one = Effect.fnUntraced(function* (id: string) {
      const done = yield* Deferred.make<number>()
      waiting.set(id, done)
      const sent = now()
      yield* to(id).Drive({ id }, { discard: true })
      return (yield* Deferred.await(done)) - sent
    })
    const times = yield* Effect.forEach(ids("r", 40), one)
    const heap = heapUsed()
    const many = 1_000
    yield* Effect.forEach(ids("wait", many), (id) => to(id).Drive({ id }, { discard: true }), {
      concurrency: 20,
      discard: true
    })
    yield* Effect.sleep(3_000)
    const grown = (heapUsed() - heap) / many
    const behind = yield* Effect.forEach(ids("behind", 20), one)
    return { start: median(times.slice(10)), grown, behind: median(behind) }
  })
  const { behind, grown, start } = await Effect.runPromise(Effect.scoped(Effect.provide(body, layer)))
  return shown([
    row(`single.${name}.start`, `SingleRunner on ${name}: ms from a message to its handler, p50`, start, null),
    row(`single.${name}.behind`, `SingleRunner on ${name}: the same behind 1,000 waiting messages, p50`, behind, null),
    row(`single.${name}.heap`, `SingleRunner on ${name}: bytes of a waiting message in memory`, grown, null)
  ])
}

// ---------------------------------------------------------------- all

const rowsOf = async (kind: Place["kind"], fresh: (name: string) => Promise<Place>): Promise<ReadonlyArray<Row>> => {
  const place = await fresh("start")
  // A file store syncs each run on its own.
  const many = kind === "file" ? 1_000 : 10_000
  return [
    ...(await on(place, startRows(place, "here"))),
    ...(kind === "memory" ? [] : await on(place, startRows(place, "elsewhere"))),
    ...(await on(place, twenty(place), 500)),
    ...(await fresh("waiting").then((place) => on(place, waitingRows(place, many))))
  ]
}

const onPostgres = async (kinds: ReadonlyArray<string>): Promise<ReadonlyArray<Row>> => {
  const body = Effect.flatMap(Postgres.start({ durable: true }), (server) =>
    Effect.promise(async () => {
      const to = (database: string) =>
        `postgres://${server.username}:${server.password}@${server.host}:${server.port}/${database}`
      const fresh = async (name: string): Promise<Place> => {
        const client = PgClient.layer({ url: Redacted.make(to("postgres")) })
        const create = SqlClient.SqlClient.use((sql) => sql.unsafe(`CREATE DATABASE ${name}`))
        await Effect.runPromise(Effect.provide(create, client))
        return { kind: "postgres", at: to(name) }
      }
      const rows = kinds.includes("postgres") ? await rowsOf("postgres", fresh) : []
      if (!kinds.includes("single")) return rows
      const { at } = await fresh("single")
      return [...rows, ...(await singleRunner("PostgreSQL", PgClient.layer({ url: Redacted.make(at) })))]
    })
  )
  return Effect.runPromise(Effect.scoped(body))
}

/** Measures all stores, or those that `KERNAI_BENCH_STORES` names. */
export default async (): Promise<ReadonlyArray<Row>> => {
  const kinds = (process.env["KERNAI_BENCH_STORES"] ?? "memory file sqlite postgres single").split(" ")
  const at = (name: string) => path.join(folder, name)
  const rows: Array<Row> = []
  if (kinds.includes("memory")) rows.push(...(await rowsOf("memory", async () => ({ kind: "memory", at: "" }))))
  if (kinds.includes("file")) rows.push(...(await rowsOf("file", async (name) => ({ kind: "file", at: at(name) }))))
  if (kinds.includes("sqlite"))
    rows.push(...(await rowsOf("sqlite", async (name) => ({ kind: "sqlite", at: at(`${name}.db`) }))))
  if (kinds.includes("single"))
    rows.push(...(await singleRunner("SQLite", SqliteClient.layer({ filename: at("single.db") }))))
  if (kinds.includes("postgres") || kinds.includes("single")) rows.push(...(await onPostgres(kinds)))
  await sleep(0)
  fs.rmSync(folder, { recursive: true, force: true })
  return rows
}
