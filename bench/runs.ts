/**
 * 10,000 runs at once, 5 steps of 100 ms each: wall time, memory, and how fast they stop.
 *
 * `node --expose-gc bench/runs.ts`, after `npm ci` in bench/.
 */
import { Effect, Fiber, Layer, Schema, Stream } from "effect"
import { fileURLToPath } from "node:url"
import * as Agent from "../src/Agent.ts"
import * as Kernel from "../src/Kernel.ts"
import * as MediaStore from "../src/MediaStore.ts"
import * as ProtocolRegistry from "../src/ProtocolRegistry.ts"
import type * as Provider from "../src/Provider.ts"
import * as RunStore from "../src/RunStore.ts"
import * as Skill from "../src/Skill.ts"
import * as SkillRegistry from "../src/SkillRegistry.ts"
import * as StreamPart from "../src/StreamPart.ts"
import { pi } from "./pi.ts"
import { median, type Row, table } from "./support.ts"

const runs = 10_000
const steps = 5
const wait = 100

const noop = Skill.make("noop", {
  description: "Does nothing",
  input: Schema.Struct({ x: Schema.String }),
  effects: "read",
  execute: () => Effect.succeed("ok")
})
const act = [StreamPart.text('<block type="command" name="noop">{"x":"1"}</block>'), StreamPart.finish()]
const end = [StreamPart.text('<block type="final">done</block>'), StreamPart.finish()]

/** A model that takes its time: the step is known by the length of the conversation. */
const slow: Provider.ProviderShape = {
  name: "slow",
  stream: ({ messages }) =>
    Stream.fromArray(messages.length < steps * 2 ? act : end).pipe(Stream.onStart(Effect.sleep(wait)))
}
const agent = Agent.make({ instructions: "You test.", model: { id: "m", capabilities: ["text"] }, skills: [noop] })
const kernel = () =>
  Kernel.layer.pipe(
    Layer.provide([SkillRegistry.layer(noop), ProtocolRegistry.layer(), MediaStore.layerMemory, RunStore.layerMemory])
  )
const atOnce = <E, R>(body: Effect.Effect<unknown, E, R>) =>
  Effect.forEach(Array.from({ length: runs }), () => body, { concurrency: "unbounded", discard: true })

const all = atOnce(Effect.suspend(() => Kernel.run(agent, "go", { provider: slow })))

/** The same waits, and the same parts of replies read, without a kernel: what a fiber for each run costs by itself. */
const bare = atOnce(
  Effect.gen(function* () {
    const reply = Stream.runDrain(Stream.fromArray(act).pipe(Stream.onStart(Effect.sleep(wait))))
    for (let step = 0; step < steps; step++) yield* reply
  })
)

/** The same of a loop that keeps no journal and commits nothing. */
const peer = () => {
  const answered = () => new Promise<void>((resolve) => setTimeout(resolve, wait))
  return Promise.all(Array.from({ length: runs }, () => pi(steps, answered)))
}

const overIdeal = async (body: () => Promise<unknown>): Promise<number> => {
  const walls: Array<number> = []
  for (let round = 0; round < 3; round++) {
    const started = performance.now()
    await body()
    walls.push((performance.now() - started) / (steps * wait))
  }
  return median(walls)
}

const heap = () => {
  globalThis.gc?.()
  return process.memoryUsage().heapUsed
}

const timers = () => process.getActiveResourcesInfo().filter((name) => name === "Timeout").length

export const runsBench = async (): Promise<ReadonlyArray<Row>> => {
  await Effect.runPromise(Effect.provide(Kernel.run(agent, "go", { provider: slow }), kernel()))
  const wall = await overIdeal(() => Effect.runPromise(Effect.provide(all, kernel())))
  const floor = await overIdeal(() => Effect.runPromise(bare))
  const theirs = await overIdeal(peer)

  const before = heap()
  let peak = before
  const fiber = Effect.runFork(Effect.provide(all, kernel()))
  // A collection stops everything: a few looks, in a run that is not timed.
  for (let look = 0; look < 4; look++) {
    await new Promise((resolve) => setTimeout(resolve, 400))
    peak = Math.max(peak, heap())
  }
  await Effect.runPromise(Fiber.join(fiber))

  const settling: Array<number> = []
  let left = 0
  for (let round = 0; round < 3; round++) {
    const half = Effect.runFork(Effect.provide(all, kernel()))
    await new Promise((resolve) => setTimeout(resolve, (steps * wait) / 2 + 400))
    const stopping = performance.now()
    await Effect.runPromise(Fiber.interrupt(half))
    settling.push((performance.now() - stopping) / 1000)
    left = Math.max(left, timers())
  }
  const row = (name: string, value: number, bound: number): Row => ({ name, value, bound, pass: value <= bound })
  return [
    row(`runs: wall time of ${runs} at once over the ideal`, wall, 3),
    row("runs: the same waits and replies without a kernel", floor, Infinity),
    row("runs: the same with pi-agent-core, which commits nothing", theirs, Infinity),
    row("runs: wall time over that of pi-agent-core", wall / theirs, Infinity),
    row("runs: kB of heap per run at the peak", (peak - before) / runs / 1000, 50),
    row("runs: seconds until all settle when cancelled half-way", median(settling), 0.3),
    row("runs: timers left after cancelling", left, 0)
  ]
}

if (process.argv[1] === fileURLToPath(import.meta.url)) table("runs", await runsBench())
