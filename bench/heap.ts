/**
 * A day of short runs: 100,000 runs on one `Kernel.layerMemory` end with the heap they began with.
 *
 * A process that serves short runs all day must not grow. The first runs only warm up: what they
 * compile and cache counts as the beginning.
 */
import { Effect, Layer, ManagedRuntime } from "effect"
import * as Kernel from "../dist/Kernel.js"
import * as Provider from "../dist/Provider.js"
import * as SkillRegistry from "../dist/SkillRegistry.js"
import { agentOf, noop, scripted } from "./kernai.ts"
import { heapUsed, type Row, row } from "./support.ts"

const runs = 100_000
const batch = 5_000

/** Megabytes that may be left at the end: 50 bytes for each run. */
const tolerance = 5

/** The benchmark stops at this growth, before the process runs out of memory. */
const tooMuch = 1_000

const agent = agentOf(2)
const provider = Layer.succeed(Provider.Provider, scripted(0))
const kernel = Kernel.layerMemory.pipe(Layer.provide([SkillRegistry.layer(noop), provider]))

/** A batch of runs one after the other, each with one call and an answer. */
const shortRuns = Effect.forEach(
  Array.from({ length: batch }),
  () => Effect.suspend(() => Kernel.run(agent, "go", { provider: scripted(2) })),
  { discard: true }
)

export default async (): Promise<ReadonlyArray<Row>> => {
  const runtime = ManagedRuntime.make(kernel)
  await runtime.runPromise(shortRuns)
  const before = heapUsed()
  let done = 0
  let grown = 0
  while (done < runs && grown < tooMuch) {
    await runtime.runPromise(shortRuns)
    done += batch
    grown = (heapUsed() - before) / 1e6
  }
  await runtime.dispose()
  return [
    row("heap.day", `${done} short runs on one Kernel.layerMemory: MB of heap grown`, grown, tolerance),
    row("heap.run", "the same: kB of heap grown per run", (grown * 1000) / done, null)
  ]
}
