/**
 * Followers of one run: how much longer the run takes with a thousand of them, all reading every event in its process.
 *
 * Wall time of a run whose model sends a piece of text every 2 milliseconds, from its first piece to its result, with and
 * without followers.
 */
import { Effect, Layer, ManagedRuntime, Stream } from "effect"
import * as Kernel from "../dist/Kernel.js"
import type * as Provider from "../dist/Provider.js"
import * as RunStore from "../dist/RunStore.js"
import * as StreamPart from "../dist/StreamPart.js"
import { agentOf, kernelOn } from "./kernai.ts"
import { compare, ratioRow, type Row, sleep } from "./support.ts"

const pieces = 400
const followers = 1_000

const runtime = ManagedRuntime.make(kernelOn(RunStore.layerMemory).pipe(Layer.provideMerge(RunStore.layerMemory)))
let runs = 0

/** A reply that begins when `open` is called. */
const gated = () => {
  let open = () => {}
  const gate = new Promise<void>((resolve) => (open = resolve))
  const text = Stream.range(1, pieces).pipe(
    Stream.mapEffect((piece) => Effect.as(Effect.sleep(2), StreamPart.text(`word ${piece} `)))
  )
  const reply = Stream.concat(
    text,
    Stream.make(StreamPart.text('<block type="final">done</block>'), StreamPart.finish())
  )
  const provider: Provider.ProviderShape = {
    name: "paced",
    stream: () =>
      Stream.onStart(
        reply,
        Effect.promise(() => gate)
      )
  }
  return { provider, open: () => open() }
}

/** Returns the milliseconds of a run that so many follow. */
export const followed = async (count: number): Promise<number> => {
  const runId = `run-${runs++}`
  const { open, provider } = gated()
  const running = runtime.runPromise(Kernel.run(agentOf(1), "go", { provider, runId }))
  await sleep(20)
  let last = 0
  const following = Array.from({ length: count }, () =>
    runtime.runPromise(
      Stream.runForEachArray(Kernel.follow(runId), (events) =>
        Effect.sync(() => {
          for (const event of events) if (event.type === "run_completed") last++
        })
      )
    )
  )
  await sleep(500)
  const from = performance.now()
  open()
  await running
  const took = performance.now() - from
  await Promise.all(following)
  if (last !== count) throw new Error(`${last} of ${count} followers reached the end`)
  return took
}

export default async (): Promise<ReadonlyArray<Row>> => {
  const comparison = await compare(
    () => followed(followers),
    () => followed(0),
    { warm: 1, counted: 7 }
  )
  await runtime.dispose()
  return [
    ratioRow(
      "followers.1000",
      `a run that ${followers} follow, against one that nobody follows`,
      comparison,
      "ms",
      1.05
    )
  ]
}
