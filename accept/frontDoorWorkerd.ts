/**
 * The example for Cloudflare Workers in workerd: a run waits for a person while the process restarts.
 */
import { build } from "esbuild"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { consumer, type Packed } from "./packed.ts"
import { attempt, freePort, type Line, root } from "./support.ts"

const config = (disk: string, port: number) => `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [ (name = "main", worker = .worker), (name = "disk", disk = (path = "${disk}", writable = true)) ],
  sockets = [ (name = "http", address = "127.0.0.1:${port}", http = (), service = "main") ]
);
const worker :Workerd.Worker = (
  modules = [ (name = "worker.js", esModule = embed "worker.js") ],
  compatibilityDate = "2026-10-01",
  durableObjectNamespaces = [ (className = "Desk", uniqueKey = "desk", enableSql = true) ],
  durableObjectStorage = (localDisk = "disk"),
  bindings = [ (name = "DESKS", durableObjectNamespace = "Desk") ]
);
`

/** Starts workerd, waits until it lists runs, and ends it after `body`. */
const inWorkerd = async <A>(place: string, runs: string, body: () => Promise<A>): Promise<A> => {
  const child = spawn(join(root, "accept/node_modules/.bin/workerd"), ["serve", "config.capnp"], { cwd: place })
  const ended = once(child, "exit")
  try {
    for (let tries = 0; tries < 100; tries++) {
      const isUp = await fetch(runs).then(
        ({ ok }) => ok,
        () => false
      )
      if (isUp) return await body()
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    throw new Error("workerd does not answer")
  } finally {
    child.kill()
    await ended
  }
}

const post = async (address: string, body: string) => (await fetch(address, { method: "POST", body })).text()

/** Starts a run in one process and approves it in the next. */
const overRestart = async (packed: Packed): Promise<Omit<Line, "line">> => {
  const place = consumer(packed, "workerd", {})
  mkdirSync(join(place, "disk"))
  const examples = ["durableObject.ts", "durableObjectRunStore.ts", "keyValueRunStore.ts"]
  for (const file of examples) cpSync(join(place, "node_modules/kernai/examples", file), join(place, file))
  const bundle = join(place, "worker.js")
  const options = { bundle: true, format: "esm", platform: "browser", minify: true, target: "es2024" } as const
  const entryPoints = [join(place, "durableObject.ts")]
  await build({ ...options, entryPoints, outfile: bundle, logLevel: "error" })
  const port = await freePort()
  const runs = `http://127.0.0.1:${port}/acme/runs`
  writeFileSync(join(place, "config.capnp"), config(join(place, "disk"), port))
  const waits = await inWorkerd(place, runs, () => post(runs, "Refund order 7."))
  const text = await inWorkerd(place, runs, async () => {
    const [run]: ReadonlyArray<{ readonly runId: string } | undefined> = JSON.parse(await (await fetch(runs)).text())
    return post(`${runs}/${run?.runId}/approve`, "")
  })
  const count = examples
    .map((file) => readFileSync(join(place, file), "utf8").split("\n").length - 1)
    .reduce((sum, lines) => sum + lines, 0)
  return {
    pass: waits.includes("approval_required") && text.includes("Order 7 is refunded.") && count < 400,
    figure: `${count} lines (less than 400), ${(readFileSync(bundle).length / 1024).toFixed(0)} KiB; ${waits}; ${text}`
  }
}

/** The Worker and its Durable Object, over the packed tarball. */
export const inWorkers = async (packed: Packed): Promise<ReadonlyArray<Line>> => [
  await attempt("a run in a Durable Object of workerd waits for a person over a restart", () => overRestart(packed))
]
