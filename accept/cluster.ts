/**
 * The promises of many machines: what each process may do, the figures, and the faults that a cluster meets.
 */
import * as os from "node:os"
import { existing, type Line, node } from "./support.ts"

/** The figures of a benchmark, each with its bar. */
const figures = (bench: "cluster" | "worker"): ReadonlyArray<Line> => {
  const { status, stderr, stdout } = node(["bench/run.ts", "--rows", bench])
  const rows: ReadonlyArray<{ readonly name: string; readonly value: number; readonly bound: number | null }> = stdout
    .split("\n")
    .flatMap((line) => (line.startsWith("[") ? JSON.parse(line) : []))
  if (rows.length === 0) {
    return [
      {
        line: `the figures of \`npm run bench -- ${bench}\``,
        pass: false,
        figure: `exit ${status}: ${stderr.trim().slice(-300)}`
      }
    ]
  }
  const load = os.loadavg()[0]?.toFixed(1)
  return rows.map(({ bound, name, value }) => ({
    line: name,
    pass: bound === null || value <= bound,
    figure: `${value.toFixed(2)} (${bound === null ? "for comparison" : `at most ${bound}`}; load ${load})`
  }))
}

/** Faults, each of which meets 100 runs under way on two runners. */
const expected = 15

/** Those between exactly two machines, which need network namespaces. */
const apart = 3

const faults = (): ReadonlyArray<Line> => {
  const script = ["--conditions=kernai-source", "test/reliability/long.ts", "cluster"]
  const { stderr, stdout } = node(script, { timeout: 1_500_000 })
  const lines = [...stdout.matchAll(/^(pass|FAIL) {2}runs of a cluster: (.*?): (\d+ \(.*)$/gm)].map(
    ([, verdict, line = "", figure = ""]): Line => ({
      line: `none lost, doubled or gapped: ${line}`,
      pass: verdict === "pass",
      figure
    })
  )
  const skipped = [...stdout.matchAll(/^skip {2}runs of a cluster: (.*?): (.*)$/gm)].map(
    ([, line = "", reason]): Line => ({
      line,
      pass: true,
      figure: `passed over, this machine does not allow it: ${reason}`
    })
  )
  const missing = expected - lines.length - skipped.length * apart
  return missing === 0
    ? [...lines, ...skipped]
    : [
        ...lines,
        ...skipped,
        { line: "faults that a cluster meets", pass: false, figure: `${missing} missing: ${stderr.slice(-300)}` }
      ]
}

export const cluster = async (): Promise<ReadonlyArray<Line>> => [
  existing("two runners and a client on PostgreSQL, over sockets", ["test/cluster/postgres.test.ts"]),
  existing("3. kernai worker --cluster runs, drains at SIGTERM, and serves the commands", ["test/cli/cluster.test.ts"]),
  existing("1. a worker without a cluster declines questions at their deadline, once, on every store", [
    "test/internal/worker/deadlines.test.ts"
  ]),
  ...figures("worker"),
  ...figures("cluster"),
  ...faults()
]
