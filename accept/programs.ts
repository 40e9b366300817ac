/**
 * The promises of programs: agents whose steps are code, code that a model writes, and calls that somebody else runs.
 */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import type { Asleep } from "../test/program/asleep.ts"
import { attempt, benched, existing, failures, type Line, node, root, vitest } from "./support.ts"

/** Programs made at random, each cut off at every record, with people who agree and refuse. */
const crashed = (file: string) => (): Omit<Line, "line"> => {
  const ran = vitest([file], { timeout: 3_600_000 })
  const [, programs = "0", points = "0"] = /programs: (\d+) with (\d+) crash points/.exec(ran.stdout) ?? []
  return {
    pass: ran.status === 0 && Number(programs) >= 1_000 && Number(points) >= 10_000,
    figure: `${programs} programs, ${points} crash points in ${ran.seconds.toFixed(0)} s${failures(ran)}`
  }
}

/** Programs of models that try to stay, to grow or to get out. */
const hostile = (): Omit<Line, "line"> => {
  const ran = vitest(["test/code/hostile.test.ts"], { timeout: 3_600_000 })
  const [, count = "0", ends = ""] = /hostile programs: (\d+) (\{.*\})/.exec(ran.stdout) ?? []
  return {
    pass: ran.status === 0 && Number(count) >= 1_000,
    figure: `${count} in ${ran.seconds.toFixed(0)} s: ${ends}${failures(ran)}`
  }
}

/** The invoice office: its length, and that it prints what it promises. */
const office = (): Omit<Line, "line"> => {
  const ran = node(["--conditions=kernai-source", "examples/14-invoice-office.ts"])
  const [main, parts] = ["14-invoice-office.ts", "invoiceOffice.ts"].map((file) =>
    readFileSync(join(root, "examples", file), "utf8")
  )
  const promised = (main ?? "").split("// Prints:\n")[1]?.replaceAll(/^\/\/ /gm, "")
  const count = `${main}${parts}`.split("\n").filter((line) => !/^\s*(?:$|\/\/|\/?\*)/.test(line)).length
  return {
    pass: ran.status === 0 && ran.stdout === promised && count < 120,
    figure: `${count} lines of code (less than 120), exit code ${ran.status}`
  }
}

/** 10,000 programs that sleep on PostgreSQL: the heap of their worker, and its queries. */
const asleep = (): ReadonlyArray<Line> => {
  const script = ["--expose-gc", "--conditions=kernai-source", "test/program/asleep.ts", "10000"]
  const { stderr, stdout } = node(script, { timeout: 3_600_000 })
  const found = stdout.split("\n").findLast((line) => line.startsWith("{"))
  const line = "10,000 programs asleep on PostgreSQL"
  if (found === undefined) return [{ line, pass: false, figure: stderr.trim().slice(-300) }]
  const { bytesPerRun, emptyQueriesPerSecond, queriesPerSecond, runs }: Asleep = JSON.parse(found)
  return [
    {
      line: `${line}: bytes of heap for each`,
      pass: runs === 10_000 && bytesPerRun < 200,
      figure: bytesPerRun.toFixed(0)
    },
    {
      line: `${line}: queries of an idle worker in a second`,
      pass: queriesPerSecond <= 0.1,
      figure: `${queriesPerSecond} (at most 0.1), and ${emptyQueriesPerSecond} without programs`
    }
  ]
}

export const programs = async (): Promise<ReadonlyArray<Line>> => [
  await attempt(
    "programs made at random lose nothing and double nothing, wherever they die",
    crashed("test/program/crash.test.ts")
  ),
  await attempt(
    "code made at random loses nothing and doubles nothing, wherever it dies",
    crashed("test/code/crash.test.ts")
  ),
  await attempt("hostile code ends in its bounds, hurts no process and leaves no thread and no timer", hostile),
  existing("code that a model writes: calls, blocks, tools, agents, search, errors, limits and days of waiting", [
    "test/code/Code.test.ts",
    "test/code/quickJs.test.ts",
    "test/code/days.test.ts"
  ]),
  existing("steps, questions, waits, versions and failures of programs", [
    "test/Program.test.ts",
    "test/program/waits.test.ts"
  ]),
  existing("a recorded program is replayed, and a changed one diverges at its call", ["test/program/replay.test.ts"]),
  ...benched("programs"),
  ...asleep(),
  ...benched("code"),
  existing("external calls in process, over HTTP, AG-UI and A2A", [
    "test/durable/external.test.ts",
    "test/http/external.test.ts",
    "test/http/agExternal.test.ts"
  ]),
  existing("background calls: results, lists, cancellation, questions, forks and replays", [
    "test/agents/background.test.ts"
  ]),
  existing("an agent continues until a check accepts its answer, within its turns and its budget", [
    "test/kernel/goals.test.ts"
  ]),
  existing("forms and external calls in the studio and the chat of the command line", [
    "test/studio/askedValue.test.ts",
    "test/cli/chat/terminalChat.test.ts"
  ]),
  await attempt("the invoice office is short and prints what it promises", office),
  existing("the invoice office on memory, files, SQLite, PostgreSQL and three runners, in virtual time", [
    "test/examples/invoiceOffice.test.ts"
  ])
]
