/**
 * Real processes on real stores: killed, stopped, and set against each other, then judged by.
 */
import * as esbuild from "esbuild"
import { Context, Effect, Layer, Option, type Scope } from "effect"
import { Kernel, RunStore } from "kernai"
import { spawn } from "node:child_process"
import { statSync, writeFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"
import { basename, join } from "node:path"
import { createInterface } from "node:readline"
import { expireLeases, keep } from "../../src/testing/internal/crashRun.ts"
import { judgeFacts, judgeKept, judgeSame } from "../../src/testing/internal/reliabilityRules.ts"
import { keyOf } from "../../src/testing/internal/watchedProcess.ts"
import * as Folders from "../support/folder.ts"
import * as Postgres from "../support/postgres.ts"
import { randomOf } from "../support/random.ts"
import { type Order, storeAt, type Where } from "./child.ts"
import { agentOf, approving, plain } from "./errand.ts"
import * as Ledger from "./ledger.ts"

/** What became of a number of rounds. */
export interface Outcome {
  /** How often a process was killed, stopped, or set against another. */
  readonly rounds: number
  /** How many skills were entered. */
  readonly entered: number
  /** How often a store refused one of two. */
  readonly refused: number
  readonly findings: ReadonlyArray<string>
}

export interface Settings {
  readonly on?: Where["kind"]
  /** Keeps files on a disk that has to be waited for. */
  readonly durable?: boolean
  /** The name of a kernel in brokenKernels.ts. */
  readonly broken?: string
  /** What chance is made of. */
  readonly seed?: number
  /** What the ids of runs begin with, which decides about their agents. Default: `r`. */
  readonly prefix?: string
}

// ---------------------------------------------------------------- places

export interface Place {
  readonly where: Where
  readonly folder: string
  readonly store: RunStore.RunStoreShape
  readonly submit: (runId: string) => Promise<unknown>
}

const place = Effect.fnUntraced(function* ({
  durable = false,
  on = "sqlite"
}: Settings): Effect.fn.Return<Place, unknown, Scope.Scope> {
  const folder = yield* durable ? Folders.durableFolder : Folders.folder
  for (const [name, text] of yield* Effect.promise(() => (bundled ??= bundle())))
    writeFileSync(join(folder, name), text)
  const where: Where =
    on === "postgres"
      ? { kind: on, url: (yield* Postgres.database).url }
      : on === "file"
        ? { kind: on, directory: join(folder, "runs") }
        : { kind: on, filename: join(folder, "runs.db") }
  const context = yield* Layer.build(Layer.provideMerge(plain, storeAt(where)))
  return {
    where,
    folder,
    store: Context.get(context, RunStore.RunStore),
    submit: (runId) => Effect.runPromise(Effect.provideContext(Kernel.submit(agentOf(runId), "go", { runId }), context))
  }
})

/** Compares everything a place has with runs that nothing disturbed. */
const judge = async ({
  folder,
  store
}: Place): Promise<{ readonly findings: ReadonlyArray<string>; entered: number }> => {
  const kept = await Effect.runPromise(keep(store))
  const facts = Ledger.merge(Ledger.read(folder), kept)
  const roots = kept.flatMap(({ runId, state }) => (state?.parentRunId === undefined ? [runId] : []))
  const undisturbed = Effect.gen(function* () {
    for (const runId of roots) {
      const agent = agentOf(runId)
      yield* approving(runId, Kernel.run(agent, "go", { runId }), Kernel.resume(agent, runId))
    }
    return yield* keep(yield* RunStore.RunStore)
  }).pipe(Effect.provide(Layer.provideMerge(plain, RunStore.layerMemory)))
  const findings = [...judgeFacts(facts), ...judgeKept(facts, kept)]
  if (findings.length === 0) findings.push(...judgeSame(await Effect.runPromise(undisturbed), kept))
  const open = kept.flatMap(({ runId, state }) =>
    state?.status.type === "completed" ? [] : [`nothing_lost: ${runId} is ${JSON.stringify(state?.status)} in the end`]
  )
  return {
    findings: [...findings.map(({ detail, rule }) => `${rule}: ${detail}`), ...open],
    entered: facts.filter((fact) => fact.type === "started").length
  }
}

/** Puts a place up, lets `body` loose on it, and judges what is left. */
export const at = (
  settings: Settings,
  body: (
    place: Place,
    order: Pick<Order, "where" | "folder" | "broken" | "prefix">
  ) => Promise<Pick<Outcome, "rounds" | "refused" | "findings">>
): Promise<Outcome> =>
  Effect.gen(function* () {
    const site = yield* place(settings)
    const order = {
      where: site.where,
      folder: site.folder,
      ...(settings.broken === undefined ? {} : { broken: settings.broken }),
      ...(settings.prefix === undefined ? {} : { prefix: settings.prefix })
    }
    const counts = yield* Effect.promise(() => body(site, order))
    const judged = yield* Effect.promise(() => judge(site))
    return { ...counts, ...judged, findings: [...counts.findings, ...judged.findings] }
  }).pipe(Effect.scoped, Effect.runPromise)

// ---------------------------------------------------------------- processes

export interface Child {
  readonly signal: (signal: NodeJS.Signals) => void
  readonly write: (line: string) => void
  /** The next line it says; undefined when it has ended. */
  readonly line: () => Promise<string | undefined>
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly error: string }>
}

/** `child.ts` with all it needs in a few files: a process starts in a third of the time. */
const bundle = async (): Promise<ReadonlyArray<readonly [name: string, text: Uint8Array]>> => {
  const { outputFiles } = await esbuild.build({
    entryPoints: [join(import.meta.dirname, "child.ts")],
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
  return outputFiles.map(({ contents, path }) => [basename(path), contents])
}

let bundled: ReturnType<typeof bundle> | undefined

export const start = async (order: Order, ...flags: ReadonlyArray<string>): Promise<Child> => {
  const child = spawn(process.execPath, [...flags, join(order.folder, "child.mjs"), JSON.stringify(order)], {
    // Nobody starts this very file again.
    env: { ...process.env, NODE_DISABLE_COMPILE_CACHE: "1" },
    stdio: ["pipe", "pipe", "pipe"]
  })
  let error = ""
  child.stderr.on("data", (data) => (error += data))
  child.stdin.on("error", () => {})
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const line = async () => {
    const next = await lines.next()
    return next.done === true ? undefined : next.value
  }
  const ended = new Promise<Awaited<Child["ended"]>>((resolve) =>
    child.on("close", (code, signal) => resolve({ code, signal, error }))
  )
  if ((await line()) !== "ready") throw new Error(`${order.machine} did not start: ${(await ended).error}`)
  return {
    signal: (signal) => void child.kill(signal),
    write: (text) => void child.stdin.write(`${text}\n`),
    line,
    ended
  }
}

/** Waits until a file has so many bytes, though not for ever. */
const grown = async (file: string, bytes: number): Promise<void> => {
  const end = Date.now() + 2_000
  while (statSync(file).size < bytes && Date.now() < end) await sleep(1)
}

/** Brings what is there to its end, in a process that nobody disturbs; tells what kept it from that. */
export const finish = async (order: Omit<Order, "task">): Promise<ReadonlyArray<string>> => {
  const child = await start({ ...order, task: "finish" })
  // For what hangs, not for what is slow.
  const limit = 300
  const timer = setTimeout(() => child.signal("SIGKILL"), limit * 1_000)
  const said: Array<string> = []
  for (let line = await child.line(); line !== undefined; line = await child.line()) said.push(line)
  const { error, signal } = await child.ended
  clearTimeout(timer)
  const isLate = signal === null ? [] : [`nothing_lost: ${order.machine} was not at the end after ${limit} s`]
  const isStuck = said
    .filter((line) => !line.endsWith(" completed"))
    .map((line) => `nothing_lost: ${order.machine}: ${line}`)
  return [...isLate, ...isStuck, ...(error === "" ? [] : [`${order.machine}: ${error}`])]
}

/** Kills a process, waits until it is dead, and lets the others know. */
export const kill = async ({ folder, machine }: Pick<Order, "folder" | "machine">, child: Child): Promise<void> => {
  child.signal("SIGKILL")
  const { error, signal } = await child.ended
  if (signal !== "SIGKILL") throw new Error(`${machine} ended by itself: ${error}`)
  Ledger.bury(folder, machine)
}

// ---------------------------------------------------------------- rounds

/** Kills processes at any moment, one after the other on the same runs. */
export const kills = (count: number, settings: Settings = {}): Promise<Outcome> =>
  at(settings, async ({ store }, order) => {
    const random = randomOf(settings.seed ?? Date.now())
    let rounds = 0
    const next = () => ({ ...order, machine: `k${rounds}`, takes: 3 })
    while (rounds < count) {
      const machine = next()
      const child = await start({ ...machine, task: "begin" })
      // However fast this machine is: it is killed somewhere in what it has to do.
      await grown(join(order.folder, `${machine.machine}.ledger`), random() * 40_000)
      await sleep(random() * 4)
      await kill(machine, child)
      await Effect.runPromise(expireLeases(store))
      rounds++
    }
    return { rounds, refused: 0, findings: await finish(next()) }
  })

/** Sets two processes on one run at one moment: to begin it, or to take it up. */
export const contentions = (count: number, settings: Settings = {}): Promise<Outcome> =>
  at(settings, async (place, order) => {
    const machine = (name: string) => ({ ...order, machine: name, takes: 1 })
    const racers = await Promise.all(["a", "b"].map((name) => start({ ...machine(name), task: "race" })))
    let refused = 0
    for (let round = 0; round < count; round++) {
      const runId = `r${round}`
      const verb = round % 2 === 0 ? "run" : "resume"
      if (verb === "resume") await place.submit(runId)
      const moment = Date.now() + 5
      for (const racer of racers) racer.write(`${verb} ${runId} ${moment}`)
      const ends = await Promise.all(racers.map((racer) => racer.line()))
      if (ends.some((end) => end !== `${runId} completed`)) refused++
    }
    for (const racer of racers) racer.signal("SIGTERM")
    await Promise.all(racers.map((racer) => racer.ended))
    for (const name of ["a", "b"]) Ledger.bury(order.folder, name)
    return { rounds: count, refused, findings: await finish(machine("c")) }
  })

/**
 * Stops a worker between the launch of a `write` call and its entry, and wakes it when the other one has made the call and
 * finished the run. It must not enter the call, and ends with `AgentCrashError`.
 */
export const freezes = (count: number, settings: Settings = {}): Promise<Outcome> =>
  at(settings, async (place, order) => {
    const workers = new Map<string, Child>()
    const lines: Array<string> = []
    for (const machine of ["a", "b"]) {
      const worker = await start({ ...order, machine, takes: 5, task: "work", freezes: true })
      workers.set(machine, worker)
      void listen(worker, (line) => lines.push(`${machine}: ${line}`))
    }
    const findings: Array<string> = []
    /** Waits until a process says something, and says what is missing otherwise. */
    const said = async (line: RegExp) => {
      const end = Date.now() + 300_000
      for (;;) {
        const found = lines.findIndex((said) => line.test(said))
        if (found >= 0) return lines.splice(found, 1)[0]
        if (Date.now() > end) throw new Error(`no process said ${line}, but ${lines.join(", ")}`)
        await sleep(5)
      }
    }
    for (let round = 0; round < count; round++) {
      // No run of tasks: one of them could be in a transaction as its process stops, and nobody gets past that lock.
      const runId = `r${round + Math.floor(round / 2)}`
      await place.submit(runId)
      const machine = (await said(/: frozen/))?.split(":")[0] ?? ""
      await said(new RegExp(`: ${runId} completed$`))
      workers.get(machine)?.signal("SIGCONT")
      const end = await said(new RegExp(`^${machine}: ${runId} `))
      if (end?.endsWith("AgentCrashError") !== true) findings.push(`fenced: the one that woke ended with ${end}`)
    }
    for (const worker of workers.values()) worker.signal("SIGTERM")
    await Promise.all([...workers.values()].map((worker) => worker.ended))
    return { rounds: count, refused: count - findings.length, findings: [...findings, ...entries(order.folder)] }
  })

const listen = async (child: Child, hear: (line: string) => void): Promise<void> => {
  for (let line = await child.line(); line !== undefined; line = await child.line()) hear(line)
}

/** The `write` calls that were entered more than once. */
const entries = (folder: string): ReadonlyArray<string> => {
  const counts = new Map<string, number>()
  for (const fact of [...Ledger.read(folder).values()].flat()) {
    if (fact.type !== "started" || fact.effects !== "write") continue
    counts.set(keyOf(fact), (counts.get(keyOf(fact)) ?? 0) + 1)
  }
  return [...counts].flatMap(([call, count]) =>
    count === 1 ? [] : [`writes_once: ${call} was entered ${count} times`]
  )
}

/** Stops a worker past its lease while it runs, and wakes it when the other one has finished its run. */
export const stops = (count: number, settings: Settings = {}): Promise<Outcome> =>
  at(settings, async (place, order) => {
    const random = randomOf(settings.seed ?? Date.now())
    const machine = (name: string) => ({ ...order, machine: name, takes: 10 })
    const workers = new Map<string, Child>()
    for (const name of ["a", "b"]) workers.set(name, await start({ ...machine(name), task: "work" }))
    const headOf = async (runId: string) => Option.getOrThrow(await Effect.runPromise(place.store.head(runId)))
    const isOver = async (runId: string) => (await headOf(runId)).status.type === "completed"
    const until = async (isSo: () => Promise<boolean>, patience: number) => {
      const end = Date.now() + patience
      while (!(await isSo()) && Date.now() < end) await sleep(5)
    }
    let rounds = 0
    // A run that is over before its worker is stopped shows nothing: the next one is tried.
    for (let number = 0; rounds < count && number < 50 * count; number++) {
      const runId = `r${number}`
      await place.submit(runId)
      await until(async () => (await headOf(runId)).revision > 1, 300_000)
      await sleep(random() * 60)
      const { lease, status } = await headOf(runId)
      const worker = workers.get(lease?.workerId ?? "")
      if (worker === undefined || status.type === "completed") continue
      worker.signal("SIGSTOP")
      // Stopped in the middle of a commit, it may hold the lock of a file: then nobody goes on before it does.
      await until(() => isOver(runId), 4_000)
      worker.signal("SIGCONT")
      await until(() => isOver(runId), 300_000)
      // Time for a zombie to do what it must not.
      await sleep(50)
      rounds++
    }
    for (const worker of workers.values()) worker.signal("SIGTERM")
    const ends = await Promise.all([...workers.values()].map((worker) => worker.ended))
    if (ends.some(({ code }) => code !== 0))
      throw new Error(`a worker failed: ${ends.map(({ error }) => error).join()}`)
    return { rounds, refused: 0, findings: [] }
  })
