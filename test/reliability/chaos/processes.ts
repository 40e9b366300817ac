/**
 * The processes of the chaos. Each has a slot; a process that ends in any way is replaced by a new one of its slot.
 */
import * as esbuild from "esbuild"
import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { createServer } from "node:net"
import { basename, dirname, join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import * as Link from "../../cluster/link.ts"
import type { Side } from "./side.ts"

/** A process that works. */
export interface Running {
  readonly name: string
  /** Its connections to the database, and of others to it. */
  readonly links: ReadonlyArray<Link.Link>
  readonly signal: (signal: NodeJS.Signals) => void
  readonly ended: Promise<void>
}

/** A place for one process at a time. */
export interface Slot {
  /** The process, once it works. */
  readonly now: () => Running | undefined
  /** Ends the slot with its process. */
  readonly close: () => Promise<void>
  /** What processes said that ended by themselves. */
  readonly errors: ReadonlyArray<string>
}

/** What the processes of a slot are told, but for their names and ports. */
export type Given = Omit<Side, "name" | "version" | "url" | "port" | "listenPort" | "log">

/** Writes the program of a process, with all that it needs in a few files, to a folder. */
export const bundle = async (folder: string): Promise<string> => {
  for (const { contents, path } of await (built ??= build())) writeFileSync(join(folder, basename(path)), contents)
  return join(folder, "side.mjs")
}

/** Once for all: to stop the bundler would leave a second build beside it without an answer. */
let built: ReturnType<typeof build> | undefined

const build = async (): Promise<ReadonlyArray<esbuild.OutputFile>> => {
  const { outputFiles } = await esbuild.build({
    entryPoints: [join(import.meta.dirname, "side.ts")],
    bundle: true,
    splitting: true,
    write: false,
    outdir: "/",
    platform: "node",
    format: "esm",
    outExtension: { ".js": ".mjs" },
    conditions: ["kernai-source"],
    banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' }
  })
  await esbuild.stop()
  return outputFiles
}

const freePort = () =>
  new Promise<number>((resolve) => {
    const probe = createServer()
    probe.listen(0, "127.0.0.1", () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })

/** Starts a process, and calls `ready` when it works. Resolves when it has ended, with what it said. */
const live = async (
  program: string,
  given: Given,
  { name, port, urlAt, version }: { name: string; port: number; urlAt: (port: number) => string; version: number },
  ready: (running: Running) => void
): Promise<string> => {
  const listenPort = await freePort()
  const links = [await Link.open(port), await Link.open(listenPort)] as const
  const [database, others] = links
  const log = join(dirname(given.ledger), `${name}.log`)
  const side: Side = { ...given, name, version, log, url: urlAt(database.port), port: others.port, listenPort }
  const child = spawn(process.execPath, [program, JSON.stringify(side)], {
    env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" },
    stdio: ["pipe", "pipe", "pipe"]
  })
  let error = ""
  child.stderr.on("data", (data) => (error += data))
  child.stdin.on("error", () => {})
  const ended = new Promise<void>((resolve) => child.on("close", () => resolve()))
  child.stdout.once("data", () => ready({ name, links, signal: (signal) => void child.kill(signal), ended }))
  await ended
  for (const link of links) link.close()
  return child.signalCode === null && child.exitCode !== 0 ? `${name} ended with ${child.exitCode}: ${error}` : ""
}

/** Keeps a process in a slot, each of the version that is current when it starts. */
export const open = (
  slot: string,
  program: string,
  given: Given,
  at: { readonly port: number; readonly urlAt: (port: number) => string; readonly version: () => number }
): Slot => {
  let now: Running | undefined
  let isClosed = false
  const errors: Array<string> = []
  const keep = async () => {
    for (let life = 0; !isClosed; life++) {
      const error = await live(program, given, { ...at, name: `${slot}.${life}`, version: at.version() }, (running) => {
        now = running
        if (isClosed) running.signal("SIGKILL")
      })
      now = undefined
      if (error !== "") errors.push(error)
      await sleep(200)
    }
  }
  const kept = keep()
  return {
    now: () => now,
    close: async () => {
      isClosed = true
      now?.signal("SIGKILL")
      await kept
    },
    errors
  }
}
