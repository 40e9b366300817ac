/** Runners on PostgreSQL that have different agents: each run is executed where its agent is. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Latch, Layer, Option, Queue, Scope, Stream } from "effect"
import { Agent, Kernel, Policy, Processes, type RunEvent, RunStore } from "kernai"
import * as Postgres from "../support/postgres.ts"
import { cluster, textOf, until } from "./sockets.ts"
import { clerk, pay, spoken } from "./support.ts"

const writer = Agent.make({ name: "writer", instructions: "", model: "scripted", skills: "all", dialect: "tools" })

const ids = (prefix: string, count: number) => Array.from({ length: count }, (_, number) => `${prefix}${number}`)

/** Notes the runs that a runner executed. */
const noting = (runs: Set<string>) => ({
  onRun: ({ runId }: RunStore.RunHead) => Effect.sync(() => void runs.add(runId))
})

const statusIn = (here: Context.Context<RunStore.RunStore>, runId: string) =>
  Effect.map(Context.get(here, RunStore.RunStore).head(runId), (head) => Option.getOrUndefined(head)?.status)

describe.skipIf(!Postgres.available)("runners with different agents", () => {
  it.live("execute each run where its agent is, whatever runner it is assigned to", () =>
    Effect.gen(function* () {
      const { client, runner } = yield* cluster
      const [clerks, writers] = [new Set<string>(), new Set<string>()]
      yield* runner({}, noting(clerks))
      yield* runner({}, { agents: [writer], ...noting(writers) })
      yield* Effect.all(
        [
          Effect.forEach(ids("c", 16), (runId) => Kernel.run(clerk, "go", { runId }), { concurrency: 16 }),
          Effect.forEach(ids("w", 16), (runId) => Kernel.run(writer, "go", { runId }), { concurrency: 16 })
        ],
        { concurrency: 2 }
      ).pipe(Effect.provideContext(yield* client))
      assert.deepStrictEqual([clerks, writers], [new Set(ids("c", 16)), new Set(ids("w", 16))])
    }).pipe(Effect.scoped)
  )

  it.live("stream the text of lent runs, and take the answers of a person", () =>
    Effect.gen(function* () {
      const { client, runner } = yield* cluster
      const pieces = yield* Queue.unbounded<string>()
      const asks = yield* Layer.build(Policy.layer(() => Effect.succeed(Policy.confirm("it costs"))))
      yield* runner({ provider: spoken(pieces) })
      yield* Effect.provideContext(runner({}, { agents: [writer] }), asks)
      const here = yield* client
      // One of these is assigned to the other runner.
      for (const runId of ids("c", 6)) {
        const events: Array<RunEvent.RunEvent> = []
        const streaming = yield* Effect.forkChild(
          Stream.runForEach(Kernel.stream(clerk, "go", { runId }), (event) =>
            Effect.sync(() => events.push(event))
          ).pipe(Effect.provideContext(here))
        )
        yield* Queue.offerAll(pieces, ["one ", "two "])
        yield* until(Effect.sync(() => textOf(events) === "one two "))
        yield* Queue.offer(pieces, "three")
        yield* until(Effect.sync(() => textOf(events) === "one two three"))
        yield* Queue.offer(pieces, "end")
        yield* Fiber.join(streaming)
      }
      yield* Effect.gen(function* () {
        for (const runId of ids("w", 6)) {
          yield* Effect.exit(Kernel.run(writer, "go", { runId }))
          const [question] = yield* Kernel.questions(runId)
          const answers = [{ callId: question?.callId ?? "", approved: true }]
          assert.strictEqual((yield* Kernel.resume(writer, runId, { answers })).text, "paid")
        }
      }).pipe(Effect.provideContext(here))
    }).pipe(Effect.scoped)
  )

  it.live("leave a run of an agent that none has in the queue, with the reason, and begin it when one has it", () =>
    Effect.gen(function* () {
      const { client, runner } = yield* cluster
      yield* runner({}, { agents: [writer] })
      yield* runner({}, { agents: [writer] })
      const here = yield* client
      const running = yield* Effect.forkChild(Effect.provideContext(Kernel.run(clerk, "go", { runId: "r" }), here))
      yield* until(
        Effect.map(statusIn(here, "r"), (status) => status?.type === "queued" && status.reason !== undefined)
      )
      const status = yield* statusIn(here, "r")
      assert.deepInclude({ ...status }, { type: "queued", reason: "no runner has agent clerk" })
      yield* runner()
      assert.strictEqual((yield* Fiber.join(running)).text, "paid")
    }).pipe(Effect.scoped)
  )

  it.live("continue a lent run on another runner with its agent when its own one is stopped", () =>
    Effect.gen(function* () {
      const { client, runner } = yield* cluster
      const silent = yield* Queue.unbounded<string>()
      const first = yield* Scope.make()
      yield* Scope.provide(runner({ provider: spoken(silent) }), first)
      yield* runner({}, { agents: [writer] })
      const here = yield* client
      const running = yield* Effect.forEach(ids("r", 4), (runId) =>
        Effect.forkChild(Effect.provideContext(Kernel.run(clerk, "go", { runId }), here))
      )
      yield* Effect.forEach(ids("r", 4), (runId) =>
        until(
          Effect.map(statusIn(here, runId), (status) => status?.type === "running" && status.phase !== "run_started")
        )
      )
      yield* runner()
      yield* Scope.close(first, Exit.void)
      const results = yield* Effect.forEach(running, Fiber.join)
      assert.deepStrictEqual(
        results.map(({ text }) => text),
        ["paid", "paid", "paid", "paid"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("lend runs to the others while they are drained and own the shards", () =>
    Effect.gen(function* () {
      const { client, runner } = yield* cluster
      const ran = new Map<string, Set<string>>()
      const recording = (workerId: string) => ({
        workerId,
        onRun: ({ runId }: RunStore.RunHead) =>
          Effect.sync(() => void ran.set(runId, (ran.get(runId) ?? new Set()).add(workerId)))
      })
      const paid = Latch.makeUnsafe()
      const paying = { skills: [pay(Effect.as(paid.await, "ok"), "idempotent")] }
      yield* runner(paying, recording("a"))
      const here = yield* client
      const ids = Array.from({ length: 8 }, (_, number) => `r${number}`)
      const running = yield* Effect.forEach(ids, (runId) => Kernel.run(clerk, "go", { runId }), {
        concurrency: 8
      }).pipe(Effect.provideContext(here), Effect.forkChild)
      const drained = Effect.provideContext(Processes.list({ process: "a" }), here)
      yield* until(Effect.map(drained, ([process]) => process?.holds.length === 8))
      yield* runner(paying, recording("b"))
      yield* Effect.provideContext(Processes.drain({ process: "a" }), here)
      yield* until(Effect.map(drained, ([process]) => process?.state.startsWith("drain") === true))
      yield* paid.open
      yield* Fiber.join(running)
      for (const runId of ids) assert.isTrue(ran.get(runId)?.has("b"), `${runId} ended on the other runner`)
    }).pipe(Effect.scoped)
  )
})
