/**
 * The scheduler against p-graph and p-limit, in CPU time per task.
 *
 * A graph in layers of ten, 8 tasks at a time. Every task yields once, either to a promise or to the
 * event loop. p-graph follows the same dependencies; p-limit has none and gets one layer after the other.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { PGraph } from "p-graph"
import pLimit from "p-limit"
import * as Plan from "../dist/Plan.js"
import * as TaskScheduler from "../dist/TaskScheduler.js"
import { compare, cpu, ratioRow, type Row } from "./support.ts"

const concurrency = 8
const width = 10

/** Each task depends on `degree` tasks of the layer before. Decoded from JSON, as a model's plan is. */
const layers = (size: number, degree: number): Plan.Plan => {
  const tasks = Array.from({ length: size }, (_, at) => {
    const above = Math.floor(at / width - 1) * width
    const depends_on = Array.from({ length: degree }, (_, k) => `task-${above + ((at + k) % width)}`)
    return { id: `task-${at}`, input: "do", parallel: true, depends_on }
  })
  return Result.getOrThrow(Plan.validate(JSON.stringify({ goal: "layers", strategy: "parallel", tasks })))
}

const promise = async () => {
  await undefined
}
const eventLoop = () => new Promise<void>((resolve) => setImmediate(resolve))
const bodies = {
  promise: { effect: Effect.promise(promise), run: promise },
  "event loop": { effect: Effect.yieldNow, run: eventLoop }
}

type Body = (typeof bodies)[keyof typeof bodies]

const contenders = (plan: Plan.Plan, body: Body) => {
  const edges = plan.tasks.flatMap((task) => task.dependsOn.map((id): [string, string] => [id, task.id]))
  return {
    kernai: () => Effect.runPromise(TaskScheduler.run(plan, () => body.effect, { concurrency })),
    "p-graph": () =>
      new PGraph(new Map(plan.tasks.map((task) => [task.id, { run: body.run }])), edges).run({ concurrency }),
    "p-limit": async () => {
      const limit = pLimit(concurrency)
      for (let at = 0; at < plan.tasks.length; at += width) {
        await Promise.all(plan.tasks.slice(at, at + width).map(() => limit(body.run)))
      }
    }
  }
}

/** CPU microseconds per task, over 20,000 tasks: long enough for each side to collect its own garbage. */
const perTask = (work: () => Promise<unknown>, size: number) => async () => {
  const times = 20_000 / size
  const used = await cpu(async () => {
    for (let time = 0; time < times; time++) await work()
  })
  return used / (times * size)
}

const peers = [
  { peer: "p-graph", bound: 1 },
  { peer: "p-limit", bound: 2 }
] as const

export default async (): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const size of [1000, 10_000]) {
    for (const degree of [2, width]) {
      for (const [name, body] of Object.entries(bodies)) {
        const all = contenders(layers(size, degree), body)
        for (const { bound, peer } of peers) {
          const times = await compare(perTask(all.kernai, size), perTask(all[peer], size), { warm: 2, counted: 7 })
          const title = `${size} tasks, ${degree} dependencies each, yielding to ${name}: CPU per task over ${peer}`
          const id = `scheduler.${size}.${degree}.${name === "promise" ? "promise" : "eventLoop"}.${peer}`
          rows.push(ratioRow(id, title, times, "µs", bound))
        }
      }
    }
  }
  return rows
}
