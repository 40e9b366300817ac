/**
 * Cancels a tree of 100 child runs that another process runs, over SQLite and PostgreSQL, and prints how long it took
 * until the last of its calls had stopped: `cancel on <store>: <N> ms, <M> runs, <L> left`.
 *
 * The other process is this file, started with the address of its store.
 */
import { NodeServices } from "@effect/platform-node"
import { Clock, Effect, Layer, Redacted, Schema } from "effect"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunStore, Skill, SkillRegistry } from "kernai"
import { PgRunStore, SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"
import { type ChildProcess, spawn } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { fileURLToPath } from "node:url"
import { command } from "../support/blocks.ts"
import * as Postgres from "../support/postgres.ts"
import { plan } from "../support/workflow.ts"

const size = 100

const storeAt = (address: string): Layer.Layer<RunStore.RunStore, RunStore.StoreError> =>
  address.startsWith("postgres:")
    ? PgRunStore.layer({ url: Redacted.make(address) })
    : SqlRunStore.layerSqlite({ filename: address })

// ---------------------------------------------------------------- the process that runs the tree

let stopped = 0
let entered = 0
let lastAt = 0

const wait = Skill.make("wait", {
  description: "Waits",
  input: Schema.Struct({}),
  execute: () =>
    Effect.suspend(() => {
      if (++entered === size) console.log("ready")
      return Effect.onInterrupt(Effect.never, () =>
        Effect.map(Clock.currentTimeMillis, (now) => {
          stopped++
          lastAt = now
        })
      )
    })
})

const owner = (address: string) =>
  Effect.gen(function* () {
    const tasks = Array.from({ length: size }, (_, index) => `task-${index}`)
    const provider = MockProvider.make().onCall(({ messages }) =>
      JSON.stringify(messages.at(-1)).includes("do task-") ? command("wait") : plan(tasks)
    )
    const agent = Agent.make({
      instructions: "",
      model: "m",
      skills: [wait],
      taskConcurrency: size,
      spawn: { maxAgents: size + 1, maxDepth: 1 }
    })
    const error = yield* Effect.flip(Kernel.run(agent, "go", { provider, runId: "tree" }))
    console.log(`ended ${error._tag} ${stopped} ${lastAt}`)
  }).pipe(
    Effect.provide(
      Kernel.layerNoProvider.pipe(
        Layer.provide([SkillRegistry.layer(wait), ProtocolRegistry.layer(), MediaStore.layerMemory, storeAt(address)])
      )
    )
  )

// ---------------------------------------------------------------- the process that cancels it

/** Waits for a line of the other process that begins with a word. */
const lineOf = (child: ChildProcess) => {
  const lines: Array<string> = []
  let wake = () => {}
  if (child.stdout !== null) {
    createInterface({ input: child.stdout }).on("line", (line) => {
      lines.push(line)
      wake()
    })
  }
  return (word: string) =>
    Effect.callback<string>((resume) => {
      wake = () => {
        const found = lines.find((line) => line.startsWith(word))
        if (found !== undefined) resume(Effect.succeed(found))
      }
      wake()
    })
}

const measure = (name: string, address: string) =>
  Effect.gen(function* () {
    const child = spawn(process.execPath, ["--conditions=kernai-source", fileURLToPath(import.meta.url), address], {
      stdio: ["ignore", "pipe", "inherit"]
    })
    yield* Effect.addFinalizer(() => Effect.sync(() => child.kill()))
    const line = lineOf(child)
    const store = yield* RunStore.RunStore
    yield* line("ready")
    // A process that has read a run before, as a server has.
    yield* store.load("tree")
    const from = yield* Clock.currentTimeMillis
    yield* Kernel.cancel("tree", { reason: "measured", by: "another process" })
    const [, tag, count, at] = (yield* line("ended")).split(" ")
    const heads = yield* store.list({ rootRunId: "tree" })
    const left = heads.filter(({ status }) => status.type !== "cancelled").length + size - Number(count)
    console.log(`cancel on ${name}: ${Number(at) - from} ms, ${heads.length} runs, ${left} left, ${tag}`)
  }).pipe(Effect.scoped, Effect.provide(storeAt(address)))

const both = Effect.gen(function* () {
  const folder = mkdtempSync(join(tmpdir(), "kernai-cancel-"))
  yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(folder, { recursive: true, force: true })))
  yield* measure("sqlite", join(folder, "runs.db"))
  const { host, password, port, username } = yield* Postgres.start()
  yield* measure("postgres", `postgres://${username}:${encodeURIComponent(password)}@${host}:${port}/postgres`)
})

const address = process.argv[2]
if (address === undefined) await Effect.runPromise(both.pipe(Effect.scoped, Effect.provide(NodeServices.layer)))
else await Effect.runPromise(owner(address).pipe(Effect.timeout("2 minutes")))
process.exit(0)
