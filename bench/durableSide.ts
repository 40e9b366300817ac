/**
 * One side of the comparison of durable runs: a process that executes runs on a PostgreSQL database.
 *
 * Its one argument is a `Side` as JSON. It prints `ready`. Where it runs alone, the line `go` makes it execute all runs, after
 * some to get warm; a worker executes what is submitted. The line `cpu` asks for the CPU milliseconds it has used.
 */
import { createInterface } from "node:readline"

export const peers = ["kernai", "dbos", "langgraph", "effect"] as const

/** A side. */
export interface Side {
  readonly peer: (typeof peers)[number]
  readonly role: "alone" | "worker"
  readonly url: string
}

/** What a peer can do: execute a run here, or work on submitted ones until the process ends. */
export interface Peer {
  readonly run: (id: string) => Promise<unknown>
}

/** Steps of a run: a reply of a model, and a call that changes something, each stored. */
export const steps = 10

/** Runs at once. */
export const concurrency = 20

export const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, number) => `${prefix}${number}`)

const open = async ({ peer, role, url }: Side): Promise<Peer> => {
  const { open }: { open: (url: string, role: Side["role"]) => Promise<Peer> } = await import(`./durable/${peer}.ts`)
  return open(url, role)
}

const all = async ({ run }: Peer, runs: ReadonlyArray<string>): Promise<void> => {
  const left = [...runs]
  const one = async () => {
    for (let id = left.pop(); id !== undefined; id = left.pop()) await run(id)
  }
  await Promise.all(Array.from({ length: concurrency }, one))
}

const serve = (peer: Peer): void => {
  const say = (line: string) => process.stdout.write(`${line}\n`)
  createInterface({ input: process.stdin })
    .on("line", (line) => {
      const [word = "", prefix = "", count = ""] = line.split(" ")
      const { system, user } = process.cpuUsage()
      if (word === "cpu") say(`cpu ${(system + user) / 1_000}`)
      if (word === "go") void all(peer, ids(prefix, Number(count))).then(() => say("done"))
    })
    .on("close", () => process.exit(0))
  say("ready")
}

// Its peers import this module, so it does not wait for them.
if (import.meta.filename === process.argv[1]) void open(JSON.parse(process.argv[2] ?? "{}")).then(serve)
