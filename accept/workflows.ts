/**
 * The promises of workflows: plans, sub-agents, budgets, events, scenarios.
 *
 * What is a matter of time is proven on a virtual clock, by the intervals in
 * which tasks ran; only the benchmark looks at a real one.
 */
import { readdirSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { attempt, benched, inFolder, type Line, node, provenBy, reported, root, type Test, vectors } from "./support.ts"

// ---------------------------------------------------------------- tests

const files = [
  "test/Plan.test.ts",
  "test/TaskScheduler.test.ts",
  "test/EventBus.test.ts",
  "test/Budget.test.ts",
  "test/workflow",
  "test/testing/Scenario.test.ts",
  "test/cli/runScenarios.test.ts"
]

/** A promise, the file that proves it, and what the titles of its tests have in common. */
const promises: ReadonlyArray<readonly [line: string, file: string, titles: RegExp]> = [
  ["a plan that cannot run is refused with a reason the model is told, and the run goes on", "plans", /cannot run/],
  ["plans that are arrays, numbers, null, deep, huge, cyclic, doubled", "plans", /is refused when it is/],
  ["tasks named like prototypes, paths and numbers run as themselves", "plans", /hostile names/],
  ["a prose plan is no rejection", "plans", /prose: no rejection/],
  ["a sub-agent cannot start a workflow", "plans", /sub-agent is refused as nested/],
  ["/workflow and /tasks tell what they should", "plans", /\/tasks and \/workflow/],
  ["plans are read and refused by the rules, whatever comes", "Plan", /./],
  ["tasks run at once, limited, in order, each as soon as it may", "TaskScheduler", /./],
  [
    "tasks overlap as they should, by intervals on a virtual clock",
    "tasks",
    /overlap|run at once|start as soon|exclude|slot/
  ],
  [
    "results are told in the order of the plan, dependencies before the task",
    "tasks",
    /order of the plan|results of their dependencies/
  ],
  ["instructions, model, generation and media are shared", "tasks", /parent's instructions|media that earlier/],
  ["onTaskComplete is called once for each task", "tasks", /call onTaskComplete once/],
  ["a task that fails, hangs or is interrupted says so itself; siblings go on", "faults", /a task that fails/],
  ["when a parent ends in any way, no task works on", "faults", /a parent that ends/],
  ["tokens, cost, turns: counted once for the tree, never overrun together", "budget", /budget of a tree/],
  ["the spawn budget denies, makes wait, and gives back", "budget", /spawn budget/],
  ["a child never has more rights than its parent", "rights", /a sub-agent/],
  ["a task that needs a person pauses the run, and goes on with the answer", "rights", /needs a person/],
  ["one subscription hears the whole tree in causal order", "events", /./],
  ["a slow subscriber loses pieces of streams, never phases", "events", /slow subscriber/],
  ["topics, addresses, messages from agent to agent", "EventBus", /./],
  ["a workflow cut off half-way goes on with what is left", "resume", /./],
  ["a scenario is a value with a script, a report, a log of its own, a locked manifest", "Scenario", /./],
  ["the catalogue passes offline; a failure, a skip and a crash are told apart", "runScenarios", /./]
]

const proven = (all: ReadonlyArray<Test>): ReadonlyArray<Line> =>
  promises.map(([line, file, titles]) =>
    provenBy(
      line,
      all.filter((test) => basename(test.file, ".test.ts") === file && titles.test(test.title))
    )
  )

// ---------------------------------------------------------------- scenarios

const bin = "bin/kernai.mjs"
const catalogue = "examples/scenarios"

const offline = (folder: string): Omit<Line, "line"> => {
  const expected = readdirSync(join(root, catalogue)).filter((file) => /^\d\d-.*\.ts$/.test(file)).length
  const ran = node([bin, "scenario", "run", catalogue, "--log", join(folder, "run")])
  const ok = (ran.stdout.match(/^ok /gm) ?? []).length
  const branches = (ran.stdout.match(/[├└]─ .* (?:ms|s) /g) ?? []).length
  return {
    pass: ran.status === 0 && ok === expected && branches > ok,
    figure: `${ok} of ${expected} ok, ${branches} branches with times, ${ran.seconds.toFixed(1)} s`
  }
}

const kept = (folder: string): Omit<Line, "line"> => {
  const files = readdirSync(join(folder, "run"))
  const manifest: ReadonlyArray<{ readonly log: string }> = JSON.parse(
    readFileSync(join(folder, "run", "manifest.json"), "utf8")
  )
  const logs = manifest.filter(({ log }) => files.includes(log)).length
  return { pass: logs === manifest.length && logs > 0, figure: `${logs} logs named in the manifest` }
}

const square = (folder: string): Omit<Line, "line"> => {
  const scenarios = ["02-fan-out", "04-investigation", "07-recovery"].map((name) => `${catalogue}/${name}.ts`)
  const models = ["script/whole", "script/words", "script/chars"]
  const args = [...scenarios, ...models.flatMap((model) => ["--model", model]), "--log", join(folder, "matrix")]
  const ran = node([bin, "scenario", "matrix", ...args])
  const file = readdirSync(join(folder, "matrix")).find((name) => name.startsWith("matrix_")) ?? ""
  const { cells, totals }: { cells: ReadonlyArray<object>; totals: { readonly ok: number } } = JSON.parse(
    readFileSync(join(folder, "matrix", file), "utf8")
  )
  return {
    pass: ran.status === 0 && cells.length === 9 && totals.ok === 9,
    figure: `${totals.ok} of ${cells.length} ok, ${ran.seconds.toFixed(1)} s`
  }
}

const wrong = (folder: string): Omit<Line, "line"> => {
  const ran = node([bin, "scenario", "run", "test/fixtures/scenarios/wrong.ts", "--log", join(folder, "wrong")])
  return {
    pass: ran.status === 1 && ran.stdout.includes("unexpected_result: the answer is not 4"),
    figure: `exit code ${ran.status}`
  }
}

const example = (): Omit<Line, "line"> => {
  const ran = node(["--conditions=kernai-source", "examples/07-workflow.ts"])
  const text = readFileSync(join(root, "examples/07-workflow.ts"), "utf8")
  const lines = text.slice(text.lastIndexOf("// Prints:\n")).trim().split("\n").slice(1)
  const promised = lines.map((line) => line.replace(/^\/\/ ?/, "")).join("\n")
  const count = text.split("\n").filter((line) => line.trim() !== "" && !line.startsWith("//")).length
  return {
    pass: ran.status === 0 && ran.stdout.trim() === promised && count < 80,
    figure: `${count} lines of code, prints the ${lines.length} lines it promises`
  }
}

// ---------------------------------------------------------------- all

export const workflows = (): Promise<ReadonlyArray<Line>> =>
  inFolder(async (folder) => {
    const lines: Array<Line> = [
      vectors(
        "vectors of plan, scheduler, instructions; recorded runs with workflows",
        ["plan", "scheduler", "instructions", "kernel"].map((name) => `test/conformance/${name}.test.ts`)
      )
    ]
    const ran = await attempt("tests of workflows", async () => {
      const { seconds, tests } = await reported(files, { env: { LONG_RUN: "1" } })
      lines.push(...proven(tests))
      return {
        pass: tests.length > 0 && tests.every((test) => test.passed) && seconds < 20,
        figure: `${tests.length} in ${seconds.toFixed(1)} s`
      }
    })
    lines.push(
      ran,
      await attempt("scenario run of the catalogue, offline, with trees and times", () => offline(folder)),
      await attempt("each run has a log of its own, named in the manifest", () => kept(folder)),
      await attempt("scenario matrix, 3 × 3, each pair in a process of its own", () => square(folder)),
      await attempt("a scenario that misses what was expected fails", () => wrong(folder)),
      await attempt("a workflow example a newcomer understands in a minute", example),
      ...benched("scheduler"),
      ...benched("agents")
    )
    return lines
  })
