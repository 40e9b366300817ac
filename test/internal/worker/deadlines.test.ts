import { assert, describe, it } from "@effect/vitest"
import { Context, Duration, Effect, Fiber, Layer, Option, Schedule, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, MediaStore, Policy, ProtocolRegistry, RunStore, RunWorker, Skill, SkillRegistry } from "kernai"
import * as Journal from "../../../src/testing/internal/sampleJournal.ts"
import { agent, clerk } from "../../support/clerk.ts"
import { putAll } from "../../support/runStore.ts"
import { stores } from "../../support/stores.ts"
import { times } from "../../support/longRun.ts"

/** One process: its own kernel on a shared store, whose calls wait so long for a person. */
const process = (
  store: RunStore.RunStoreShape,
  within: Duration.Input,
  pay: Effect.Effect<string> = Effect.die("no")
) =>
  Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(
        Skill.dynamic("pay", { description: "pays", inputSchema: { type: "object" }, execute: () => pay })
      ),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      clerk("done")
    ]),
    Layer.provide(Policy.layer(() => Effect.succeed(Policy.confirm("it costs", { within })))),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )

/** A run that asks in a process without a worker, which ends then. */
const ask = (store: RunStore.RunStoreShape, runId: string, within: Duration.Input) =>
  Effect.provide(Effect.exit(Kernel.run(agent, "pay eva", { runId })), process(store, within))

const submit = (store: RunStore.RunStoreShape, runId: string, of = agent) =>
  Effect.provide(Kernel.submit(of, "pay eva", { runId }), process(store, "5 minutes"))

/** Starts a worker in a process of its own. */
const work = (store: RunStore.RunStoreShape, options: Partial<RunWorker.Options> = {}, pay?: Effect.Effect<string>) =>
  Effect.forkChild(
    Effect.provide(
      RunWorker.run({ agents: [agent], onRun: () => Effect.void, ...options }),
      process({ ...store }, "5 minutes", pay)
    )
  )

const statusOf = (store: RunStore.RunStoreShape, runId: string) =>
  Effect.map(store.head(runId), (head) => Option.getOrThrow(head).status.type)

/** Who answered the questions of a run, and when. */
const answersOf = (store: RunStore.RunStoreShape, runId: string) =>
  Effect.map(Stream.runCollect(store.read(runId)), (records) =>
    records.flatMap(({ createdAt, delta }) =>
      (delta.answers ?? []).map(({ approved, by }) => ({ at: createdAt, approved, by }))
    )
  )

const declinedAt = (span: Duration.Input) => [{ at: Duration.toMillis(span), approved: false, by: "deadline" }]

/** A run that waits since the beginning, and its deadline. */
const waiting = (runId: string, answerBy: number) => {
  const question = { callId: "c", name: "pay", input: {}, reason: "it costs", answerBy }
  const run = Journal.begin(runId, { agent: agent.name, createdAt: 0 })
  const metadata = { callIds: ["c"], questions: [question] }
  return [run.last(), run.commit("pause", [{ type: "paused", reason: "approval_required", metadata }])]
}

describe("the deadline of a question, without a cluster", () => {
  it.effect("is kept by the worker whose run asked, to the millisecond", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* submit(store, "r")
      yield* work(store, { pollInterval: "1 day" })
      yield* TestClock.adjust("299999 millis")
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
      yield* TestClock.adjust("1 millis")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.deepStrictEqual(yield* answersOf(store, "r"), declinedAt("5 minutes"))
      assert.include(JSON.stringify(yield* store.load("r")), "Nobody answered in time.")
    })
  )

  it.effect("is kept for runs that already waited when the worker started, and those that are late by then", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* ask(store, "late", "1 minute")
      yield* ask(store, "early", "5 minutes")
      yield* TestClock.adjust("3 minutes")
      yield* work(store)
      yield* TestClock.adjust("5 seconds")
      assert.strictEqual(yield* statusOf(store, "late"), "completed")
      assert.deepStrictEqual(yield* answersOf(store, "late"), declinedAt("3 minutes"))
      yield* TestClock.adjust("3 minutes")
      assert.deepStrictEqual(yield* answersOf(store, "early"), declinedAt("5 minutes"))
    })
  )

  it.effect("is kept for questions that other processes ask while the worker is idle", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* work(store)
      yield* TestClock.adjust("1 minute")
      yield* ask(store, "r", "1 minute")
      yield* TestClock.adjust("59 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* answersOf(store, "r"), declinedAt("2 minutes"))
    })
  )

  it.effect("declines the question once, however many workers there are", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const ids = Array.from({ length: 20 }, (_, number) => `r${number}`)
      yield* Effect.forEach(ids, (runId) => ask(store, runId, "1 minute"), { discard: true })
      for (const workerId of ["a", "b", "c"]) yield* work(store, { workerId, concurrency: 5 })
      yield* TestClock.adjust("61 seconds")
      for (const runId of ids) {
        assert.deepStrictEqual(yield* answersOf(store, runId), declinedAt("1 minute"))
        assert.strictEqual(yield* statusOf(store, runId), "completed")
      }
    })
  )

  it.effect("does nothing to a run that a person answered in time", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* submit(store, "r")
      yield* work(store, {}, Effect.succeed("paid"))
      yield* TestClock.adjust("4 minutes")
      const approve = Effect.flatMap(Kernel.questions("r"), ([question]) =>
        Kernel.answer("r", [{ callId: question?.callId ?? "", approved: true, by: "Ada" }])
      )
      yield* Effect.provide(approve, process(store, "5 minutes"))
      yield* TestClock.adjust("2 minutes")
      assert.deepStrictEqual(yield* answersOf(store, "r"), [
        { at: Duration.toMillis("4 minutes"), approved: true, by: "Ada" }
      ])
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("is kept by a worker at full concurrency", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* submit(store, "asks")
      const resume = ({ runId }: RunStore.RunHead) => (runId === "busy" ? Effect.never : {})
      const worker = yield* work(store, { concurrency: 1, resume })
      yield* TestClock.adjust("1 second")
      yield* submit(store, "busy")
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(yield* answersOf(store, "asks"), declinedAt("5 minutes"))
      assert.strictEqual(yield* statusOf(store, "asks"), "queued")
      yield* Effect.forkChild(Fiber.interrupt(worker))
      yield* TestClock.adjust("10 seconds")
    })
  )

  it.effect("is left to workers that have the agent of the run", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* ask(store, "r", "5 minutes")
      const other = Agent.make({ name: "other", instructions: "", model: "scripted" })
      const worker = yield* work(store, { agents: [other] })
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
      yield* Fiber.interrupt(worker)
      yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store, "5 minutes"))
      assert.deepStrictEqual(yield* answersOf(store, "r"), declinedAt("10 minutes"))
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("is kept later when the store failed at the time", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* ask(store, "r", "5 minutes")
      let isDown = false
      const down = new RunStore.StoreError({ operation: "head", reason: "unavailable", detail: "cut off" })
      yield* work({ ...store, head: (runId) => (isDown ? Effect.fail(down) : store.head(runId)) })
      yield* TestClock.adjust("4 minutes")
      isDown = true
      yield* TestClock.adjust("2 minutes")
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
      isDown = false
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.lengthOf(yield* answersOf(store, "r"), 1)
    })
  )

  it.effect("costs less than one query a second while very many runs wait", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const many = Array.from({ length: times(10_000, 500) }, (_, number) => waiting(`r${number}`, 3_600_000 + number))
      yield* Effect.forEach(many, (commits) => putAll(store, commits), { discard: true })
      yield* ask(store, "own", "1 minute")
      let asked = 0
      const counted = <A>(query: A) => (asked++, query)
      yield* work({
        ...store,
        list: (filter) => counted(store.list(filter)),
        head: (runId) => counted(store.head(runId)),
        acquire: (runId, claim) => counted(store.acquire(runId, claim))
      })
      yield* TestClock.adjust("20 seconds")
      asked = 0
      yield* TestClock.adjust("20 seconds")
      assert.isBelow(asked, 20)
      yield* TestClock.adjust("20 seconds")
      assert.deepStrictEqual(yield* answersOf(store, "own"), declinedAt("1 minute"))
    })
  )

  for (const { isThere, name, place } of stores) {
    it.live.skipIf(!isThere)(`is kept on a store in ${name}, for a question of another process`, () =>
      Effect.gen(function* () {
        const layer = yield* place
        const open = Effect.map(Layer.build(Layer.fresh(layer)), Context.get(RunStore.RunStore))
        const [asking, working] = [yield* open, yield* open]
        yield* ask(asking, "before", "10 millis")
        yield* work(working, { pollInterval: "20 millis" })
        yield* ask(asking, "meanwhile", "10 millis")
        for (const runId of ["before", "meanwhile"]) {
          yield* Effect.repeat(statusOf(asking, runId), {
            until: (status) => status === "completed",
            schedule: Schedule.spaced("10 millis")
          })
          const answers = yield* answersOf(asking, runId)
          assert.deepStrictEqual(
            answers.map(({ approved, by }) => [approved, by]),
            [[false, "deadline"]]
          )
        }
      })
    )
  }
})
