/**
 * The promises of durable runs: nothing lost, nothing twice.
 */
import { existsSync } from "node:fs"
import { join } from "node:path"
import { attempt, benched, type Line, root, tested, vectors, vitest } from "./support.ts"

/** A count that tests print as `name: N`, added up over what they print, and the least it must be. */
const counted = (line: string, files: ReadonlyArray<string>, word: string, least: number): Line => {
  const missing = files.filter((file) => !existsSync(join(root, file)))
  if (missing.length > 0) return { line, pass: false, figure: `no ${missing.join(", ")}` }
  const ran = vitest(files)
  const found = [...ran.stdout.matchAll(new RegExp(`${word}: (\\d+)`, "g"))]
  const sum = found.reduce((sum, match) => sum + Number(match[1]), 0)
  return { line, pass: ran.status === 0 && sum >= least, figure: `${sum} (at least ${least})` }
}

const existing = (line: string, files: ReadonlyArray<string>): Line => {
  const missing = files.filter((file) => !existsSync(join(root, file)))
  return missing.length > 0 ? { line, pass: false, figure: `no ${missing.join(", ")}` } : tested(line, files)
}

export const durable = async (): Promise<ReadonlyArray<Line>> => [
  vectors("scenarios of durable runs in the strict tier, on memory, files, SQLite and PostgreSQL", [
    "test/conformance/durableRun.test.ts"
  ]),
  existing("every row of the rules: hooks, pauses, reviews, verdicts, resumes, crashes", ["test/durable"]),
  existing("every store passes the one suite, with values that JSON cannot hold", [
    "test/RunStore.test.ts",
    "test/file/FileRunStore.test.ts",
    "test/sql/SqlRunStore.test.ts",
    "test/sql/PgRunStore.test.ts"
  ]),
  counted("crash points, each judged by R-1 to R-7", ["test/reliability/crashMatrix.test.ts"], "crash points", 1000),
  existing("kernels that are broken are found out (R-2, R-5)", ["test/reliability/crashMatrix.test.ts"]),
  counted("simulation seeds", ["test/reliability/simulation.test.ts"], "seeds", 200),
  counted("real kills of a process", ["test/reliability/kills.test.ts"], "kills", 10),
  counted("two processes on one run", ["test/reliability/contention.test.ts"], "contentions", 5),
  existing("paused in one process, approved from the command line in another, finished by a third", [
    "test/cli/runs.test.ts"
  ]),
  existing("a recorded run replays, and a changed prompt is named as the step that differs", [
    "test/durable/replay.test.ts"
  ]),
  existing("a run forks from any commit, the original untouched", ["test/durable/fork.test.ts"]),
  existing("a worker claims, renews, retries and stops in time", ["test/RunWorker.test.ts"]),
  await attempt("the long run: 200 kills, 50 stops, 100 contentions on two databases, mutants", () => ({
    pass: existsSync(join(root, "test/reliability/long.ts")),
    figure: existsSync(join(root, "test/reliability/long.ts")) ? "npm run reliability" : "not there"
  })),
  ...benched("store")
]
