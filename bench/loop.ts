/**
 * The loop against pi-agent-core: an instant model and a tool that does nothing, so all that
 * is left is the price of a step.
 *
 * CPU time per step. kernai keeps its journal in memory and emits every event to a consumer.
 */
import { Effect, Layer, ManagedRuntime, Stream } from "effect"
import * as Kernel from "../dist/Kernel.js"
import type * as Provider from "../dist/Provider.js"
import * as RunStore from "../dist/RunStore.js"
import { agentOf, kernelOn, scripted } from "./kernai.ts"
import { pi } from "./pi.ts"
import { compare, cpu, median, ratioRow, type Rounds, type Row, row } from "./support.ts"

// ---------------------------------------------------------------- kernai

type Runtime = ManagedRuntime.ManagedRuntime<Kernel.Kernel, unknown>

/** Builds a kernel before the clock starts, as an application does. */
const started = async (store: Layer.Layer<RunStore.RunStore>): Promise<Runtime> => {
  const runtime = ManagedRuntime.make(kernelOn(store))
  await runtime.runPromise(Effect.void)
  return runtime
}

/** Runs so many steps and consumes every event. */
const kernai = async (runtime: Runtime, steps: number, provider = scripted(steps)) => {
  let turns = 0
  const events = Kernel.stream(agentOf(steps), "go", { provider })
  await runtime.runPromise(
    Stream.runForEachArray(events, (events) =>
      Effect.sync(() => {
        for (const event of events) {
          if (event.type !== "turn_started") continue
          turns++
        }
      })
    )
  )
  if (turns !== steps) throw new Error(`kernai ran ${turns} steps`)
}

/** Accepts every append, and keeps none. */
const forgetful: Layer.Layer<RunStore.RunStore> = Layer.effect(
  RunStore.RunStore,
  Effect.map(RunStore.makeMemory, (memory) => ({ ...memory, append: () => Effect.void }))
)

// ---------------------------------------------------------------- measuring

const perStep = async (steps: number, runs: number, body: () => Promise<unknown>) => {
  const time = await cpu(async () => {
    for (let run = 0; run < runs; run++) await body()
  })
  return time / (runs * steps)
}

/** CPU per step on a kernel that is disposed afterwards, so its journals burden no later round. */
const ourStep = async (steps: number, runs: number, store: Layer.Layer<RunStore.RunStore>) => {
  const runtime = await started(store)
  const time = await perStep(steps, runs, () => kernai(runtime, steps))
  await runtime.dispose()
  return time
}

/** One size of run: how many runs make a round, and the rounds. */
interface Size {
  readonly steps: number
  readonly runs: number
  readonly rounds: Rounds
  readonly bound: number
}

const against = async ({ bound, rounds, runs, steps }: Size): Promise<ReadonlyArray<Row>> => {
  const ours = () => ourStep(steps, runs, RunStore.layerMemory)
  // The number of runs varies, so that a collection does not fall into the same side's turn each time.
  let round = 0
  const varied = (store: Layer.Layer<RunStore.RunStore>) => () => ourStep(steps, runs + (round++ % 3), store)
  const over = async (id: string, peer: string, task: () => Promise<unknown>, bound: number | null) =>
    ratioRow(
      `loop.${steps}.${id}`,
      `${steps} steps: CPU per step over ${peer}`,
      await compare(ours, () => perStep(steps, runs, task), rounds),
      "µs",
      bound
    )
  return [
    await over("pi", "pi-agent-core (final event only)", () => pi(steps, "final"), bound),
    await over("piEvery", "pi-agent-core (every event)", () => pi(steps, "every"), null),
    ratioRow(
      `loop.${steps}.memory`,
      `${steps} steps: CPU per step over a store that keeps nothing`,
      await compare(varied(RunStore.layerMemory), varied(forgetful), rounds),
      "µs",
      1.3
    )
  ]
}

/** The optimizing compiler is done with kernai's loop after some 30,000 steps. */
const hundred: Size = { steps: 100, runs: 10, rounds: { warm: 40, counted: 21 }, bound: 1.4 }
const thousand: Size = { steps: 1_000, runs: 2, rounds: { warm: 4, counted: 15 }, bound: 1.4 }

/** Compares the last and the first 100 steps of one run of 1,000. */
const growth = async (): Promise<Row> => {
  const ratios: Array<number> = []
  for (let round = 0; round < 27; round++) {
    const stamps: Array<number> = []
    const runtime = await started(RunStore.layerMemory)
    const { name, stream } = scripted(1001)
    // Stamped where the model is called: a consumer receives the events of some 25 steps at once.
    const stamped: Provider.ProviderShape = {
      name,
      stream: (request) => {
        const { system, user } = process.cpuUsage()
        stamps.push(user + system)
        return stream(request)
      }
    }
    await kernai(runtime, 1001, stamped)
    await runtime.dispose()
    const span = (from: number, to: number) => (stamps[to] ?? NaN) - (stamps[from] ?? NaN)
    if (round > 1) ratios.push(span(900, 1000) / span(0, 100))
  }
  return row("loop.growth", "1,000 steps: CPU of the last 100 over the first 100", median(ratios), 1.2)
}

export default async (): Promise<ReadonlyArray<Row>> => [
  ...(await against(hundred)),
  ...(await against(thousand)),
  await growth()
]
