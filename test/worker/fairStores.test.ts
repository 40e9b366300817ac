/** The figure of fairness: how long 20 callers wait beside one whose 1,000 runs never end. */
import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Layer, Redacted, Scope, Stream } from "effect"
import { TestRunner } from "effect/cluster"
import { Kernel, MediaStore, ProtocolRegistry, RunStore, RunWorker, Skill, SkillRegistry } from "kernai"
import { ClusterKernel } from "kernai/cluster"
import { PgRunStore, SqlRunStore } from "kernai/sql"
import { agent, clerk } from "../support/clerk.ts"
import { folder } from "../support/folder.ts"
import * as Postgres from "../support/postgres.ts"

const hanging = 1_000
const callers = 20
const runsOfCaller = 5

/** How many runs that never end have begun. */
let entered = 0

/** Ends after a quarter of a second, unless the run belongs to the caller `hog`. */
const pay = Skill.dynamic("pay", {
  description: "pays",
  effects: "read",
  inputSchema: { type: "object" },
  execute: (_, { runId }) =>
    Effect.suspend(() => {
      if (!runId.startsWith("hog")) return Effect.as(Effect.sleep("250 millis"), "ok")
      entered++
      return Effect.never
    })
})

const KernelLive = Kernel.layer.pipe(
  Layer.provide([SkillRegistry.layer(pay), ProtocolRegistry.layer(), MediaStore.layerMemory, clerk("paid")])
)

const submit = (id: string, number: number) =>
  Kernel.submit(agent, "pay eva", { runId: `${id}-${number}`, caller: { id } })

/** Submits the runs of one caller one after the other. Returns how long each one took until its answer. */
const timesOf = (id: string) =>
  Effect.forEach(Array.from({ length: runsOfCaller }), (_, number) =>
    Effect.gen(function* () {
      const before = yield* Clock.currentTimeMillis
      yield* Stream.runDrain(Kernel.follow(yield* submit(id, number)))
      return (yield* Clock.currentTimeMillis) - before
    })
  )

/** Returns the time within which 95 of 100 runs have their answer. */
const p95 = (withHog: boolean) =>
  Effect.gen(function* () {
    entered = 0
    if (withHog) {
      const numbers = Array.from({ length: hanging }, (_, number) => number)
      yield* Effect.forEach(numbers, (number) => submit("hog", number), { concurrency: 32, discard: true })
      yield* Effect.repeat(Effect.sleep("100 millis"), { until: () => entered >= 32 })
      yield* Effect.sleep("3 seconds")
    }
    const ids = Array.from({ length: callers }, (_, number) => `caller${number}`)
    const times = (yield* Effect.forEach(ids, timesOf, { concurrency: callers })).flat().sort((a, b) => a - b)
    return times[Math.ceil(times.length * 0.95) - 1] ?? Number.NaN
  })

const options = { agents: [agent], concurrency: 64, drain: 0, onRun: () => Effect.void }

/**
 * Measures on fresh stores, without the caller whose runs never end and with it. Whatever else the machine does makes a
 * ratio larger or smaller, so the smallest of three counts.
 */
const measured = <E>(name: string, processes: () => Layer.Layer<Kernel.Kernel | RunStore.RunStore, E, Scope.Scope>) =>
  Effect.gen(function* () {
    const time = (withHog: boolean) => Effect.scoped(Effect.provide(p95(withHog), processes()))
    // The first runs of a process are slow.
    yield* time(false)
    let ratio = Infinity
    for (let tries = 0; tries < 3 && ratio > 2; tries++) {
      const alone = yield* time(false)
      const beside = yield* time(true)
      ratio = beside / alone
      console.log(`fairness on ${name}: p95 ${alone} ms without, ${beside} ms with: ratio ${ratio.toFixed(2)}`)
    }
    assert.isAtMost(ratio, 2)
  })

/** A worker on a store. */
const worker = <E>(store: Layer.Layer<RunStore.RunStore, E>) =>
  RunWorker.layer(options).pipe(Layer.provideMerge(KernelLive), Layer.provideMerge(store))

describe("one caller with 1,000 runs that never end makes 20 others wait at most twice as long", () => {
  it.live("in memory", () => measured("memory", () => worker(Layer.fresh(RunStore.layerMemory))))

  it.live("on SQLite", () =>
    measured("sqlite", () =>
      worker(Layer.unwrap(Effect.map(folder, (path) => SqlRunStore.layerSqlite(`${path}/runs.db`))))
    )
  )

  it.live.skipIf(!Postgres.available)("on PostgreSQL", () =>
    measured("postgres", () =>
      worker(Layer.unwrap(Effect.map(Postgres.database, ({ url }) => PgRunStore.layer({ url: Redacted.make(url) }))))
    )
  )

  it.live("in a cluster", () =>
    measured("cluster", () =>
      ClusterKernel.layer(options).pipe(
        Layer.provide(Layer.provideMerge(KernelLive, Layer.fresh(RunStore.layerMemory))),
        Layer.provide(Layer.fresh(TestRunner.layer))
      )
    )
  )
})
