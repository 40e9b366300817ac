/**
 * One side of the benchmark `fresh`, in a process of its own: `node bench/freshSide.ts kernai steps`. Prints its figures
 * as JSON.
 */
import { generateText, type ModelMessage } from "ai"
import { Effect, Layer, ManagedRuntime, Stream } from "effect"
import * as Chat from "../dist/Chat.js"
import * as ChatHistory from "../dist/ChatHistory.js"
import * as Kernel from "../dist/Kernel.js"
import type * as Provider from "../dist/Provider.js"
import * as RunStore from "../dist/RunStore.js"
import * as StreamPart from "../dist/StreamPart.js"
import { aiSdk, modelOf } from "./aiSdk.ts"
import { agentOf, kernelOn, scripted } from "./kernai.ts"
import { pi } from "./pi.ts"
import { cpu, sleep, wall } from "./support.ts"

export type Side = "kernai" | "pi" | "ai"
export type Task = "steps" | "thousand" | "tenThousand" | "conversation"

/** What a task measures: each measures some of them. */
export interface Figures {
  /** Main-thread µs a step, of steps 101 to 500 and of steps 1,001 to 3,000. */
  readonly early?: number
  readonly late?: number
  /** Milliseconds of all runs at once. */
  readonly cpu?: number
  readonly wall?: number
  /** µs of CPU for each of the last 100 messages. */
  readonly message?: number
}

const runtime = ManagedRuntime.make(Layer.merge(kernelOn(RunStore.layerMemory), ChatHistory.layerMemory))

// ---------------------------------------------------------------- steps

const run = (steps: number): { readonly [side in Side]: () => Promise<unknown> } => ({
  kernai: () => runtime.runPromise(Kernel.run(agentOf(steps), "go", { provider: scripted(steps) })),
  pi: () => pi(steps, "final"),
  ai: () => aiSdk(steps)
})

/** Runs of 100 steps, one after the other. */
const steps = async (side: Side): Promise<Figures> => {
  const one = run(100)[side]
  const marks = [0]
  const { system, user } = process.threadCpuUsage()
  for (let done = 100; done <= 3_000; done += 100) {
    await one()
    const now = process.threadCpuUsage()
    marks[done / 100] = now.user + now.system - user - system
  }
  const between = (from: number, to: number) => ((marks[to / 100] ?? NaN) - (marks[from / 100] ?? NaN)) / (to - from)
  return { early: between(100, 500), late: between(1_000, 3_000) }
}

// ---------------------------------------------------------------- runs at once

const turns = 5
const wait = 100

const atOnce = (side: Side, runs: number): Promise<unknown> => {
  const waited = () => sleep(wait)
  const all = Array.from({ length: runs })
  if (side === "pi") return Promise.all(all.map(() => pi(turns, "final", waited)))
  if (side === "ai") return Promise.all(all.map(() => aiSdk(turns, waited)))
  const agent = agentOf(turns)
  const one = () => Kernel.run(agent, "go", { provider: scripted(turns, wait) })
  return runtime.runPromise(Effect.forEach(all, one, { concurrency: "unbounded", discard: true }))
}

const manyRuns = async (side: Side, runs: number): Promise<Figures> => {
  let used = 0
  const ms = await wall(async () => (used = await cpu(() => atOnce(side, runs))))
  return { wall: ms, cpu: used / 1000 }
}

// ---------------------------------------------------------------- a conversation

const messages = 1_000
/** 200 tokens. */
const text = "abc ".repeat(200)

/** Answers one message of the user after the other, each a request with all messages before it. */
const ourConversation = () => {
  let seen = 0
  const agent = agentOf(1)
  const provider: Provider.ProviderShape = {
    name: "mock",
    stream: (request) => {
      seen = request.messages.length
      return Stream.fromArray([StreamPart.text(`<block type="final">${text}</block>`), StreamPart.finish()])
    }
  }
  return {
    answer: () => runtime.runPromise(Chat.chat(agent, text, { provider })),
    seen: () => seen
  }
}

const theirConversation = () => {
  let seen = 0
  const history: Array<ModelMessage> = []
  const model = modelOf(async (messages) => {
    seen = messages
    return { type: "text", text }
  })
  return {
    answer: async () => {
      history.push({ role: "user", content: text })
      const { response } = await generateText({ model, messages: history })
      history.push(...response.messages)
    },
    seen: () => seen
  }
}

const conversation = async (side: Side): Promise<Figures> => {
  const { answer, seen } = side === "kernai" ? ourConversation() : theirConversation()
  const last = 100
  for (let done = 0; done < messages - last; done += 2) await answer()
  const used = await cpu(async () => {
    for (let done = 0; done < last; done += 2) await answer()
  })
  if (seen() < messages - 1) throw new Error(`the last request of ${side} had ${seen()} messages`)
  return { message: used / last }
}

const tasks: { readonly [task in Task]: (side: Side) => Promise<Figures> } = {
  steps,
  thousand: (side) => manyRuns(side, 1_000),
  tenThousand: (side) => manyRuns(side, 10_000),
  conversation
}

const [side, task] = process.argv.slice(2) as [Side, Task]
console.log(JSON.stringify(await tasks[task](side)))
process.exit(0)
