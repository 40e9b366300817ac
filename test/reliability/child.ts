/**
 * A process to be killed: it runs the errands of a store until it is told to stop, or cut off.
 *
 * Its one argument is an `Order` as JSON. It says `ready` when the store is
 * open, and `<run> <outcome>` when it is done with a run it was asked for.
 */
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Option from "effect/Option"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import { Kernel, RunStore, RunWorker } from "kernai"
import { createInterface } from "node:readline"
import { agentOf, agents, approving, kernel } from "./errand.ts"

/** Where runs are kept. */
export type Where =
  | { readonly kind: "sqlite"; readonly filename: string }
  | { readonly kind: "file"; readonly directory: string }
  | { readonly kind: "postgres"; readonly url: string }

/** What a process is to do. */
export interface Order {
  /**
   * `begin`: runs `r0`, `r1` and so on to their ends, taking up those that are there. `finish`: only those that are
   * there. `race`: each line on standard input names a run to take up, `run` or `resume`, and the time to do it at.
   * `work`: claims what is submitted until SIGTERM; the line `heap` asks for the bytes it keeps.
   */
  readonly task: "begin" | "finish" | "race" | "work"
  readonly machine: string
  readonly where: Where
  readonly folder: string
  readonly takes: number
  /** See `Site.freezes`. */
  readonly freezes?: boolean
  /** What the ids of runs begin with. Default: `r`. */
  readonly prefix?: string
  /** A kernel of brokenKernels.ts instead of the real one. */
  readonly broken?: string
}

/** The store at a place; only what it needs is loaded. */
export const storeAt = (where: Where): Layer.Layer<RunStore.RunStore, RunStore.StoreError> =>
  Layer.unwrap(
    Effect.promise(async () => {
      switch (where.kind) {
        case "sqlite":
          return (await import("../../src/sql/SqlRunStore.ts")).layerSqlite(where.filename)
        case "file": {
          const { layer } = await import("../../src/file/FileRunStore.ts")
          return Layer.provide(layer(where.directory), NodeFileSystem.layer)
        }
        case "postgres": {
          const { layer } = await import("../../src/sql/PgRunStore.ts")
          return layer({ url: Redacted.make(where.url), maxConnections: 3, pollInterval: "1 hour" })
        }
      }
    })
  )

const say = (line: string) => process.stdout.write(`${line}\n`)

/** Brings one run on, and tells how that ended. */
const bring = Effect.fnUntraced(function* (runId: string, machine: string, begins: boolean) {
  const options = { runId, workerId: machine }
  const agent = agentOf(runId)
  const resume = Kernel.resume(agent, runId, options)
  return endOf(yield* Effect.exit(approving(runId, begins ? Kernel.run(agent, "go", options) : resume, resume)))
})

const endOf = (exit: Exit.Exit<unknown, { readonly _tag: string }>): string =>
  Exit.isSuccess(exit)
    ? "completed"
    : Option.match(Cause.findErrorOption(exit.cause), {
        onNone: () => Cause.pretty(exit.cause),
        onSome: (error) => error._tag
      })

const walk = Effect.fnUntraced(function* ({ machine, prefix = "r", task }: Order) {
  const store = yield* RunStore.RunStore
  for (let number = 0; ; number++) {
    const runId = `${prefix}${number}`
    const head = yield* store.head(runId)
    if (Option.isNone(head) && task === "finish") return
    if (Option.isSome(head) && head.value.status.type === "completed") continue
    say(`${runId} ${yield* bring(runId, machine, Option.isNone(head))}`)
  }
})

const race = Effect.fnUntraced(function* ({ machine }: Order) {
  const lines = yield* Queue.unbounded<string>()
  createInterface({ input: process.stdin }).on("line", (line) => Queue.offerUnsafe(lines, line))
  while (true) {
    const [verb, runId = "", at] = (yield* Queue.take(lines)).split(" ")
    // Two that look at one clock start at one moment, as near as processes can.
    while (Date.now() < Number(at));
    say(`${runId} ${yield* bring(runId, machine, verb === "run")}`)
  }
})

const work = ({ machine }: Order) => {
  createInterface({ input: process.stdin }).on("line", () => {
    globalThis.gc?.()
    say(`heap ${process.memoryUsage().heapUsed}`)
  })
  return RunWorker.run({
    agents,
    workerId: machine,
    lease: "1 second",
    pollInterval: "20 millis",
    retries: () => true,
    onRun: ({ runId }, exit) => Effect.sync(() => say(`${runId} ${endOf(exit)}`))
  })
}

const main = Effect.fnUntraced(function* (order: Order) {
  yield* RunStore.RunStore
  say("ready")
  yield* order.task === "work" ? work(order) : order.task === "race" ? race(order) : walk(order)
})

if (import.meta.filename === process.argv[1]) {
  const order: Order = JSON.parse(process.argv[2] ?? "{}")
  const { broken, ...rest } = order
  const site = { ...rest, isSilent: order.task === "race" }
  const lies = broken === undefined ? undefined : (await import("../support/brokenKernels.ts")).named(broken)
  const layer = Layer.provideMerge(kernel(lies === undefined ? site : { ...site, kernel: lies }), storeAt(order.where))
  const fiber = Effect.runFork(Effect.provide(main(order), Layer.merge(layer, Logger.layer([]))))
  process.once("SIGTERM", () => fiber.interruptUnsafe())
  // Nobody is left to stop it.
  process.stdin.on("close", () => process.exit(1)).resume()
  fiber.addObserver((exit) => {
    if (Exit.isFailure(exit) && !Cause.hasInterruptsOnly(exit.cause)) process.stderr.write(Cause.pretty(exit.cause))
    process.exit(Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause) ? 0 : 1)
  })
}
