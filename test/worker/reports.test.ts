import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer, Logger, Option } from "effect"
import { TestClock } from "effect/testing"
import { Hooks, Kernel, Policy, RunStore, RunWorker } from "kernai"
import { agent } from "../support/clerk.ts"
import { crowded, process } from "../support/worker.ts"

describe("a worker", () => {
  it.effect("logs why a poll failed or a run stopped, without keys (S-7)", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ cause, message }) => void lines.push(`${message} ${Cause.pretty(cause)}`))
    return Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      const refused = new RunStore.StoreError({
        operation: "list",
        reason: "unavailable",
        detail: "Bearer SECRET-0123"
      })
      let looks = 0
      const flaky: RunStore.RunStoreShape = {
        ...store,
        list: (filter) => Effect.suspend(() => (looks++ === 0 ? Effect.fail(refused) : store.list(filter)))
      }
      const failing = Hooks.layer({ onRunStarted: () => Effect.fail("401 for Bearer SECRET-0123") })
      const worker = RunWorker.layer({ agents: [agent] }).pipe(Layer.provide([process(flaky), failing]))
      const fiber = yield* Effect.forkChild(Layer.launch(worker))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.interrupt(fiber)
      const { layer, submit } = yield* crowded
      yield* submit(agent, "s")
      yield* Effect.provide(RunWorker.runOnce({ agents: [agent], resume: () => Effect.fail(refused) }), layer)
      const log = lines.join("\n")
      assert.match(log, /could not poll for runs.*: <redacted>/)
      assert.match(log, /run r stopped.*401 for <redacted>/)
      assert.match(log, /run s stopped,StoreError: .*<redacted>/)
      assert.notInclude(log, "SECRET")
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("logs in a sentence that a run waits for a person, and logs the origin of a defect", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ message }) => void lines.push(String(message)))
    const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
    const broken = Hooks.layer({ onRunStarted: () => Effect.die(new Error("odd")) })
    return Effect.gen(function* () {
      for (const around of [asks, broken]) {
        const store = yield* RunStore.makeMemory
        const layer = process(store).pipe(Layer.provide(around))
        yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), layer)
        yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), layer)
      }
      assert.strictEqual(lines[0], "run 'r' is paused: approval_required")
      assert.match(lines[1] ?? "", /odd[^]*\n +at /)
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("reports the end of a run with its current head, without a lease", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      const heads: Array<RunStore.RunHead> = []
      const onRun = (head: RunStore.RunHead) => Effect.sync(() => void heads.push(head))
      const work = RunWorker.runOnce({ agents: [agent], onRun })
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "asks" }), process(store))
      yield* Effect.provide(work, process(store).pipe(Layer.provide(asks)))
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "pays" }), process(store))
      yield* Effect.provide(work, process(store))
      assert.deepStrictEqual(
        heads.map(({ lease, runId, status }) => [runId, status.type, lease]),
        [
          ["asks", "waiting", undefined],
          ["pays", "completed", undefined]
        ]
      )
      for (const head of heads) assert.deepStrictEqual(yield* store.head(head.runId), Option.some(head))
    })
  )

  it.effect("reports the end of a run although the store cannot return its head, and keeps no lease", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      const away = Effect.fail(new RunStore.StoreError({ operation: "read", reason: "corrupt", detail: "away" }))
      const isOver = (head: RunStore.RunHead) => head.status.type === "completed"
      const weak: RunStore.RunStoreShape = {
        ...store,
        head: (runId) =>
          Effect.flatMap(store.head(runId), (head) => (Option.exists(head, isOver) ? away : Effect.succeed(head))),
        release: () => away
      }
      const told: Array<unknown> = []
      const onRun = ({ revision, runId }: RunStore.RunHead, exit: Exit.Exit<unknown, unknown>) =>
        Effect.sync(() => told.push([runId, revision, exit._tag]))
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent], onRun }), process(weak)), 1)
      assert.deepStrictEqual(told, [["r", 1, "Success"]])
    })
  )
})
