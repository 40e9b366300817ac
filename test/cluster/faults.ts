/**
 * What happens to a cluster of two runners, and what may not happen to its runs: each fault meets 100 runs under way.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import { Effect, Redacted, Stream } from "effect"
import { SqlClient } from "effect/sql"
import type { Sharding } from "effect/cluster"
import { Kernel, type RunStore } from "kernai"
import { RunEntity } from "kernai/cluster"
import { spawn } from "node:child_process"
import { createInterface } from "node:readline"
import { setTimeout as sleep } from "node:timers/promises"
import { type Cluster, judge, type Machine, make } from "./machines.ts"
import * as Network from "./network.ts"
import { agent } from "./process.ts"

/** What a fault did. Spans are milliseconds. */
export interface Outcome {
  readonly runs: number
  readonly findings: ReadonlyArray<string>
  /** From the fault until the last run of the runner it met went on elsewhere. */
  readonly takeover?: number
}

const turns = 6
const setting = { lockExpiration: 3_000, model: 300, call: 50, turns }

/** A fault, as it is done to the first of two runners while runs are under way. Returns what is put right again after. */
type Fault = (cluster: Cluster, victim: Machine, other: Machine, ids: ReadonlyArray<string>) => Promise<unknown>

const run = <A, E>(
  cluster: Cluster,
  effect: Effect.Effect<A, E, Kernel.Kernel | RunStore.RunStore | Sharding.Sharding>
) => Effect.runPromise(Effect.provideContext(effect, cluster.services))

const submit = (cluster: Cluster, ids: ReadonlyArray<string>) =>
  run(
    cluster,
    Effect.forEach(ids, (runId) => Kernel.submit(agent, "go", { runId }), { concurrency: 20 })
  )

/** Waits until all runs have ended, though not for ever. */
const ended = async (
  { store }: Cluster,
  ids: ReadonlyArray<string>,
  status: RunStore.RunStatus["type"] = "completed"
) => {
  const end = Date.now() + 120_000
  while (Date.now() < end) {
    const heads = await Effect.runPromise(Effect.orElseSucceed(store.list({ status: [status], roots: true }), () => []))
    const over = new Set(heads.map(({ runId }) => runId))
    if (ids.every((id) => over.has(id))) return
    await sleep(100)
  }
}

/** The runs that a runner has. */
const runsOf = (cluster: Cluster, { port }: Machine, ids: ReadonlyArray<string>) =>
  run(
    cluster,
    Effect.flatMap(RunEntity.RunEntity.client, (to) =>
      Effect.filter(ids, (id) => Effect.map(to(id).Ping(), (address) => address.endsWith(`:${port}`)), {
        concurrency: 20
      })
    )
  )

/** How long after an instant the last of some runs went on. */
const takeoverOf = ({ store }: Cluster, ids: ReadonlyArray<string>, since: number) =>
  Effect.runPromise(
    Effect.map(
      Effect.forEach(ids, (id) => Stream.runCollect(store.read(id)), { concurrency: 8 }),
      (journals) =>
        Math.max(
          0,
          ...journals.map(
            (records) =>
              (records.find(({ op, createdAt }) => op === "resume" && createdAt > since)?.createdAt ?? since) - since
          )
        )
    )
  )

/** Lets a fault happen to 100 runs on two runners, on machines of their own if there is a network. */
export const meet = (fault: Fault, prefix = "r", network?: typeof Network.make): Promise<Outcome> =>
  Effect.gen(function* () {
    const cluster = yield* make(setting, network === undefined ? undefined : yield* network)
    return yield* Effect.promise(async () => {
      const [victim, other] = await Promise.all([cluster.start(), cluster.start()])
      // Shards move to the runner that joined last.
      await sleep(3_000)
      const ids = Array.from({ length: 100 }, (_, number) => `${prefix}${number}`)
      await submit(cluster, ids)
      await sleep(700)
      const own = await runsOf(cluster, victim, ids)
      const since = Date.now()
      const extra = await fault(cluster, victim, other, ids)
      await ended(cluster, ids)
      const findings = await Effect.runPromise(judge(cluster, ids, turns))
      const takeover = await takeoverOf(cluster, own, since)
      const thin = own.length < 20 ? [`the runner had ${own.length} runs only`] : []
      return { runs: ids.length, takeover, findings: [...findings, ...thin, ...(Array.isArray(extra) ? extra : [])] }
    })
  }).pipe(Effect.scoped, Effect.runPromise)

// ---------------------------------------------------------------- faults

const later = async (ms: number, heal: () => void) => {
  await sleep(ms)
  heal()
}

const cut =
  (ms: number, ...names: ReadonlyArray<keyof Machine["links"]>): Fault =>
  async (_, { links }) => {
    for (const name of names) links[name].cut()
    await later(ms, () => {
      for (const name of names) links[name].heal()
    })
    return names.flatMap((name) => (links[name].dropped?.() === 0 ? [`the cut from ${name} dropped nothing`] : []))
  }

const atDatabase = (cluster: Cluster, statement: string) =>
  SqlClient.SqlClient.use((sql) => sql.unsafe(statement)).pipe(
    Effect.provide(PgClient.layer({ url: Redacted.make(cluster.url) })),
    Effect.exit,
    Effect.runPromise
  )

const connectionsCut: Fault = async (cluster) => {
  for (let times = 0; times < 5; times++) {
    await atDatabase(
      cluster,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    await sleep(500)
  }
}

const rolling: Fault = async (cluster, victim, other, ids) => {
  await cluster.start()
  victim.signal("SIGTERM")
  await submit(
    cluster,
    ids.map((id) => `${id}b`)
  )
  await victim.ended
  await cluster.start()
  other.signal("SIGTERM")
  await submit(
    cluster,
    ids.map((id) => `${id}c`)
  )
  const more = ids.flatMap((id) => [`${id}b`, `${id}c`])
  await ended(cluster, more)
  return Effect.runPromise(judge(cluster, more, turns))
}

export const faults: { readonly [name: string]: Fault } = {
  SIGKILL: async (_, victim) => victim.signal("SIGKILL"),
  "SIGSTOP for 20 s": async (_, victim) => {
    victim.signal("SIGSTOP")
    await later(20_000, () => victim.signal("SIGCONT"))
  },
  SIGTERM: async (_, victim) => victim.signal("SIGTERM"),
  "rolling restart under load": rolling,
  "connections cut": connectionsCut,
  "PostgreSQL restarted, fast": async ({ restart }) => restart("fast"),
  "PostgreSQL restarted, immediate": async ({ restart }) => restart("immediate"),
  "a runner cut from the database": cut(15_000, "database"),
  "a runner cut from the other processes": cut(15_000, "others"),
  "a runner cut from both": cut(15_000, "database", "others")
}

/** Faults between exactly two machines of a network: packets of both directions are dropped for 25 s. */
export const cuts: { readonly [name: string]: Fault } = {
  "packets dropped between a runner and the database": cut(25_000, "database"),
  "packets dropped between the two runners": cut(25_000, "others"),
  "packets dropped between a runner and both others": cut(25_000, "database", "others")
}

/** Lets a fault of `cuts` happen on a network, in a process of its own. */
export const meetApart = async (name: string): Promise<Outcome> => {
  const script = ["--conditions=kernai-source", import.meta.filename, name]
  const child = spawn(...Network.atDesk(process.execPath, script), { stdio: ["pipe", "pipe", "inherit"] })
  let found: string | undefined
  for await (const line of createInterface({ input: child.stdout })) if (line.startsWith("{")) found = line
  if (found === undefined) throw new Error(`the cluster of '${name}' ended without an outcome`)
  const outcome: Outcome = JSON.parse(found)
  return outcome
}

// ---------------------------------------------------------------- decisions

/** Two processes answer the questions of 100 runs at once. */
export const answeredTwice = (): Promise<Outcome> =>
  Effect.gen(function* () {
    const cluster = yield* make({ ...setting, turns: 1 })
    return yield* Effect.promise(async () => {
      await Promise.all([cluster.start(), cluster.start()])
      const ids = Array.from({ length: 100 }, (_, number) => `ask${number}`)
      await submit(cluster, ids)
      await ended(cluster, ids, "waiting")
      const answer = Effect.fnUntraced(function* (runId: string) {
        const open = yield* Kernel.questions(runId)
        const answers = open.map(({ callId }) => ({ callId, approved: true }))
        yield* Effect.exit(
          Effect.all([Kernel.answer(runId, answers), Kernel.answer(runId, answers)], { concurrency: 2 })
        )
      })
      await run(cluster, Effect.forEach(ids, answer, { concurrency: 10 }))
      await ended(cluster, ids)
      return { runs: ids.length, findings: await Effect.runPromise(judge(cluster, ids, 1)) }
    })
  }).pipe(Effect.scoped, Effect.runPromise)

/** Runs are cancelled after their runner died, and before another one has them. */
export const cancelledWhileDown = (): Promise<Outcome> =>
  Effect.gen(function* () {
    const cluster = yield* make(setting)
    return yield* Effect.promise(async () => {
      const [victim] = await Promise.all([cluster.start(), cluster.start()])
      await sleep(3_000)
      const ids = Array.from({ length: 100 }, (_, number) => `r${number}`)
      await submit(cluster, ids)
      await sleep(700)
      const own = await runsOf(cluster, victim, ids)
      victim.signal("SIGKILL")
      await run(
        cluster,
        Effect.forEach(own, (id) => Kernel.cancel(id), { concurrency: 8 })
      )
      const before = await Effect.runPromise(cluster.store.list({ status: ["cancelled"], roots: true }))
      await sleep(8_000)
      const after = await Effect.runPromise(cluster.store.list({ status: ["cancelled"], roots: true }))
      const moved = own.filter(
        (id) =>
          before.find(({ runId }) => runId === id)?.revision !== after.find(({ runId }) => runId === id)?.revision ||
          !after.some(({ runId }) => runId === id)
      )
      const thin = own.length < 20 ? [`the runner had ${own.length} runs only`] : []
      return {
        runs: own.length,
        findings: [...moved.map((id) => `fenced: ${id} went on after its cancellation`), ...thin]
      }
    })
  }).pipe(Effect.scoped, Effect.runPromise)

if (import.meta.filename === process.argv[1]) {
  const fault = cuts[process.argv[2] ?? ""]
  if (fault === undefined) throw new Error(`no such cut: ${process.argv[2]}`)
  console.log(JSON.stringify(await meet(fault, "r", Network.make)))
  process.exit(0)
}
