/**
 * What one task costs the scheduler, against p-graph and p-limit.
 *
 * A graph in layers of ten, 8 tasks at a time. The tasks of all contenders do
 * the same: they give way once, either to a promise or to the event loop.
 * p-graph follows the same dependencies; p-limit knows none, it is given one
 * layer after the other. Rounds are interleaved in one process, medians of CPU
 * time (collector included) are compared.
 */
import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { PGraph } from "p-graph"
import pLimit from "p-limit"
import * as Plan from "../src/Plan.ts"
import * as TaskScheduler from "../src/TaskScheduler.ts"
import { cpu, median, type Row, table } from "./support.ts"

const concurrency = 8
const width = 10

/** Each task waits for `degree` tasks of the layer before. Read from JSON, as a model's plan is. */
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

const contenders = (plan: Plan.Plan, body: Body): Record<string, () => Promise<unknown>> => {
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

/** The same work often enough for 20,000 tasks, so that each contender pays for its own garbage. */
const perTask = async (work: () => Promise<unknown>, size: number) => {
  const times = 20_000 / size
  const used = await cpu(async () => {
    for (let time = 0; time < times; time++) await work()
  })
  return used / (times * size)
}

/** Microseconds of CPU per task and contender. */
const measure = async (size: number, degree: number, body: Body) => {
  const all = Object.entries(contenders(layers(size, degree), body))
  const times = new Map(all.map(([name]) => [name, new Array<number>()]))
  for (let round = -2; round < 7; round++) {
    for (const [name, work] of all) {
      const used = await perTask(work, size)
      if (round >= 0) times.get(name)?.push(used)
    }
  }
  return (name: string) => median(times.get(name) ?? [])
}

/** CPU per task as a ratio to each peer: at most 1 to p-graph, at most 2 to p-limit. */
export const schedulerBench = async (): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const size of [1000, 10_000]) {
    for (const degree of [2, width]) {
      for (const [name, body] of Object.entries(bodies)) {
        const of = await measure(size, degree, body)
        for (const [peer, bound] of [
          ["p-graph", 1],
          ["p-limit", 2]
        ] as const) {
          const value = of("kernai") / of(peer)
          const costs = `${of("kernai").toFixed(2)} against ${of(peer).toFixed(2)} µs`
          rows.push({
            name: `scheduler: ${size} tasks, ${degree} dependencies, ${name}, to ${peer} (${costs})`,
            value,
            bound,
            pass: value <= bound
          })
        }
      }
    }
  }
  return rows
}

if (process.argv[1] === fileURLToPath(import.meta.url)) table("scheduler", await schedulerBench())
