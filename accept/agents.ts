/**
 * The promises of agents that work together, are stopped and are followed by id.
 */
import { benched, type Line, node, ofFiles, tested } from "./support.ts"
import { team } from "./team.ts"

/** The most that a cancellation may take until the last call of a tree in another process has stopped. */
const most = 300

/** Cancels a tree of 100 runs in another process on each store. */
const cancelled = (): ReadonlyArray<Line> => {
  const { status, stderr, stdout } = node(["--conditions=kernai-source", "test/reliability/cancelTree.ts"])
  return ["sqlite", "postgres"].map((store) => {
    const found = new RegExp(`^cancel on ${store}: (\\d+) ms, (\\d+) runs, (\\d+) left, RunCancelled$`, "m").exec(
      stdout
    )
    const [took, runs, left] = (found ?? []).slice(1).map(Number)
    return {
      line: `a tree of 100 runs in another process is cancelled within ${most} ms on ${store}, and none of it is left`,
      pass: status === 0 && took !== undefined && took <= most && runs === 101 && left === 0,
      figure: found?.[0] ?? (stderr.trim().split("\n").at(-1) || "no figure")
    }
  })
}

export const agents = async (): Promise<ReadonlyArray<Line>> => [
  ofFiles(tested, "a run is followed by id, from any moment, without a gap and without a repeat", [
    "test/durable/follow.test.ts"
  ]),
  ...cancelled(),
  ...benched("followers"),
  ...(await team())
]
