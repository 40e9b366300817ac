/**
 * 1,000 and 10,000 runs at once, 5 steps of 100 ms each: wall time, heap, and how fast they are cancelled.
 *
 * `fresh` compares the same runs with `ai`. The model of every step waits on a timer, as it would on a network. The ideal is one run's waits.
 */
import { Context, Effect, Fiber, Metric, Stream } from "effect"
import * as Kernel from "../dist/Kernel.js"
import type * as Provider from "../dist/Provider.js"
import * as RunStore from "../dist/RunStore.js"
import { act, agentOf, kernelOn, scripted } from "./kernai.ts"
import { pi } from "./pi.ts"
import { comparisonOf, heapUsed, median, ratioRow, type Row, row, sleep, wall } from "./support.ts"

const steps = 5
const wait = 100
const ideal = steps * wait

const atOnce = <E, R>(runs: number, body: Effect.Effect<unknown, E, R>) =>
  Effect.forEach(Array.from({ length: runs }), () => body, { concurrency: "unbounded", discard: true })

const agent = agentOf(steps)

/** Model calls made so far, by all runs. */
let modelCalls = 0

const one = Effect.suspend(() => {
  const { name, stream } = scripted(steps, wait)
  const counted: Provider.ProviderShape = { name, stream: (request) => (modelCalls++, stream(request)) }
  return Kernel.run(agent, "go", { provider: counted })
})

/** So many runs on a kernel of their own. */
const kernai = (runs: number) => Effect.provide(atOnce(runs, one), kernelOn(RunStore.layerMemory))

/** The same waits and replies without a kernel: the price of a fiber per run. */
const bare = Effect.gen(function* () {
  for (let step = 0; step < steps; step++)
    yield* Stream.runDrain(Stream.onStart(Stream.fromArray(act), Effect.sleep(wait)))
})

const piRuns = (runs: number) => Promise.all(Array.from({ length: runs }, () => pi(steps, "final", () => sleep(wait))))

// ---------------------------------------------------------------- wall time

/** Measures all sides once a round, each on a collected heap. The first round warms up. */
const wallRows = async (runs: number, counted: number): Promise<ReadonlyArray<Row>> => {
  const measured = async (body: () => Promise<unknown>) => {
    heapUsed()
    return wall(body)
  }
  const round = async () => ({
    kernai: await measured(() => Effect.runPromise(kernai(runs))),
    ideal,
    pi: await measured(() => piRuns(runs)),
    bare: await measured(() => Effect.runPromise(atOnce(runs, bare)))
  })
  await round()
  const rounds: Array<Awaited<ReturnType<typeof round>>> = []
  while (rounds.length < counted) rounds.push(await round())
  const over = (side: keyof (typeof rounds)[number], name: string, bound: number | null) =>
    ratioRow(
      `runs.${runs}.${side}`,
      `${runs} runs at once: wall time over ${name}`,
      comparisonOf(rounds.map((round) => ({ ours: round.kernai, peer: round[side] }))),
      "ms",
      bound
    )
  return [
    over("ideal", "the ideal", runs === 10_000 ? null : 1.8),
    over("pi", "pi-agent-core (final event only)", null),
    over("bare", "a bare fiber per run", null)
  ]
}

// ---------------------------------------------------------------- heap

/** Returns the kB per run at the peak of the heap. Collections stop everything, so this run is not timed. */
const heapPerRun = async (runs: number): Promise<number> => {
  const before = heapUsed()
  let peak = before
  const fiber = Effect.runFork(kernai(runs))
  while (fiber.pollUnsafe() === undefined) {
    await sleep(wait)
    peak = Math.max(peak, heapUsed())
  }
  await Effect.runPromise(Fiber.join(fiber))
  return (peak - before) / runs / 1000
}

const heapRow = async (runs: number, bound: number): Promise<Row> => {
  const rounds: Array<number> = []
  for (let round = 0; round < 3; round++) rounds.push(await heapPerRun(runs))
  return row(`runs.${runs}.heap`, `${runs} runs at once: kB of heap per run at the peak`, median(rounds), bound)
}

// ---------------------------------------------------------------- cancelling

const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length

/** Cancels so many runs half-way. Returns the milliseconds until all have ended, and the fibers and timers left. */
const cancel = async (runs: number) => {
  let fibers = 0
  const counting = Context.make(Metric.FiberRuntimeMetrics, {
    recordFiberStart: () => void fibers++,
    recordFiberEnd: () => void fibers--
  })
  const timersBefore = timers()
  const callsBefore = modelCalls
  const fiber = Effect.runForkWith(counting)(kernai(runs))
  while (modelCalls - callsBefore < (runs * steps) / 2) await sleep(5)
  const running = fibers
  const ms = await wall(() => Effect.runPromise(Fiber.interrupt(fiber)))
  if (running < runs) throw new Error(`only ${running} fibers were running`)
  // Gives cleared timers one turn of the event loop to disappear.
  await new Promise((resolve) => setImmediate(resolve))
  return { ms, fibers, timers: timers() - timersBefore }
}

const cancelRows = async (runs: number, bound: number): Promise<ReadonlyArray<Row>> => {
  const rounds: Array<Awaited<ReturnType<typeof cancel>>> = []
  for (let round = 0; round < 7; round++) rounds.push(await cancel(runs))
  const name = (what: string) => `${runs} runs cancelled half-way: ${what}`
  const most = (of: (round: (typeof rounds)[number]) => number) => Math.max(...rounds.map(of))
  const ms = median(rounds.slice(1).map((round) => round.ms))
  return [
    row(`runs.${runs}.cancel`, name("ms until all have ended"), ms, bound),
    row(
      `runs.${runs}.fibersLeft`,
      name("fibers left"),
      most((round) => round.fibers),
      0
    ),
    row(
      `runs.${runs}.timersLeft`,
      name("timers left"),
      most((round) => round.timers),
      0
    )
  ]
}

export default async (): Promise<ReadonlyArray<Row>> => [
  ...(await wallRows(1_000, 11)),
  await heapRow(1_000, 90),
  ...(await cancelRows(1_000, 60)),
  ...(await wallRows(10_000, 5)),
  await heapRow(10_000, 50),
  ...(await cancelRows(10_000, 300))
]
