/**
 * Runners as processes on one PostgreSQL database, and a client in this process.
 */
import { Context, Effect, Layer, Logger, Option, Redacted, Scope, Stream } from "effect"
import type { Sharding } from "effect/cluster"
import { type Kernel, RunStore, Skill } from "kernai"
import { ClusterKernel, ClusterNode } from "kernai/cluster"
import { PgRunStore } from "kernai/sql"
import { spawn } from "node:child_process"
import * as fs from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { folder } from "../support/folder.ts"
import * as Postgres from "../support/postgres.ts"
import * as Link from "./link.ts"
import type { Cut, Network } from "./network.ts"
import { kernelAt, type Place, provider } from "./process.ts"

export interface Machine {
  readonly port: number
  /** Its connections to the database, and of others to it. */
  readonly links: { readonly database: Cut; readonly others: Cut }
  readonly signal: (signal: NodeJS.Signals) => void
  /** Bytes of its heap, after a collection where it was started with --expose-gc. */
  readonly heap: () => Promise<number>
  readonly ended: Promise<{ readonly code: number | null; readonly error: string }>
}

export interface Cluster {
  readonly url: string
  readonly services: Context.Context<Kernel.Kernel | RunStore.RunStore | Sharding.Sharding>
  readonly store: RunStore.RunStoreShape
  /** Starts a runner. Its agents have these names, if there are some. */
  readonly start: (agents?: ReadonlyArray<string>) => Promise<Machine>
  /** Restarts the database. */
  readonly restart: (mode: "fast" | "immediate") => void
  /** The calls that were entered, a line each. */
  readonly ledger: () => ReadonlyArray<string>
}

const freePort = () =>
  new Promise<number>((resolve) => {
    const probe = createServer()
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

/** Where a runner is, how a process is started there, and how it is cut off. */
interface Site extends Pick<Place, "host" | "port" | "listenPort" | "url">, Pick<Machine, "links"> {
  readonly at: Network["runners"][number]["at"]
  readonly close: () => void
}

/** On this machine, behind links of its own. */
const behindLinks = async (server: Postgres.Server): Promise<Site> => {
  const listenPort = await freePort()
  const [database, others] = [await Link.open(server.port), await Link.open(listenPort)]
  return {
    host: "127.0.0.1",
    port: others.port,
    listenPort,
    url: urlOf({ ...server, port: database.port }),
    links: { database, others },
    at: (command, args) => [command, args],
    close: () => {
      database.close()
      others.close()
    }
  }
}

/** On this machine, without links: statements and messages do not pass this process. */
const directly = async (server: Postgres.Server): Promise<Site> => {
  const port = await freePort()
  return {
    host: "127.0.0.1",
    port,
    listenPort: port,
    url: urlOf(server),
    links: { database: uncut, others: uncut },
    at: (command, args) => [command, args],
    close: () => {}
  }
}

const uncut: Cut = {
  cut: () => {
    throw new Error("a runner without links cannot be cut off")
  },
  heal: () => {}
}

/** On a machine of a network, each runner on one of its own. */
const onNetwork = (network: Network, number: number, server: Postgres.Server): Site => {
  const runner = network.runners[number]
  if (runner === undefined) throw new Error(`the network has no machine for runner ${number}`)
  const port = 34_431 + number
  return { ...runner, port, listenPort: port, url: urlOf({ ...server, host: network.host }), close: () => {} }
}

const launch = async (
  { at, close, links, ...where }: Site,
  given: Omit<Place, "host" | "port" | "listenPort" | "url">
): Promise<Machine> => {
  const place: Place = { ...given, ...where }
  const script = ["--conditions=kernai-source", "--expose-gc", join(import.meta.dirname, "process.ts")]
  const [command, args] = at(process.execPath, [...script, JSON.stringify(place)])
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "pipe"] })
  let error = ""
  child.stderr.on("data", (data) => (error += data))
  child.stdin.on("error", () => {})
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const ended = new Promise<Awaited<Machine["ended"]>>((resolve) =>
    child.on("close", (code) => {
      close()
      resolve({ code, error })
    })
  )
  if ((await lines.next()).value !== "ready") throw new Error(`a runner did not start: ${(await ended).error}`)
  return {
    port: place.port,
    links,
    signal: (signal) => void child.kill(signal),
    heap: async () => {
      child.stdin.write("heap\n")
      return Number(String((await lines.next()).value).split(" ")[1])
    },
    ended
  }
}

const urlOf = ({ host, password, port, username }: Postgres.Server) =>
  `postgres://${username}:${password}@${host}:${port}/postgres`

const clientAt = (url: string, place: Pick<Place, "model" | "turns">) =>
  ClusterKernel.layerClient.pipe(
    Layer.provideMerge(ClusterNode.layerClient()),
    Layer.provide([
      kernelAt(
        url,
        Skill.dynamic("pay", { description: "", inputSchema: {}, execute: () => Effect.never }),
        provider(place)
      ),
      PgRunStore.layerSqlClient({ url: Redacted.make(url) })
    ])
  )

export interface Setting extends Pick<Place, "lockExpiration" | "model" | "call" | "turns" | "retryEvery"> {
  /** Commits wait for the disk. */
  readonly durable?: boolean
  /** Runners have no links that could be cut, and that would add their own time to each statement and message. */
  readonly direct?: boolean
}

/**
 * A database server of its own, a client, and runners as they are started, on the machines of a network if there is one.
 * All ends with the scope.
 */
export const make = Effect.fnUntraced(function* (
  setting: Setting,
  network?: Network
): Effect.fn.Return<Cluster, unknown, Scope.Scope> {
  const server = yield* Postgres.start({ durable: setting.durable === true, address: network?.host })
  const url = urlOf(server)
  const ledger = join(yield* folder, "ledger")
  fs.writeFileSync(ledger, "")
  const services = yield* Layer.build(Layer.merge(clientAt(url, setting), Logger.layer([])))
  const machines: Array<Machine> = []
  yield* Effect.addFinalizer(() =>
    Effect.promise(async () => {
      for (const { signal } of machines) signal("SIGKILL")
      await Promise.all(machines.map(({ ended }) => ended))
    })
  )
  let started = 0
  const start: Cluster["start"] = async (agents) => {
    const here = () => (setting.direct === true ? directly(server) : behindLinks(server))
    const site = network === undefined ? await here() : onNetwork(network, started++, server)
    const machine = await launch(site, { ...setting, ledger, ...(agents === undefined ? {} : { agents }) })
    machines.push(machine)
    return machine
  }
  return {
    url,
    services,
    store: Context.get(services, RunStore.RunStore),
    start,
    restart: (mode) => Postgres.restart(server, mode),
    ledger: () =>
      fs
        .readFileSync(ledger, "utf8")
        .split("\n")
        .filter((line) => line !== "")
  }
})

/** What is wrong with runs that should all have ended, with one call in each of their turns. */
export const judge = Effect.fnUntraced(function* (
  { ledger, store }: Cluster,
  ids: ReadonlyArray<string>,
  turns: number
) {
  const entered = Map.groupBy(ledger(), (line) => line.split(" ")[0] ?? "")
  const found = yield* Effect.forEach(
    ids,
    (runId) =>
      Effect.map(Effect.all([store.head(runId), Stream.runCollect(store.read(runId))]), ([head, records]) => {
        const status = Option.getOrUndefined(head)?.status
        const calls = entered.get(runId) ?? []
        return [
          ...(status?.type === "completed" ? [] : [`nothing_lost: ${runId} is ${JSON.stringify(status)}`]),
          ...(new Set(calls).size === calls.length ? [] : [`writes_once: ${runId} paid twice: ${calls.join(", ")}`]),
          ...(new Set(calls).size >= turns ? [] : [`nothing_lost: ${runId} paid ${calls.length} times`]),
          ...(records.every(({ revision }, index) => revision === index + 1) ? [] : [`fenced: ${runId} has a gap`])
        ]
      }),
    { concurrency: 8 }
  )
  return found.flat()
})
