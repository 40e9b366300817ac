/** Runners as processes, which are killed: those that lend runs, those that borrow them, and those that a run kills. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Option, Stream } from "effect"
import { Kernel, type RunStore } from "kernai"
import { RunEntity } from "kernai/cluster"
import { setTimeout as sleep } from "node:timers/promises"
import * as Postgres from "../support/postgres.ts"
import { type Cluster, judge, make } from "./machines.ts"
import { agent, agentOf } from "./process.ts"
import { until } from "./sockets.ts"

const turns = 6
const setting = { lockExpiration: 3_000, model: 500, call: 20, turns }

const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, number) => `${prefix}${number}`)

const submit = ({ services }: Cluster, agentName: string, runIds: ReadonlyArray<string>) =>
  Effect.forEach(runIds, (runId) => Kernel.submit(agentOf(agentName), "go", { runId }), {
    concurrency: 10,
    discard: true
  }).pipe(Effect.provideContext(services))

/** Waits until runs are at rest. */
const atRest = ({ store }: Cluster, runIds: ReadonlyArray<string>) =>
  until(
    Effect.map(store.list({ status: ["completed", "failed", "poisoned"], roots: true }), (heads) => {
      const over = new Set(heads.map(({ runId }) => runId))
      return runIds.every((runId) => over.has(runId))
    })
  )

const started = (cluster: Cluster, ...runners: ReadonlyArray<ReadonlyArray<string>>) =>
  Effect.promise(async () => {
    const machines = await Promise.all(runners.map((agents) => cluster.start(agents)))
    // Shards move to the runner that joined last.
    await sleep(3_000)
    return machines
  })

/** The runs that are assigned to a runner. */
const lentBy = Effect.fnUntraced(function* (cluster: Cluster, port: number, runIds: ReadonlyArray<string>) {
  const to = yield* Effect.provideContext(RunEntity.RunEntity.client, cluster.services)
  return yield* Effect.filter(runIds, (id) => Effect.map(to(id).Ping(), (at) => at.endsWith(`:${port}`)), {
    concurrency: 10
  })
})

/** How often each run was resumed. */
const resumesOf = ({ store }: Cluster, runIds: ReadonlyArray<string>) =>
  Effect.forEach(runIds, (runId) =>
    Effect.map(Stream.runCollect(store.read(runId)), (records) => records.filter(({ op }) => op === "resume").length)
  )

describe.skipIf(!Postgres.available)("a cluster whose runner is killed", () => {
  for (const [who, which] of [
    ["lends runs", 0],
    ["borrows runs", 1]
  ] as const) {
    it.live(`loses and doubles nothing when the runner ${who}`, () =>
      Effect.gen(function* () {
        const cluster = yield* make(setting)
        const machines = yield* started(cluster, ["clerk"], ["writer"], ["writer"])
        const runIds = ids("w", 45)
        yield* submit(cluster, "writer", runIds)
        const lent = yield* lentBy(cluster, machines[0]?.port ?? 0, runIds)
        assert.isAtLeast(lent.length, 3)
        yield* until(Effect.map(resumesOf(cluster, lent), (counts) => counts.every((count) => count > 0)))
        machines[which]?.signal("SIGKILL")
        yield* atRest(cluster, runIds)
        assert.deepStrictEqual(yield* judge(cluster, runIds, turns), [])
        assert.isAtLeast(Math.max(...(yield* resumesOf(cluster, lent))), 2)
      }).pipe(Effect.scoped)
    )
  }

  it.live("sets the run apart that kills each of its processes, and completes the runs beside it", () =>
    Effect.gen(function* () {
      const cluster = yield* make({ ...setting, retryEvery: 300 })
      let isOver = false
      // Starts another process for each one that ends.
      const supervise = async (): Promise<void> => {
        while (!isOver) await (await cluster.start()).ended
      }
      void supervise()
      void supervise()
      const innocent = ids("r", 20)
      yield* Effect.sleep("4 seconds")
      yield* submit(cluster, agent.name, [...innocent.slice(0, 10), "poison", ...innocent.slice(10)])
      yield* atRest(cluster, [...innocent, "poison"])
      isOver = true
      const { status } = Option.getOrThrow(yield* cluster.store.head("poison"))
      assert.strictEqual(errorOf(status), "RunPoisoned")
      assert.deepStrictEqual(yield* judge(cluster, innocent, turns), [])
    }).pipe(Effect.scoped)
  )
})

const errorOf = (status: RunStore.RunStatus) => (status.type === "failed" ? status.error.tag : status.type)
