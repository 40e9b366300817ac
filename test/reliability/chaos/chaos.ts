/**
 * Workers, or runners of a cluster, on PostgreSQL under everything that may happen to them, for as long as one wants.
 *
 * Time passes in cycles: faults happen to three processes under load, then all is healed, and every run must be at rest
 * within half a minute. In the end each run is judged by its journal and by the calls that it entered.
 */
import * as PgClient from "@effect/sql-pg/PgClient"
import { Context, Effect, Exit, Fiber, Layer, Logger, Option, Redacted, Schedule, Scope, Stream } from "effect"
import { Kernel, RunStore } from "kernai"
import { ClusterKernel, ClusterNode } from "kernai/cluster"
import { PgRunStore } from "kernai/sql"
import * as fs from "node:fs"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { folder } from "../../support/folder.ts"
import * as Postgres from "../../support/postgres.ts"
import { randomOf } from "../../support/random.ts"
import * as Evidence from "./evidence.ts"
import { chosen, type World } from "./faults.ts"
import { judge } from "./judge.ts"
import { bundle, open } from "./processes.ts"
import { agentOf, kernelOf, type Kind, kindOf, noEffects, nobody } from "./runs.ts"
import type { Side } from "./side.ts"
import { lookEvery, Watch } from "./watch.ts"

export interface Settings extends Pick<Side, "kind" | "planted"> {
  readonly minutes: number
  readonly seed?: number
  /** Milliseconds between faults. Default: 2,000. */
  readonly faultEvery?: number
  /** A folder that does not exist, for the evidence of findings. */
  readonly evidence?: string
}

export interface Outcome {
  readonly runs: number
  readonly calls: number
  readonly faults: { readonly [name: string]: number }
  /** Milliseconds from healing until every run was at rest, the longest of all cycles. */
  readonly slowest: number
  /** What processes said that ended by themselves. They are replaced. */
  readonly ends: ReadonlyArray<string>
  readonly findings: ReadonlyArray<string>
  /** The folder with the evidence of the findings. */
  readonly evidence: string | undefined
}

const lease = 3_000
/** How long faults happen in a cycle, and how long poisoned runs are submitted at its beginning. */
const faultsMs = 40_000
const poisonMs = 12_000
/** How long after healing a run may not be at rest. */
const mostAfterHealing = 30_000

/** The chaos while it lasts. */
interface Chaos extends World {
  readonly services: Context.Context<Kernel.Kernel | RunStore.RunStore>
  readonly version: () => number
  readonly submitted: Array<string>
  readonly faultEvery: number
  readonly counts: { [name: string]: number }
  readonly noted: Array<string>
  slowest: number
}

/** A client, to submit and to look. */
const clientAt = (kind: Side["kind"], url: string): Layer.Layer<Kernel.Kernel | RunStore.RunStore, unknown> => {
  const kernel = Layer.provideMerge(kernelOf(0, noEffects), PgRunStore.layer({ url: Redacted.make(url) }))
  const client = ClusterKernel.layerClient.pipe(Layer.provideMerge(ClusterNode.layerClient()))
  return kind === "workers" ? kernel : Layer.provide(client, [kernel, PgClient.layer({ url: Redacted.make(url) })])
}

// ---------------------------------------------------------------- load

/** Submits a run, also when the database goes away meanwhile. */
const submit = ({ services, submitted, version }: Chaos, kind: Kind): Promise<unknown> => {
  const runId = `${kind}${submitted.length}`
  submitted.push(runId)
  const agent = kind === "nobody" ? nobody : agentOf(version())
  return Kernel.submit(agent, kind, { runId }).pipe(
    Effect.catchTag("RunExists", () => Effect.void),
    Effect.retry(Schedule.spaced("200 millis")),
    Effect.provideContext(services),
    Effect.runPromise
  )
}

/** The runs that should be under way or at rest, and are not at rest. Asks again until the store answers. */
const unfinished = ({ services }: Chaos): Promise<ReadonlyArray<RunStore.RunHead>> =>
  Effect.runPromise(
    Context.get(services, RunStore.RunStore)
      .list({ status: ["queued", "running", "interrupted"], roots: true })
      .pipe(
        Effect.retry(Schedule.spaced("200 millis")),
        Effect.map((heads) => heads.filter(({ runId }) => kindOf(runId) !== "nobody"))
      )
  )

/** Submits runs until everything is healed. */
const load = async (chaos: Chaos, isHealed: () => boolean): Promise<void> => {
  const poisonUntil = Date.now() + poisonMs
  for (let beat = 0; !isHealed(); beat++) {
    if ((await unfinished(chaos)).length < 20) for (let run = 0; run < 4; run++) await submit(chaos, "pay")
    if (beat % 20 === 5) await submit(chaos, "nobody")
    if (beat % 20 === 10 && Date.now() < poisonUntil) await submit(chaos, "poison")
    await sleep(500)
  }
}

/** Lets faults happen for a while, and waits until all of them are healed and every process works. */
const misfortune = async (chaos: Chaos): Promise<void> => {
  const until = Date.now() + faultsMs
  const healing: Array<Promise<void>> = []
  while (Date.now() < until) {
    await sleep(chaos.faultEvery * (0.5 + chaos.random()))
    const [name, fault] = chosen(chaos.random)
    chaos.counts[name] = (chaos.counts[name] ?? 0) + 1
    healing.push(fault(chaos))
    // One rollout, and one restart of the database, at a time.
    if (name === "rolled out" || name === "database restarted") await healing.at(-1)
  }
  await Promise.all(healing)
  const isStarting = () => chaos.slots.some((slot) => slot.now() === undefined)
  for (let beat = 0; isStarting() && beat < 1_200; beat++) await sleep(50)
  if (isStarting()) chaos.findings.push("stuck: a process did not start")
}

/** Faults under load, then healing, after which every run comes to rest. */
const cycle = async (chaos: Chaos): Promise<void> => {
  let isHealed = false
  const faults = misfortune(chaos).finally(() => (isHealed = true))
  await Promise.all([load(chaos, () => isHealed), faults])
  const healed = Date.now()
  const watch = new Watch(healed)
  let isReported = false
  for (;;) {
    const left = await unfinished(chaos)
    const took = Date.now() - healed
    if (left.length === 0) {
      chaos.slowest = Math.max(chaos.slowest, took)
      return
    }
    const stuck = left.filter((head) => watch.waitsFor(head) > mostAfterHealing)
    if (stuck.length > 0 && !isReported) {
      isReported = true
      const what = stuck.map(
        ({ lease, revision, runId, status }) =>
          `${runId} at ${revision} is ${status.type} under ${JSON.stringify(lease)}`
      )
      chaos.findings.push(...what.map((what) => `stuck: ${what} ${took} ms after healing`))
    }
    if (watch.waited > 3 * mostAfterHealing) return
    await sleep(lookEvery)
    watch.look(Date.now())
  }
}

// ---------------------------------------------------------------- the end

/** Judges every run that was submitted. */
const judged = async ({ services, submitted }: Chaos, calls: ReadonlyMap<string, ReadonlyArray<string>>) => {
  const store = Context.get(services, RunStore.RunStore)
  const one = (runId: string) =>
    Effect.map(Effect.all([store.head(runId), Stream.runCollect(store.read(runId))]), ([head, records]) => {
      const status = Option.getOrUndefined(head)?.status
      const isWhole = records.every(({ revision }, index) => revision === index + 1)
      const error = status?.type === "failed" ? status.error.tag : undefined
      return judge({
        runId,
        status: status?.type,
        error,
        isWhole,
        records: records.length,
        calls: calls.get(runId) ?? []
      })
    })
  return (await Effect.runPromise(Effect.forEach(submitted, one, { concurrency: 8 }))).flat()
}

/** The calls of each run as the lines of the ledger have them. */
const callsIn = (lines: ReadonlyArray<string>): ReadonlyMap<string, ReadonlyArray<string>> => {
  const calls = new Map<string, Array<string>>()
  for (const line of lines) {
    const [runId = "", callId = ""] = line.split(" ")
    const entered = calls.get(runId)
    if (entered === undefined) calls.set(runId, [callId])
    else entered.push(callId)
  }
  return calls
}

const ledgerName = "ledger"

const storeOf = ({ services }: Chaos) => Context.get(services, RunStore.RunStore)

const make = Effect.fnUntraced(function* ({ faultEvery = 2_000, kind, planted, seed = Date.now() }: Settings) {
  // A commit survives the crash of the server.
  const server = yield* Postgres.start({ durable: true })
  const urlAt = (port: number) => `postgres://${server.username}:${server.password}@${server.host}:${port}/postgres`
  const place = yield* folder
  const ledger = join(place, ledgerName)
  fs.writeFileSync(ledger, "")
  const program = yield* Effect.promise(() => bundle(place))
  const services = yield* Layer.build(Layer.merge(clientAt(kind, urlAt(server.port)), Logger.layer([])))
  let version = 0
  const noted: Array<string> = []
  const at = { port: server.port, urlAt, version: () => version }
  const slots = yield* Effect.acquireRelease(
    Effect.sync(() => ["a", "b", "c"].map((name) => open(name, program, { kind, ledger, lease, planted }, at))),
    (slots) => Effect.promise(() => Promise.all(slots.map(({ close }) => close())))
  )
  const chaos: Chaos = {
    server,
    url: urlAt(server.port),
    slots,
    stopped: new Set(),
    lease,
    random: randomOf(seed),
    nextVersion: () => void version++,
    findings: [],
    services,
    version: () => version,
    submitted: [],
    faultEvery,
    counts: {},
    noted,
    note: (what) => void noted.push(`${new Date().toISOString()} ${what}`),
    slowest: 0
  }
  return { chaos, place }
})

/** Lets chaos happen for some minutes, at least one cycle, and judges what is left. */
export const chaos = async (settings: Settings): Promise<Outcome> => {
  const scope = Scope.makeUnsafe()
  const { chaos, place } = await Effect.runPromise(Scope.provide(make(settings), scope))
  const until = Date.now() + settings.minutes * 60_000
  do await cycle(chaos)
  while (Date.now() + faultsMs < until)
  // A line cut off by a kill is none.
  const ledger = fs.readFileSync(join(place, ledgerName), "utf8").split("\n").slice(0, -1)
  const calls = callsIn(ledger)
  const findings = [...chaos.findings, ...(await judged(chaos, calls))]
  const ends = chaos.slots.flatMap(({ errors }) => errors)
  const evidence =
    settings.evidence === undefined
      ? undefined
      : await Evidence.keep(settings.evidence, {
          findings,
          ends,
          faults: chaos.noted,
          ledger,
          logs: place,
          journalOf: (runId) => Effect.runPromise(Stream.runCollect(storeOf(chaos).read(runId)))
        })
  // A client or a server that does not end hides no result.
  const closed = Effect.timeoutOption(
    Effect.forkDetach(Scope.close(scope, Exit.void)).pipe(Effect.flatMap(Fiber.join)),
    "30 seconds"
  )
  if (Option.isNone(await Effect.runPromise(closed))) findings.push("stuck: the client did not end within 30 s")
  return {
    runs: chaos.submitted.length,
    calls: [...calls.values()].reduce((sum, { length }) => sum + length, 0),
    faults: chaos.counts,
    slowest: chaos.slowest,
    ends,
    findings,
    evidence
  }
}

if (import.meta.filename === process.argv[1]) {
  const settings: Settings = JSON.parse(process.argv[2] ?? '{"kind":"workers","minutes":1}')
  const { ends, ...outcome } = await chaos(settings)
  console.log(JSON.stringify({ ...outcome, ends: ends.length }, null, 1))
  process.exit(0)
}
