/**
 * A step of a program beside a step of the loop: both call a `read` skill that does nothing, 100 times in a run.
 *
 * CPU time per step. The journal is kept in memory, and every event is consumed.
 */
import { Effect, ManagedRuntime, Schema, Stream } from "effect"
import type { Agent } from "../dist/Agent.js"
import * as Kernel from "../dist/Kernel.js"
import * as Program from "../dist/Program.js"
import type * as Provider from "../dist/Provider.js"
import * as RunStore from "../dist/RunStore.js"
import { agentOf, kernelOn, noop, scripted } from "./kernai.ts"
import { compare, cpu, ratioRow, type Row } from "./support.ts"

const steps = 100

const program = Program.make("steps", {
  output: Schema.Finite,
  skills: [noop],
  run: Effect.fnUntraced(function* () {
    for (let step = 1; step < steps; step++) yield* Program.call(noop, { x: "1" })
    return steps
  })
})

/** CPU per step of so many runs, on a kernel that is disposed afterwards. */
const perStep = async (runs: number, agent: Agent<unknown>, provider?: () => Provider.ProviderShape) => {
  const runtime = ManagedRuntime.make(kernelOn(RunStore.layerMemory))
  await runtime.runPromise(Effect.void)
  const time = await cpu(async () => {
    for (let run = 0; run < runs; run++) {
      let turns = 0
      const events = Kernel.stream(agent, "go", provider === undefined ? {} : { provider: provider() })
      await runtime.runPromise(
        Stream.runForEachArray(events, (events) =>
          Effect.sync(() => {
            for (const { type } of events) if (type === "turn_started") turns++
          })
        )
      )
      if (turns !== steps) throw new Error(`${agent.name} ran ${turns} steps`)
    }
  })
  await runtime.dispose()
  return time / (runs * steps)
}

const loop = agentOf(steps)

export default async (): Promise<ReadonlyArray<Row>> => [
  ratioRow(
    "programs.step",
    "a step of a program: CPU over a step of the loop",
    await compare(
      () => perStep(10, program),
      () => perStep(10, loop, () => scripted(steps)),
      { warm: 40, counted: 21 }
    ),
    "µs",
    1.3
  )
]
