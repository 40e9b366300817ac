/**
 * A cluster of two runners and a client, each a process, on PostgreSQL that waits for its disk.
 */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { type Row, row } from "./support.ts"

const figures = fileURLToPath(new URL("../test/cluster/figures.ts", import.meta.url))

export default async (): Promise<ReadonlyArray<Row>> => {
  const { stderr, stdout } = spawnSync(process.execPath, ["--conditions=kernai-source", figures], { encoding: "utf8" })
  const line = stdout.split("\n").findLast((line) => line.startsWith("{"))
  if (line === undefined) throw new Error(`the cluster was not measured: ${stderr}`)
  const found: { readonly [name: string]: number } = JSON.parse(line)
  const at = (name: string) => found[name] ?? NaN
  return [
    row("cluster.record", "milliseconds for each record, 200 runs at once", 1_000 / at("recordsPerSecond"), 0.2),
    row("cluster.start", "ms from submitting a run to its first turn, p50", at("startP50"), 15),
    row("cluster.message", "ms for a message to an idle run and its answer, p50", at("messageP50"), 2),
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
      "more transactions a second with 1,000 waiting runs than with none",
      at("waitingQueriesPerSecond") - at("emptyQueriesPerSecond"),
      2
    )
  ]
}
