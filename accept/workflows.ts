/**
 * The promises of workflows: plans, sub-agents, budgets, events, scenarios.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { attempt, benched, existing, inFolder, type Line, node, root, vectors } from "./support.ts"

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
    lines.push(
      existing("plans, schedules and the catalogue of scenarios in their slow cases", [
        "test/Plan.test.ts",
        "test/TaskScheduler.test.ts",
        "test/cli/runScenarios.test.ts"
      ]),
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
