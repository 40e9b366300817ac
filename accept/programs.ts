/**
 * The promises of programs: agents whose steps are code, code that a model writes, and calls that somebody else runs.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { Checked } from "../test/code/elsewhere.ts"
import type { Asleep } from "../test/program/asleep.ts"
import { isLate } from "../test/support/lateLines.ts"
import {
  attempt,
  benched,
  existing,
  failures,
  inFolder,
  type Line,
  node,
  nodeBeside,
  root,
  run,
  vitest,
  vitestShared
} from "./support.ts"

/** Programs made at random, each cut off at every record, with people who agree and refuse. */
const crashed = (file: string, least: number) => async (): Promise<Omit<Line, "line">> => {
  const ran = await vitestShared(file, 3_600_000)
  const counts = [...ran.stdout.matchAll(/programs: (\d+) with (\d+) crash points/g)]
  const sum = (group: number) => counts.reduce((sum, count) => sum + Number(count[group]), 0)
  const [programs, points] = [sum(1), sum(2)]
  return {
    pass: ran.status === 0 && programs >= least && points >= 10_000,
    figure: `${programs} programs, ${points} crash points in ${ran.seconds.toFixed(0)} s${failures(ran)}`
  }
}

/** Programs of models that try to stay, to grow or to get out. */
const hostile = async (): Promise<Omit<Line, "line">> => {
  const ran = await vitestShared("test/code/hostile.test.ts", 3_600_000)
  const ends = new Map<string, number>()
  for (const [, found = "{}"] of ran.stdout.matchAll(/hostile programs: \d+ (\{.*\})/g)) {
    const counts: { readonly [end: string]: number } = JSON.parse(found)
    for (const [end, count] of Object.entries(counts)) ends.set(end, (ends.get(end) ?? 0) + count)
  }
  const count = [...ends.values()].reduce((sum, one) => sum + one, 0)
  return {
    pass: ran.status === 0 && count >= 1_000,
    figure: `${count} in ${ran.seconds.toFixed(0)} s: ${JSON.stringify(Object.fromEntries(ends))}${failures(ran)}`
  }
}

/** The list of 500 functions, and the search among them. */
const functions = (): Omit<Line, "line"> => {
  const ran = vitest(["test/code/manyFunctions.test.ts"])
  const [, figure] = /functions: (.*)/.exec(ran.stdout) ?? []
  return { pass: ran.status === 0 && figure !== undefined, figure: `${figure}${failures(ran)}` }
}

/**
 * The checks of the interpreter in another runtime, and the replay of programs that Node recorded. A runtime that is not
 * there fails visibly.
 */
const elsewhere = (runtime: string, args: ReadonlyArray<string>) => async (): Promise<Omit<Line, "line">> => {
  if (run(runtime, ["--version"]).status !== 0) return { pass: false, figure: `${runtime} is not there` }
  const script = ["--conditions=kernai-source", "test/code/elsewhere.ts"]
  const ran = await inFolder((folder) => {
    const tapes = join(folder, "tapes.json")
    writeFileSync(tapes, node([...script, "record"]).stdout)
    return run(runtime, [...args, ...script, tapes])
  })
  const found = ran.stdout.split("\n").findLast((line) => line.startsWith("{"))
  if (found === undefined) return { pass: false, figure: ran.stderr.trim().slice(-300) }
  const { checks, failed }: Checked = JSON.parse(found)
  return {
    pass: ran.status === 0 && checks > 20 && failed.length === 0,
    figure: `${checks - failed.length} of ${checks} checks${failed.map((name) => `; failed: ${name}`).join("")}`
  }
}

/** The invoice office: its length, and that it prints what it promises. */
const office = (): Omit<Line, "line"> => {
  const ran = node(["--conditions=kernai-source", "examples/14-invoice-office.ts"])
  const [main, parts] = ["14-invoice-office.ts", "invoiceOffice.ts"].map((file) =>
    readFileSync(join(root, "examples", file), "utf8")
  )
  const promised = (main ?? "").split("// Prints:\n")[1]?.replaceAll(/^\/\/ /gm, "")
  const printed = ran.stdout
    .split("\n")
    .filter((line) => !isLate(line))
    .join("\n")
  const count = `${main}${parts}`.split("\n").filter((line) => !/^\s*(?:$|\/\/|\/?\*)/.test(line)).length
  return {
    pass: ran.status === 0 && printed === promised && count < 120,
    figure: `${count} lines of code (less than 120), exit code ${ran.status}`
  }
}

/** 10,000 programs that sleep on PostgreSQL: the heap of their worker, and its queries. */
const asleep = async (): Promise<ReadonlyArray<Line>> => {
  const script = ["--expose-gc", "--conditions=kernai-source", "test/program/asleep.ts", "10000"]
  const { stderr, stdout } = await nodeBeside(script, { timeout: 3_600_000 })
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

/** The programs asleep wait most of the time, and count what does not depend on the rows beside them. */
export const programs = (): Promise<ReadonlyArray<Line>> => rows(asleep())

const rows = async (sleeping: Promise<ReadonlyArray<Line>>): Promise<ReadonlyArray<Line>> => [
  await attempt(
    "programs made at random lose nothing and double nothing, wherever they die",
    crashed("test/program/crash.test.ts", 1_000)
  ),
  await attempt(
    "code made at random loses nothing and doubles nothing, wherever it dies",
    crashed("test/code/crash.test.ts", 1_000)
  ),
  await attempt(
    "background calls made at random lose nothing, double nothing and arrive once, wherever their run dies",
    crashed("test/agents/backgroundCrash.test.ts", 200)
  ),
  await attempt("hostile code ends in its bounds, hurts no process and leaves no thread and no timer", hostile),
  existing("code that a model writes: calls, blocks, tools, agents, search, errors, limits and replays", [
    "test/code/Code.test.ts",
    "test/code/quickJs.test.ts",
    "test/code/simulated.test.ts",
    "test/cli/code.test.ts"
  ]),
  existing("code waits for days at each call: memory, files, SQLite, PostgreSQL and four runners", [
    "test/code/days.test.ts"
  ]),
  await attempt("500 functions: the tokens of their list, and those that a search finds", functions),
  await attempt("the interpreter in Bun, and replays of programs that Node recorded", elsewhere("bun", [])),
  await attempt(
    "the interpreter in Deno, and replays of programs that Node recorded",
    elsewhere("deno", ["run", "-A", "--no-check", "--node-modules-dir=manual"])
  ),
  existing("steps, questions, waits, versions and failures of programs", [
    "test/Program.test.ts",
    "test/program/waits.test.ts"
  ]),
  existing("a recorded program is replayed, and a changed one diverges at its call", ["test/program/replay.test.ts"]),
  ...(await sleeping),
  ...benched("programs"),
  ...benched("code"),
  existing("external calls in process, over HTTP, AG-UI and A2A", [
    "test/durable/external.test.ts",
    "test/http/external.test.ts",
    "test/http/agExternal.test.ts"
  ]),
  existing("background calls: results, lists, cancellation, questions, forks and replays", [
    "test/agents/background.test.ts"
  ]),
  existing("background calls over HTTP, useChat, AG-UI and A2A, and on the page of the studio", [
    "test/http/background.test.ts",
    "test/studio/runTree.test.ts"
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
  ]),
  existing("a desk that waits for a background call on memory, files, SQLite, PostgreSQL and two runners", [
    "test/examples/reportDesk.test.ts"
  ])
]
