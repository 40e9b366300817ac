/** Two runners and a client on PostgreSQL, which talk over sockets. */
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Option, Queue, Scope, Stream } from "effect"
import { Kernel, Policy, type RunEvent, RunStore } from "kernai"
import { RunEntity } from "kernai/cluster"
import * as Postgres from "../support/postgres.ts"
import { cluster, textOf, until } from "./sockets.ts"
import { clerk, pay, spoken } from "./support.ts"

describe.skipIf(!Postgres.available)("a cluster on PostgreSQL", () => {
  it.live("spreads the runs of a client over its runners, and returns their results", () =>
    Effect.gen(function* () {
      const { client, runner } = yield* cluster
      yield* runner()
      yield* runner()
      const here = yield* client
      const ids = Array.from({ length: 20 }, (_, number) => `r${number}`)
      yield* Effect.gen(function* () {
        const results = yield* Effect.forEach(ids, (runId) => Kernel.run(clerk, "go", { runId }), { concurrency: 20 })
        assert.deepStrictEqual(new Set(results.map(({ text }) => text)), new Set(["paid"]))
        const to = yield* RunEntity.RunEntity.client
        const owners = new Set(yield* Effect.forEach(ids, (id) => to(id).Ping(), { concurrency: 20 }))
        assert.strictEqual(owners.size, 2)
      }).pipe(Effect.provideContext(here))
    }).pipe(Effect.scoped)
  )

  it.live("runs at most two runs at a time on a runner with two places, and begins the next one at once", () =>
    Effect.gen(function* () {
      const { client, runner } = yield* cluster
      let [active, most] = [0, 0]
      const step = Effect.suspend(() => {
        most = Math.max(most, ++active)
        return Effect.delay(
          Effect.sync(() => `${active--}`),
          "10 millis"
        )
      })
      yield* runner({ skills: [pay(step)] }, { maxRuns: 2 })
      const ids = Array.from({ length: 100 }, (_, number) => `r${number}`)
      yield* Effect.forEach(ids, (runId) => Kernel.run(clerk, "go", { runId }), {
        concurrency: 50,
        discard: true
      }).pipe(Effect.provideContext(yield* client))
      assert.isAtMost(most, 2)
    }).pipe(Effect.scoped)
  )

  it.live("pays once when two processes answer the same question at once (R-6)", () =>
    Effect.gen(function* () {
      const { client, runner } = yield* cluster
      let paid = 0
      const skills = [pay(Effect.sync(() => `${++paid}`))]
      const asks = yield* Layer.build(Policy.layer(() => Effect.succeed(Policy.confirm("it costs"))))
      const there = yield* Effect.provideContext(runner({ skills }), asks)
      const here = yield* client
      const answer = (revision: number) =>
        Effect.flatMap(Kernel.questions("r"), (open) =>
          Kernel.answer(
            "r",
            open.map(({ callId }) => ({ callId, approved: true })),
            { revision }
          )
        )
      yield* Effect.exit(Effect.provideContext(Kernel.run(clerk, "go", { runId: "r" }), here))
      const store = Context.get(here, RunStore.RunStore)
      const { revision } = Option.getOrThrow(yield* store.head("r"))
      const both = yield* Effect.all(
        [here, there].map((one) => Effect.exit(Effect.provideContext(answer(revision), one))),
        { concurrency: 2 }
      )
      assert.strictEqual(both.filter(Exit.isSuccess).length, 1)
      yield* Effect.provideContext(Stream.runDrain(Kernel.follow("r", { until: "end" })), here)
      assert.strictEqual(paid, 1)
    }).pipe(Effect.scoped)
  )

  it.live("cancels a run on its runner", () =>
    Effect.gen(function* () {
      const { client, runner } = yield* cluster
      let [entered, stopped] = [0, 0]
      const wait = Effect.suspend(() => {
        entered++
        return Effect.onInterrupt(Effect.never, () => Effect.sync(() => stopped++))
      })
      yield* runner({ skills: [pay(wait)] })
      const here = yield* client
      const running = yield* Effect.forkChild(
        Effect.exit(Effect.provideContext(Kernel.run(clerk, "go", { runId: "r" }), here))
      )
      yield* until(Effect.sync(() => entered === 1))
      yield* Effect.provideContext(Kernel.cancel("r", { by: "Ada" }), here)
      const error = Option.getOrThrow(Exit.findErrorOption(yield* Fiber.join(running)))
      assert.deepInclude({ ...error }, { _tag: "RunCancelled", by: "Ada" })
      yield* until(Effect.sync(() => stopped === 1))
    }).pipe(Effect.scoped)
  )

  it.live("sends the text of a reply to a client as it arrives, and each stored event once", () =>
    Effect.gen(function* () {
      const { client, runner } = yield* cluster
      const pieces = yield* Queue.unbounded<string>()
      yield* runner({ provider: spoken(pieces) })
      const here = yield* client
      const events: Array<RunEvent.RunEvent> = []
      const streaming = yield* Effect.forkChild(
        Stream.runForEach(Kernel.stream(clerk, "go", { runId: "r" }), (event) =>
          Effect.sync(() => events.push(event))
        ).pipe(Effect.provideContext(here))
      )
      yield* Queue.offerAll(pieces, ["one ", "two "])
      yield* until(Effect.sync(() => textOf(events) === "one two "))
      yield* Queue.offerAll(pieces, ["three", "end"])
      yield* Fiber.join(streaming)
      assert.strictEqual(textOf(events), "one two three")
      const stored = yield* Stream.runCollect(Context.get(here, RunStore.RunStore).read("r"))
      assert.deepStrictEqual(
        events.flatMap((event) => ("revision" in event ? [event.revision] : [])),
        stored.flatMap((record) => record.events.map(({ revision }) => revision))
      )
    }).pipe(Effect.scoped)
  )

  it.live("continues a run on another runner when its own is stopped, and its stream with it", () =>
    Effect.gen(function* () {
      const { client, runner } = yield* cluster
      const pieces = yield* Queue.unbounded<string>()
      const silent = yield* Queue.unbounded<string>()
      const first = yield* Scope.make()
      yield* Scope.provide(runner({ provider: spoken(silent) }), first)
      const here = yield* client
      const events: Array<RunEvent.RunEvent> = []
      const streaming = yield* Effect.forkChild(
        Stream.runForEach(Kernel.stream(clerk, "go", { runId: "r" }), (event) =>
          Effect.sync(() => events.push(event))
        ).pipe(Effect.provideContext(here))
      )
      yield* Queue.offer(silent, "one ")
      yield* until(Effect.sync(() => textOf(events) === "one "))
      yield* runner({ provider: spoken(pieces) })
      yield* Scope.close(first, Exit.void)
      yield* Queue.offerAll(pieces, ["one ", "two", "end"])
      yield* Fiber.join(streaming)
      assert.strictEqual(events.at(-1)?.type, "run_completed")
      const revisions = events.flatMap((event) => ("revision" in event ? [event.revision] : []))
      assert.deepStrictEqual(revisions, [...new Set(revisions)])
    }).pipe(Effect.scoped)
  )
})
