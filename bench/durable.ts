/**
 * Durable steps on one PostgreSQL server beside DBOS, LangGraph and the workflows of effect/cluster: CPU of the processes
 * that execute them, transactions, and bytes. A step is a reply of a model and a call that changes something, both stored.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import { DBOSClient } from "@dbos-inc/dbos-sdk"
import { Effect, ManagedRuntime, Redacted } from "effect"
import { SqlClient } from "effect/sql"
import { spawn } from "node:child_process"
import { once } from "node:events"
import * as path from "node:path"
import { createInterface } from "node:readline"
import * as Kernel from "../dist/Kernel.js"
import * as Postgres from "../test/support/postgres.ts"
import { queue } from "./durable/dbos.ts"
import { agent, kernelAt } from "./durable/kernai.ts"
import { ids, type Side, steps } from "./durableSide.ts"
import { type Comparison, comparisonOf, ratioRow, type Row, row, shown, sleep } from "./support.ts"

/** What a step of a side cost, and how many bytes a run left. */
interface Cost {
  readonly cpu: number
  readonly transactions: number
  readonly bytes: number
}

/** Runs to get warm, and as many to measure: with a hundred, two processes would mostly show how they compile. */
const runs = 250

// ---------------------------------------------------------------- processes

interface Process {
  /** Says a line, and returns the answer. */
  readonly ask: (line: string) => Promise<string>
  readonly end: () => Promise<unknown>
}

const start = async (side: Side): Promise<Process> => {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, "durableSide.ts"), JSON.stringify(side)], {
    stdio: ["pipe", "pipe", "inherit"]
  })
  const ended = once(child, "exit")
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const answer = async () => {
    for (let next = await lines.next(); next.done !== true; next = await lines.next()) {
      if (/^(ready|done|cpu )/.test(next.value)) return next.value
    }
    throw new Error(`${side.peer} ended`)
  }
  await answer()
  return {
    ask: (line) => {
      child.stdin.write(`${line}\n`)
      return answer()
    },
    end: () => {
      child.kill("SIGKILL")
      return ended
    }
  }
}

// ---------------------------------------------------------------- the database

interface Database {
  readonly url: string
  readonly one: (statement: string) => Promise<number>
}

const sql = <A>(url: string, statement: string): Promise<ReadonlyArray<A>> =>
  Effect.runPromise(
    Effect.provide(
      SqlClient.SqlClient.use((sql) => sql.unsafe<A & object>(statement)),
      PgClient.layer({ url: Redacted.make(url) })
    )
  )

const fresh = async (server: Postgres.Server, name: string): Promise<Database> => {
  const to = (database: string) =>
    `postgres://${server.username}:${server.password}@${server.host}:${server.port}/${database}`
  await sql(to("postgres"), `CREATE DATABASE ${name}`)
  // Asked from another database, so that asking is not counted.
  const one = async (statement: string) => (await sql<{ n: number }>(to("postgres"), statement))[0]?.n ?? NaN
  return { url: to(name), one }
}

/** Transactions of a database. A connection reports them at the latest when it ends. */
const transactions = async ({ one, url }: Database): Promise<number> => {
  const name = new URL(url).pathname.slice(1)
  while ((await one(`SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = '${name}'`)) > 0) await sleep(50)
  return one(`SELECT xact_commit::int AS n FROM pg_stat_database WHERE datname = '${name}'`)
}

const bytes = async ({ url }: Database): Promise<number> =>
  (
    await sql<{ n: number }>(
      url,
      "SELECT sum(pg_total_relation_size(relid))::float8 AS n FROM pg_stat_user_tables WHERE n_live_tup > 0"
    )
  )[0]?.n ?? NaN

// ---------------------------------------------------------------- submitting

interface Client {
  readonly submit: (id: string) => Promise<unknown>
  readonly ended: string
  readonly close: () => Promise<unknown>
}

const clientOf = async (peer: Side["peer"], url: string): Promise<Client> => {
  if (peer === "kernai") {
    const runtime = ManagedRuntime.make(kernelAt(url))
    return {
      submit: (runId) => runtime.runPromise(Kernel.submit(agent, "go", { runId })),
      ended: "SELECT count(*)::int AS n FROM kernai_runs WHERE status = 'completed'",
      close: () => runtime.dispose()
    }
  }
  const client = await DBOSClient.create({ systemDatabaseUrl: url, applicationName: "bench" })
  return {
    submit: (workflowID) => client.enqueue({ queueName: queue, workflowName: "work", workflowID }),
    ended: "SELECT count(*)::int AS n FROM dbos.workflow_status WHERE status = 'SUCCESS'",
    close: () => client.destroy()
  }
}

// ---------------------------------------------------------------- sides

interface Setting extends Omit<Side, "url"> {
  readonly processes: number
}

/** Starts processes on a database, and ends them after the body. Returns the transactions in between. */
const during = async (
  { processes, ...side }: Setting,
  database: Database,
  body: (all: ReadonlyArray<Process>) => Promise<unknown>
): Promise<number> => {
  const before = await transactions(database)
  const all: Array<Process> = []
  for (let count = 0; count < processes; count++) all.push(await start({ ...side, url: database.url }))
  await body(all)
  await Promise.all(all.map(({ end }) => end()))
  return (await transactions(database)) - before
}

/** Executes runs, and waits for their ends. */
type Execute = (prefix: string, count: number) => Promise<unknown>

/** Lets a body execute runs in the first process, or by whatever process takes them. */
const executing = async (
  { peer, role }: Setting,
  { url }: Database,
  [first]: ReadonlyArray<Process>,
  body: (execute: Execute) => Promise<unknown>
): Promise<void> => {
  if (role === "alone") return void (await body(async (prefix, count) => first?.ask(`go ${prefix} ${count}`)))
  const client = await clientOf(peer, url)
  let begun = 0
  await body(async (prefix, count) => {
    begun += count
    await Promise.all(ids(prefix, count).map(client.submit))
    while (((await sql<{ n: number }>(url, client.ended))[0]?.n ?? 0) < begun) await sleep(500)
  })
  await client.close()
}

const cpuOf = async (all: ReadonlyArray<Process>): Promise<number> => {
  const times = await Promise.all(all.map(({ ask }) => ask("cpu")))
  return times.reduce((sum, time) => sum + Number(time.split(" ")[1]), 0)
}

/** Lets some processes execute runs, after some to get warm. */
const measured = async (server: Postgres.Server, setting: Setting): Promise<Cost> => {
  const database = await fresh(server, `${setting.peer}_${setting.role}_${Date.now()}`)
  let cpu = NaN
  const many = await during(setting, database, (all) =>
    executing(setting, database, all, async (execute) => {
      await execute("warm", runs)
      const before = await cpuOf(all)
      await execute("run", runs)
      cpu = (await cpuOf(all)) - before
    })
  )
  const size = await bytes(database)
  return { cpu: cpu / runs / steps, transactions: many / 2 / runs / steps, bytes: size / 2 / runs }
}

/** Transactions of a step where one run is alone. */
const singly = async (server: Postgres.Server, peer: Side["peer"]): Promise<number> => {
  const setting: Setting = { peer, role: "alone", processes: 1 }
  const database = await fresh(server, `${peer}_single_${Date.now()}`)
  await during(setting, database, ([first]) => Promise.resolve(first))
  const idle = await during(setting, database, ([first]) => Promise.resolve(first))
  const busy = await during(setting, database, async ([first]) => {
    for (let run = 0; run < 5; run++) await first?.ask(`go single${run}- 1`)
  })
  return (busy - idle) / 5 / steps
}

const compared = (ours: ReadonlyArray<Cost>, peer: ReadonlyArray<Cost>, of: keyof Cost): Comparison =>
  comparisonOf(ours.flatMap((ours, round) => ({ ours: ours[of], peer: peer[round]?.[of] ?? NaN })))

/** kernai and DBOS in turns, in rounds. */
const rows = async (server: Postgres.Server, role: Side["role"], processes: number, name: string) => {
  const [ours, peer]: [Array<Cost>, Array<Cost>] = [[], []]
  for (let round = 0; round < 2; round++) {
    ours.push(await measured(server, { peer: "kernai", role, processes }))
    peer.push(await measured(server, { peer: "dbos", role, processes }))
  }
  const rowOf = (of: keyof Cost, what: string, unit: string, bound: number | null) =>
    ratioRow(`durable.${role}.${processes}.${of}`, `${name}: ${what} over DBOS`, compared(ours, peer, of), unit, bound)
  return shown([
    rowOf("cpu", "CPU of a step", "ms", 1),
    rowOf("transactions", "transactions of a step", "transactions", 1),
    rowOf("bytes", "bytes of a run", "bytes", null)
  ])
}

/** Peers that are only shown. */
const shownPeer = async (server: Postgres.Server, peer: "langgraph" | "effect", name: string) => {
  const { bytes, cpu, transactions } = await measured(server, { peer, role: "alone", processes: 1 })
  return shown([
    row(`durable.${peer}.cpu`, `${name}: CPU of a step, ms`, cpu, null),
    row(`durable.${peer}.transactions`, `${name}: transactions of a step`, transactions, null),
    row(`durable.${peer}.bytes`, `${name}: bytes of a run`, bytes, null)
  ])
}

const singleRows = async (server: Postgres.Server) => {
  const [ours, peer] = [await singly(server, "kernai"), await singly(server, "dbos")]
  return shown([
    row("durable.single", "one run alone: transactions of a step", ours, 5),
    row("durable.single.dbos", "DBOS, one run alone: transactions of a step", peer, null)
  ])
}

export default (): Promise<ReadonlyArray<Row>> =>
  Effect.runPromise(
    Effect.scoped(
      Effect.flatMap(Postgres.start({ durable: true }), (server) =>
        Effect.promise(async () => [
          ...(await singleRows(server)),
          ...(await rows(server, "worker", 1, "one worker")),
          ...(await rows(server, "worker", 2, "two workers")),
          ...(await rows(server, "alone", 1, "in one process")),
          ...(await shownPeer(server, "langgraph", "LangGraph")),
          ...(await shownPeer(server, "effect", "effect/cluster"))
        ])
      )
    )
  )
