/**
 * The promises of durable runs: nothing lost, nothing twice.
 */
import { attempt, benched, counted, existing, type Line, node, vectors } from "./support.ts"

/** Runs the part of the long run that real processes and mutants are, and reads its report. */
const longRun = (): Omit<Line, "line"> => {
  const parts = ["kills", "stops", "contentions", "mutants"]
  const script = ["--conditions=kernai-source", "test/reliability/long.ts", ...parts]
  const { seconds, status, stderr, stdout } = node(script, { timeout: 1_500_000 })
  const countOf = (what: string) => Number(new RegExp(`^pass  ${what}: (\\d+)`, "m").exec(stdout)?.[1] ?? 0)
  const asked = [
    ["kills", 200],
    ["stops", 50],
    ["contentions", 100]
  ] as const
  const counts = asked.flatMap(([what, least]) =>
    ["sqlite", "postgres"].map((on) => ({ what: `${what} on ${on}`, count: countOf(`${what} on ${on}`), least }))
  )
  const verdict = /^lost: (\d+), doubled: (\d+), stuck: (\d+), innocent failed: (\d+), in all: (\d+)$/m.exec(stdout)
  const isClean = verdict !== null && verdict.slice(1).every((count) => count === "0")
  const pass = status === 0 && isClean && countOf("mutants found") > 0 && counts.every((row) => row.count >= row.least)
  const told = counts.map(({ count, what }) => `${count} ${what}`).join(", ")
  // What was found is needed to play it again: its seed is in it.
  if (!pass)
    console.log(
      stdout
        .split("\n")
        .filter((line) => !line.startsWith("pass"))
        .join("\n")
    )
  const found = `${countOf("mutants found")} mutants found, ${verdict?.[0] ?? (stderr.trim().split("\n").at(-1) || "no report")}`
  return { pass, figure: `${told}; ${found}; ${seconds.toFixed(0)} s` }
}

export const durable = async (): Promise<ReadonlyArray<Line>> => [
  vectors("scenarios of durable runs in the strict tier, on memory, files, SQLite and PostgreSQL", [
    "test/conformance/durableRun.test.ts"
  ]),
  existing("stores in files and in PostgreSQL pass the one suite", [
    "test/file/FileRunStore.test.ts",
    "test/sql/PgRunStore.test.ts"
  ]),
  counted(
    "crash points, each judged by the rules of reliability",
    ["test/reliability/crashMatrix.test.ts"],
    "crash points",
    1000
  ),
  existing("kernels that are broken are found out (R-2, R-5)", ["test/reliability/crashMatrix.test.ts"]),
  counted("simulation seeds", ["test/reliability/simulation.test.ts"], "seeds", 200),
  counted("real kills of a process", ["test/reliability/kills.test.ts"], "kills", 10),
  counted("two processes on one run", ["test/reliability/contention.test.ts"], "contentions", 5),
  existing("paused in one process, approved from the command line in another, finished by a third", [
    "test/cli/runs.test.ts"
  ]),
  existing("a recorded run replays, and a changed prompt is named as the step that differs", [
    "test/testing/Replay.test.ts"
  ]),
  await attempt("the long run: 200 kills, 50 stops, 100 contentions on two databases, mutants", longRun),
  ...benched("store")
]
