/**
 * A process of the chaos: a worker, or a runner of a cluster, to be stopped in any way.
 *
 * Its one argument is a `Side` as JSON. It prints `ready` when it works, and SIGTERM ends it. Each call is noted in a ledger
 * before it does anything; a resume learns from it which calls in flight were entered.
 */
import { Cause, Effect, Exit, Layer, Logger, Redacted, References, Schedule } from "effect"
import { Content, type Kernel, RunStore, RunWorker } from "kernai"
import { ClusterKernel, ClusterNode } from "kernai/cluster"
import { PgRunStore } from "kernai/sql"
import * as fs from "node:fs"
import type { Planted } from "./planted.ts"
import { agentOf, type Effects, kernelOf } from "./runs.ts"

/** What a process is, and where. */
export interface Side {
  readonly kind: "workers" | "cluster"
  readonly name: string
  readonly url: string
  readonly version: number
  /** The file of all calls that were entered. */
  readonly ledger: string
  /** The file of its log. */
  readonly log: string
  /** Milliseconds until another process has the runs of one that died. */
  readonly lease: number
  /** Where a runner is reached, and where it listens. */
  readonly port: number
  readonly listenPort: number
  readonly planted?: Planted | undefined
}

const line = (runId: string, callId: string) => `${runId} ${callId} `

const effects = ({ ledger, name }: Side): Effects => ({
  pay: (runId, callId) =>
    Effect.suspend(() => {
      fs.appendFileSync(ledger, `${line(runId, callId)}${name} ${new Date().toISOString()}\n`)
      return Effect.as(Effect.sleep(20), "paid")
    }),
  burn: Effect.andThen(
    Effect.sync(() => process.kill(process.pid, "SIGKILL")),
    Effect.never
  )
})

/** Calls that are in the ledger took place; the others were never entered. */
const resume =
  ({ ledger, planted }: Side) =>
  (head: RunStore.RunHead) =>
    Effect.map(RunStore.inFlight(head.runId), (calls) => {
      const entered = fs.readFileSync(ledger, "utf8")
      const verdict = (runId: string, callId: string): Kernel.Recovery => {
        if (planted === "leaves calls in flight") return "fail"
        return planted !== "retries calls in flight" && entered.includes(line(runId, callId))
          ? { resolve: { output: [Content.text("paid")] } }
          : "retry"
      }
      return { recover: Object.fromEntries(calls.map(({ callId, runId }) => [callId, verdict(runId, callId)])) }
    })

const optionsOf = (side: Side) => ({
  workerId: side.name,
  agents: [agentOf(side.version)],
  resume: resume(side),
  onRun: () => Effect.void,
  retry: Schedule.upTo(Schedule.spaced("300 millis"), { times: 3 })
})

const store = ({ planted, url }: Side) => {
  const store = Layer.orDie(PgRunStore.layer({ url: Redacted.make(url), maxConnections: 5 }))
  if (planted !== "forgets to continue") return store
  // It hears of runs that are offered, and never looks for those of processes that died.
  const offersAlone = Effect.map(RunStore.RunStore, (store) => ({ ...store, list: () => Effect.succeed([]) }))
  return Layer.provide(Layer.effect(RunStore.RunStore, offersAlone), store)
}

const worker = (side: Side) =>
  RunWorker.layer({
    ...optionsOf(side),
    concurrency: 20,
    lease: side.lease,
    pollInterval: "500 millis"
  }).pipe(Layer.provide(kernelOf(side.version, effects(side))), Layer.provide(store(side)))

const runner = (side: Side) =>
  ClusterKernel.layer({
    ...optionsOf(side),
    pollInterval: 2 * side.lease,
    drain: side.lease / 3
  }).pipe(
    Layer.provide([
      kernelOf(side.version, effects(side)).pipe(Layer.provideMerge(store(side))),
      ClusterNode.layer({
        host: "127.0.0.1",
        port: side.port,
        listenPort: side.listenPort,
        lockExpiration: side.lease,
        joinDelay: 500
      })
    ]),
    Layer.provide(Layer.orDie(PgRunStore.layerSqlClient({ url: Redacted.make(side.url) })))
  )

const main = (side: Side): Effect.Effect<never, unknown> => {
  const ready = Layer.effectDiscard(Effect.sync(() => process.stdout.write("ready\n")))
  return side.kind === "workers"
    ? Layer.launch(Layer.provideMerge(ready, worker(side)))
    : Layer.launch(Layer.provideMerge(ready, runner(side)))
}

const side: Side = JSON.parse(process.argv[2] ?? "{}")

/** Writes a line to the log, which has a limit. */
const log = (text: string): void => {
  if (written > 300_000) return
  written += text.length
  fs.appendFileSync(side.log, `${text}\n`)
}
let written = 0
const note = (what: string) => log(`timestamp=${new Date().toISOString()} ${what}`)

const fiber = main(side).pipe(
  Effect.provide(Logger.layer([Logger.map(Logger.formatLogFmt, log)])),
  Effect.provideService(References.MinimumLogLevel, "Debug"),
  Effect.runFork
)
process.on("SIGTERM", () => {
  note("SIGTERM")
  fiber.interruptUnsafe()
})
// It did not end after SIGTERM.
process.on("SIGUSR2", () => note(`held by ${process.getActiveResourcesInfo().join(", ")}`))
// The process that started it is gone.
process.stdin.on("close", () => process.exit(1)).resume()
fiber.addObserver((exit) => {
  const isStopped = Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)
  note(isStopped ? "stopped" : Cause.pretty(exit.cause))
  if (!isStopped) process.stderr.write(Cause.pretty(exit.cause))
  process.exit(isStopped ? 0 : 1)
})
