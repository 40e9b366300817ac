/**
 * A cluster of two runners and a client, each a process, on PostgreSQL that waits for its disk.
 */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { type Row, row } from "./support.ts"

const figures = fileURLToPath(new URL("../test/cluster/figures.ts", import.meta.url))

/** Compares two times of one run, in milliseconds. */
const ratio = (id: string, name: string, ours: number, bare: number, bound: number): Row =>
  row(id, name, ours / bare, bound, { ours, peer: bare, unit: "ms" })

export default async (): Promise<ReadonlyArray<Row>> => {
  const { stderr, stdout } = spawnSync(process.execPath, ["--conditions=kernai-source", figures], { encoding: "utf8" })
  const line = stdout.split("\n").findLast((line) => line.startsWith("{"))
  if (line === undefined) throw new Error(`the cluster was not measured: ${stderr}`)
  const found: { readonly [name: string]: number } = JSON.parse(line)
  const at = (name: string) => found[name] ?? NaN
  const recordMs = 1_000 / at("recordsPerSecond")
  return [
    // The bounds in milliseconds of a quiet machine of two cores (0.2, 15 and 2), each divided by what its bare peer is
    // assumed to take there. On a machine with a quicker peer, less time is allowed.
    // Assumes 0.155 ms for a commit of 200 at once.
    ratio("cluster.record", "a record of 200 runs at once to a bare commit of 200", recordMs, at("commitAtOnce"), 1.3),
    // Assumes 3.3 ms for four commits and eight other statements, which was not measured on a quiet machine yet.
    ratio(
      "cluster.start",
      "from submitting a run to its first turn to its statements and its message, bare, p50",
      at("startP50"),
      at("startBare"),
      4
    ),
    // Assumes 0.05 ms for bytes to another process and back.
    ratio(
      "cluster.message",
      "a message to an idle run and its answer to a bare one, p50",
      at("messageP50"),
      at("message"),
      40
    ),
    row("cluster.live", "ms from a word of a reply to a follower elsewhere, p99", at("liveP99"), 20),
    row("cluster.takeover", "ms until the last run of a killed runner continues, locks of 3 s", at("takeover"), 4_000),
    row("cluster.idle", "bytes of an idle run on its runner", at("idleBytes"), 25_000),
    row(
      "cluster.idle.queries",
      "more transactions a second with 10,000 idle runs than with none",
      at("idleQueriesPerSecond") - at("emptyQueriesPerSecond"),
      2
    ),
    row("cluster.waiting", "bytes of a run that waits for a person", at("waitingBytes"), 1_000),
    row(
      "cluster.waiting.queries",
      "more transactions a second with 4,000 waiting runs than with none",
      at("waitingQueriesPerSecond") - at("emptyQueriesPerSecond"),
      2
    )
  ]
}
