/**
 * Fresh processes, as commands and functions are: steps before the compiler has optimised them, many runs at once, and
 * a long conversation. Each measurement is a process of its own; the sides take turns.
 */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import type { Figures, Side, Task } from "./freshSide.ts"
import { compare, ratioRow, type Row } from "./support.ts"

const program = fileURLToPath(new URL("freshSide.ts", import.meta.url))

/** Lets one side do a task in a new process. */
const measure = (side: Side, task: Task): Figures => {
  const { status, stderr, stdout } = spawnSync(process.execPath, [program, side, task], { encoding: "utf8" })
  if (status !== 0) throw new Error(`${side} failed at ${task}: ${stderr}`)
  return JSON.parse(stdout)
}

interface Question {
  readonly id: string
  readonly name: string
  readonly task: Task
  readonly peer: Side
  readonly figure: keyof Figures
  readonly unit: string
  readonly bound: number
  readonly rounds: number
}

const questions: ReadonlyArray<Question> = [
  {
    id: "fresh.500",
    name: "a step of a fresh process, steps 101 to 500: main-thread CPU over pi-agent-core",
    task: "steps",
    peer: "pi",
    figure: "early",
    unit: "µs",
    bound: 3,
    rounds: 7
  },
  {
    id: "fresh.3000",
    name: "a step of a fresh process, steps 1,001 to 3,000: main-thread CPU over pi-agent-core",
    task: "steps",
    peer: "pi",
    figure: "late",
    unit: "µs",
    bound: 2.5,
    rounds: 7
  },
  {
    id: "fresh.1000",
    name: "1,000 runs of 5 steps at once in a fresh process: CPU over ai",
    task: "thousand",
    peer: "ai",
    figure: "cpu",
    unit: "ms",
    bound: 0.9,
    rounds: 5
  },
  {
    id: "fresh.10000",
    name: "10,000 runs of 5 steps at once: wall time over ai",
    task: "tenThousand",
    peer: "ai",
    figure: "wall",
    unit: "ms",
    bound: 0.8,
    rounds: 3
  },
  {
    id: "fresh.chat",
    name: "the last 100 messages of a conversation of 1,000: CPU a message over ai",
    task: "conversation",
    peer: "ai",
    figure: "message",
    unit: "µs",
    bound: 0.5,
    rounds: 5
  }
]

export default async (): Promise<ReadonlyArray<Row>> => {
  const rows: Array<Row> = []
  for (const { bound, figure, id, name, peer, rounds, task, unit } of questions) {
    const of = (side: Side) => () => Promise.resolve(measure(side, task)[figure] ?? NaN)
    const found = await compare(of("kernai"), of(peer), { warm: 0, counted: rounds })
    rows.push(ratioRow(id, name, found, unit, bound))
  }
  return rows
}
