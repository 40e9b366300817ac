/**
 * The loop against its peers: an instant model, a tool that does nothing, many steps.
 *
 * CPU time per step, as medians of ratios over rounds in which two contenders alternate, with the
 * journal in memory and every event told to a consumer. `node bench/loop.ts`,
 * after `npm ci` in bench/.
 */
import { isStepCount, jsonSchema, streamText, tool } from "ai"
import { MockLanguageModelV4 } from "ai/test"
import { Effect, Layer, ManagedRuntime, Schema, Stream } from "effect"
import { fileURLToPath } from "node:url"
import * as Agent from "../src/Agent.ts"
import * as Kernel from "../src/Kernel.ts"
import * as MediaStore from "../src/MediaStore.ts"
import * as ProtocolRegistry from "../src/ProtocolRegistry.ts"
import * as Provider from "../src/Provider.ts"
import * as RunStore from "../src/RunStore.ts"
import * as Skill from "../src/Skill.ts"
import * as SkillRegistry from "../src/SkillRegistry.ts"
import * as StreamPart from "../src/StreamPart.ts"
import { pi } from "./pi.ts"
import { against, cpu, median, type Row, table } from "./support.ts"

// ---------------------------------------------------------------- kernai

const noop = Skill.make("noop", {
  description: "Does nothing",
  input: Schema.Struct({ x: Schema.String }),
  effects: "read",
  execute: () => Effect.succeed("ok")
})

const act = [StreamPart.text('<block type="command" name="noop">{"x":"1"}</block>'), StreamPart.finish()]
const end = [StreamPart.text('<block type="final">done</block>'), StreamPart.finish()]

const scripted = (steps: number): Provider.ProviderShape => {
  let call = 0
  return { name: "mock", stream: () => Stream.fromArray(++call < steps ? act : end) }
}

const agentOf = (steps: number) =>
  Agent.make({ instructions: "You test.", model: { id: "m", capabilities: ["text"] }, skills: [noop], maxSteps: steps })

const kernelOn = (store: Layer.Layer<RunStore.RunStore>) =>
  Kernel.layer.pipe(Layer.provide([SkillRegistry.layer(noop), ProtocolRegistry.layer(), MediaStore.layerMemory, store]))

/** Accepts every append and keeps nothing: what is left is the price of the store. */
const forgetful: Layer.Layer<RunStore.RunStore> = Layer.effect(
  RunStore.RunStore,
  Effect.map(RunStore.makeMemory, (memory) => ({ ...memory, append: () => Effect.void }))
)

type Runtime = ManagedRuntime.ManagedRuntime<Kernel.Kernel, unknown>

/** A kernel that stands, as an application has it before the first question comes. */
const standing = async (store: Layer.Layer<RunStore.RunStore>): Promise<Runtime> => {
  const runtime = ManagedRuntime.make(kernelOn(store))
  await runtime.runPromise(Effect.void)
  return runtime
}

const kernai = (runtime: Runtime, steps: number, at?: (step: number) => void) => {
  let count = 0
  const events = Kernel.stream(agentOf(steps), "go", { provider: scripted(steps) })
  return runtime.runPromise(
    Stream.runForEachArray(events, (events) =>
      Effect.sync(() => {
        for (const event of events) {
          count++
          if (event.type === "turn_started") at?.(event.step)
        }
        return count
      })
    )
  )
}

// ---------------------------------------------------------------- peers

const aiSdk = async (steps: number) => {
  let call = 0
  const model = new MockLanguageModelV4({
    doStream: async () => {
      const last = ++call >= steps
      const usage = {
        inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 1, text: 1, reasoning: 0 }
      }
      const parts = last
        ? [
            { type: "text-start", id: "0" },
            { type: "text-delta", id: "0", delta: "done" },
            { type: "text-end", id: "0" }
          ]
        : [{ type: "tool-call", callId: `c${call}`, toolName: "noop", input: '{"x":"1"}' }]
      const finishReason = { unified: last ? "stop" : "tool-calls", raw: undefined }
      const all = [{ type: "stream-start", warnings: [] }, ...parts, { type: "finish", finishReason, usage }]
      return {
        stream: new ReadableStream({
          start(controller) {
            for (const part of all) controller.enqueue(part as never)
            controller.close()
          }
        })
      }
    }
  })
  const result = streamText({
    model,
    prompt: "go",
    stopWhen: isStepCount(steps),
    tools: {
      noop: tool({
        description: "Does nothing",
        inputSchema: jsonSchema<{ x: string }>({
          type: "object",
          properties: { x: { type: "string" } },
          required: ["x"]
        }),
        execute: async () => "ok"
      })
    }
  })
  let count = 0
  for await (const _ of result.stream) count++
  return count
}

// ---------------------------------------------------------------- measuring

const perStep = async (steps: number, runs: number, body: (steps: number) => Promise<unknown>) => {
  const time = await cpu(async () => {
    for (let run = 0; run < runs; run++) await body(steps)
  })
  return time / (runs * steps)
}

/** The same with a kernel of its own, which is gone before the next contender starts. */
const ourStep = async (steps: number, runs: number, store: Layer.Layer<RunStore.RunStore>) => {
  const runtime = await standing(store)
  const time = await perStep(steps, runs, (steps) => kernai(runtime, steps))
  await runtime.dispose()
  return time
}

const rounds = { warm: 2, counted: 12 }

/**
 * The memory store over one that keeps nothing. What is between them is less than a collection of garbage: rounds of one
 * length would have it in the turn of the same one each time.
 */
const overForgetful = (steps: number, runs: number) => {
  const on = (store: Layer.Layer<RunStore.RunStore>) => {
    let round = 0
    return () => ourStep(steps, runs + (round++ % 3), store)
  }
  return against(on(RunStore.layerMemory), on(forgetful), rounds)
}

/** Steps of one long run, timed as they start. */
const growth = async () => {
  const ratios: Array<number> = []
  for (let round = 0; round < 27; round++) {
    const stamps: Array<number> = []
    const runtime = await standing(RunStore.layerMemory)
    await kernai(runtime, 1001, (step) => {
      const { system, user } = process.cpuUsage()
      stamps[step] = user + system
    })
    await runtime.dispose()
    const span = (from: number, to: number) => (stamps[to] ?? 0) - (stamps[from] ?? 0)
    if (round > 1) ratios.push(span(900, 1000) / span(0, 100))
  }
  return median(ratios)
}

export const loopBench = async (): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  const sizes: ReadonlyArray<readonly [steps: number, runs: number]> = [
    [1, 400],
    [10, 60],
    [100, 10],
    [1000, 2]
  ]
  for (const [steps, runs] of sizes) {
    const ours = () => ourStep(steps, runs, RunStore.layerMemory)
    const over = (peer: () => Promise<number>) => against(ours, peer, rounds)
    const overPi = await over(() => perStep(steps, runs, pi))
    const overSdk = await over(() => perStep(steps, Math.max(1, Math.round(runs / 4)), aiSdk))
    const overBare = await overForgetful(steps, runs)
    const row = (name: string, value: number, bound: number): Row => {
      const limit = steps < 100 ? Infinity : bound
      return { name: `loop, ${steps} steps: ${name}`, value, bound: limit, pass: value <= limit }
    }
    rows.push(
      row(`CPU per step over pi-agent-core (${overPi.one.toFixed(1)} µs)`, overPi.ratio, 2.5),
      row("CPU per step over ai", overSdk.ratio, 0.25),
      row("memory store over one that keeps nothing", overBare.ratio, 1.3)
    )
  }
  const last = await growth()
  rows.push({ name: "loop: last 100 of 1,000 steps over the first 100", value: last, bound: 1.3, pass: last <= 1.3 })
  return rows
}

if (process.argv[1] === fileURLToPath(import.meta.url)) table("loop", await loopBench())
