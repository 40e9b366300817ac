import { assert, describe, it } from "@effect/vitest"
import {
  Cause,
  Clock,
  Deferred,
  Effect,
  Exit,
  Fiber,
  Layer,
  Logger,
  Option,
  Queue,
  Ref,
  Schedule,
  Scope,
  Stream
} from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  Content,
  Hooks,
  KernelError,
  Kernel,
  MediaStore,
  Policy,
  ProtocolRegistry,
  Provider,
  RunStore,
  RunWorker,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider, Scenario } from "kernai/testing"
import { agent, clerk } from "./support/clerk.ts"
import { command, final } from "./support/blocks.ts"
import { oneByOne } from "./support/oneByOne.ts"
import { plan, slow, agent as planner } from "./support/workflow.ts"

const skills = (pay: Effect.Effect<string> = Effect.succeed("ok"), effects: Skill.Effects = "idempotent") =>
  SkillRegistry.layer(
    Skill.dynamic("pay", { description: "pays", effects, inputSchema: { type: "object" }, execute: () => pay })
  )

/** The services of one process: its own kernel on a shared store. */
const process = (store: RunStore.RunStoreShape, pay?: Effect.Effect<string>, effects?: Skill.Effects) =>
  Kernel.layer.pipe(
    Layer.provide([skills(pay, effects), ProtocolRegistry.layer(), MediaStore.layerMemory, clerk("paid")]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )

/** An agent that only other processes have. */
const foreign = Agent.make({ name: "nobody", instructions: "", model: "scripted" })

/** A plan of one task, which takes so many minutes, a turn each. */
const minutes = (turns: number): Scenario.Script => ({
  root: [plan(["a"]), final("done")],
  tasks: { a: [...Array.from({ length: turns }, () => slow(60_000, command("pay"))), final("A")] }
})

/** A store that tells of no offers, its process, and how runs of an agent come to wait in it. */
const crowded = Effect.map(RunStore.makeMemory, (memory) => {
  const store: RunStore.RunStoreShape = { ...memory, offers: undefined }
  const layer = process(store)
  const submit = (of: typeof agent | typeof foreign, runId: string) =>
    Effect.provide(Kernel.submit(of, "pay eva", { runId }), layer)
  return { store, layer, submit }
})

/** A store that notes how many runs each list had. Those of runs that wait for a person claim nothing. */
const noting = (store: RunStore.RunStoreShape, pages: Array<number>): RunStore.RunStoreShape => ({
  ...store,
  list: (filter) =>
    Effect.tap(store.list(filter), (heads) =>
      Effect.sync(() => (isOfWaiting(filter) ? undefined : pages.push(heads.length)))
    )
})

const isOfWaiting = (filter: RunStore.RunFilter | undefined) => filter?.status?.includes("waiting") === true

const unavailable = new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "cut off" })

const statusOf = (store: RunStore.RunStoreShape, runId: string) =>
  Effect.map(store.head(runId), (head) => Option.getOrThrow(head).status.type)

const opsOf = (store: RunStore.RunStoreShape, runId: string) =>
  Effect.map(Stream.runCollect(store.read(runId)), (records) => records.map((record) => record.op))

describe("RunWorker", () => {
  it.effect("claims a submitted run and finishes it", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      assert.deepStrictEqual(yield* opsOf(store, "r"), ["phase"])
      const count = yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store))
      assert.strictEqual(count, 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("starts the next run that waits as soon as a place is free, without waiting for its next look", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      const ids = Array.from({ length: 20 }, (_, number) => `r${number}`)
      yield* Effect.forEach(ids, (runId) => submit(agent, runId), { discard: true })
      const ended = yield* Queue.unbounded<string>()
      const worker = RunWorker.run({
        agents: [agent],
        concurrency: 3,
        pollInterval: "1 hour",
        onRun: ({ runId }) => Effect.asVoid(Queue.offer(ended, runId))
      })
      yield* Effect.forkChild(Effect.provide(worker, layer))
      const first = yield* Effect.forEach(ids, () => Queue.take(ended))
      assert.sameMembers(first, ids)
      assert.strictEqual(yield* Clock.currentTimeMillis, 0)
      assert.strictEqual((yield* store.list({ status: ["completed"] })).length, 20)
    })
  )

  it.effect("claims a run at once that its own process submits or answers, without waiting for its next look", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      const layer = Layer.provide(process(store), asks)
      const exits = yield* Queue.unbounded<boolean>()
      yield* Effect.gen(function* () {
        const worker = RunWorker.run({
          agents: [agent],
          pollInterval: "1 hour",
          onRun: (_, exit) => Effect.asVoid(Queue.offer(exits, Exit.isSuccess(exit)))
        })
        yield* Effect.forkChild(worker)
        yield* Effect.repeat(Effect.yieldNow, { times: 100 })
        yield* Kernel.submit(agent, "pay eva", { runId: "r" })
        assert.isFalse(yield* Queue.take(exits))
        assert.strictEqual(yield* statusOf(store, "r"), "waiting")
        yield* Kernel.answer("r", [{ callId: (yield* Kernel.questions("r"))[0]?.callId ?? "", approved: true }])
        assert.isTrue(yield* Queue.take(exits))
        assert.strictEqual(yield* Clock.currentTimeMillis, 0)
      }).pipe(Effect.provide(Layer.merge(layer, Layer.succeed(RunStore.RunStore, store))))
    })
  )

  it.effect("looks for no other run behind one that was offered, unless it passed one over", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const pages: Array<number> = []
      const ended = yield* Queue.unbounded<string>()
      const onRun = ({ runId }: RunStore.RunHead) => Effect.asVoid(Queue.offer(ended, runId))
      const worker = RunWorker.run({ agents: [agent], pollInterval: "1 hour", onRun })
      yield* Effect.forkChild(Effect.provide(worker, process(noting(store, pages))))
      yield* TestClock.adjust("1 second")
      const looks = pages.length
      for (const runId of ["a", "b", "c"]) {
        yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId }), process(store))
        assert.strictEqual(yield* Queue.take(ended), runId)
        yield* TestClock.adjust("1 second")
      }
      assert.lengthOf(pages, looks)
    })
  )

  it.effect("claims a run at once that another process offers, without waiting for its next look", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const offers = yield* Queue.unbounded<string>()
      const ended = yield* Queue.unbounded<string>()
      // A store of its own on the same runs, as another process has it.
      const theirs: RunStore.RunStoreShape = { ...store, offers: Stream.fromQueue(offers) }
      const worker = RunWorker.run({
        agents: [agent],
        concurrency: 3,
        pollInterval: "1 hour",
        onRun: ({ runId }) => Effect.asVoid(Queue.offer(ended, runId))
      })
      yield* Effect.forkChild(Effect.provide(worker, process(theirs)))
      yield* TestClock.adjust("1 second")
      const ids = Array.from({ length: 20 }, (_, number) => `r${number}`)
      yield* Effect.forEach(ids, (runId) => Effect.provide(Kernel.submit(agent, "pay eva", { runId }), process(store)))
      yield* Queue.offer(offers, "unknown")
      yield* Effect.forEach(ids, (runId) => Queue.offer(offers, runId))
      assert.sameMembers(yield* Effect.forEach(ids, () => Queue.take(ended)), ids)
      assert.strictEqual(yield* Clock.currentTimeMillis, 1_000)
    })
  )

  it.effect("looks every second for runs of other processes, and every five where the store emits their offers", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      for (const [offers, looks] of [
        [undefined, 20],
        [Stream.never, 4]
      ] as const) {
        const pages: Array<number> = []
        const quiet = noting({ ...store, offers }, pages)
        const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), process(quiet)))
        yield* TestClock.adjust("19500 millis")
        // Runs under way, and runs that failed.
        assert.lengthOf(pages, 2 * looks)
        yield* Fiber.interrupt(worker)
      }
    })
  )

  it.effect("tries a failed run again when its time has come, not at the next look after it", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const provider = MockProvider.make("paid", "paid").failOnStep(0, "overloaded")
      const worker = RunWorker.run({
        agents: [agent],
        resume: () => ({ provider }),
        retry: Schedule.spaced("40 seconds"),
        pollInterval: "1 hour"
      })
      yield* Effect.forkChild(Effect.provide(worker, layer))
      yield* TestClock.adjust("39 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "failed")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("runs a submitted run that is stored, although the store never confirmed the offer (R-1, R-6)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const lost = Effect.fail(new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "lost" }))
      let failures = 0
      const hiccups: RunStore.RunStoreShape = {
        ...store,
        acquire: (...claim) => (failures++ === 0 ? lost : store.acquire(...claim))
      }
      const submit = (of: RunStore.RunStoreShape, runId: string) =>
        Effect.gen(function* () {
          const submitting = yield* Effect.forkChild(
            Effect.provide(Kernel.submit(agent, "pay eva", { runId }), process(of))
          )
          yield* TestClock.adjust("1 second")
          assert.strictEqual(yield* Fiber.join(submitting), runId)
        })
      yield* submit(hiccups, "late")
      yield* submit({ ...store, acquire: (...claim) => Effect.andThen(store.acquire(...claim), lost) }, "offered")
      yield* submit({ ...store, acquire: () => lost }, "orphan")
      const work = Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store))
      assert.strictEqual(yield* work, 2)
      assert.strictEqual(yield* statusOf(store, "late"), "completed")
      assert.strictEqual(yield* statusOf(store, "offered"), "completed")
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* work, 1)
    })
  )

  it.effect("finds a run whose submitter was interrupted while the store accepted it (R-1, R-23)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const slow: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) => Effect.andThen(store.append(records, state), Effect.sleep("1 second"))
      }
      const submitting = yield* Effect.forkChild(
        Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(slow)),
        { startImmediately: true }
      )
      const interrupted = yield* Effect.forkChild(Fiber.interrupt(submitting), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(interrupted)
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store)), 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("polls again after a store call that never returned: a list, a read or a claim (F2)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "a")
      let lists = 0
      let reads = 0
      let claims = 0
      const mute: RunStore.RunStoreShape = {
        ...store,
        list: (filter) => (lists++ === 0 ? Effect.never : store.list(filter)),
        read: (...of) => (reads++ === 0 ? Stream.never : store.read(...of)),
        acquire: (...claim) => (claims++ === 0 ? Effect.never : store.acquire(...claim))
      }
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), process(mute)))
      yield* TestClock.adjust("4 minutes")
      yield* submit(agent, "b")
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([yield* statusOf(store, "a"), yield* statusOf(store, "b")], ["completed", "completed"])
      const stopped = yield* Effect.forkChild(Fiber.interrupt(worker))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(stopped)
    })
  )

  it.effect("retries a failed run while others are submitted faster than it works", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      const order: Array<string> = []
      yield* submit(agent, "failed")
      const provider = MockProvider.make("paid", "paid").failOnStep(0, "overloaded")
      const first = RunWorker.runOnce({ agents: [agent], retries: () => false, resume: () => ({ provider }) })
      yield* Effect.provide(first, process(store))
      assert.strictEqual(yield* statusOf(store, "failed"), "failed")
      for (const runId of ["a", "b", "c", "d", "e", "f"]) yield* submit(agent, runId)
      const work = RunWorker.run({
        agents: [agent],
        onRun: ({ runId }) => Effect.sync(() => void order.push(runId))
      })
      const worker = yield* Effect.forkChild(
        Effect.provide(work, process(store, Effect.as(Effect.sleep("500 millis"), "ok")))
      )
      yield* TestClock.adjust("30 seconds")
      assert.lengthOf(order, 7)
      // It waits for a second, in which two others run to their end and a third begins.
      assert.isBelow(order.indexOf("failed"), 4)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("claims other runs when the store never confirms a release, or never returns a head (F2)", () =>
    Effect.gen(function* () {
      /** Does not answer the question of this number about a run that has ended. */
      const silentAt = (store: RunStore.RunStoreShape, number: number): RunStore.RunStoreShape => {
        let asked = 0
        return {
          ...store,
          head: (runId) =>
            Effect.flatMap(store.head(runId), (head) => {
              const isOver = Option.isSome(head) && head.value.status.type === "completed"
              return isOver && ++asked === number ? Effect.never : Effect.succeed(head)
            }),
          release: (...of) => (number === 0 && asked++ === 1 ? Effect.never : store.release(...of))
        }
      }
      for (const number of [0, 1, 2]) {
        const { store, submit } = yield* crowded
        const work = RunWorker.run({ agents: [agent], onRun: () => Effect.void })
        yield* submit(agent, "a")
        const worker = yield* Effect.forkChild(Effect.provide(work, process(silentAt(store, number))))
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(yield* statusOf(store, "a"), "completed")
        yield* submit(agent, "b")
        yield* TestClock.adjust("2 minutes")
        assert.strictEqual(yield* statusOf(store, "b"), "completed", `${number}`)
        const stopped = yield* Effect.forkChild(Fiber.interrupt(worker))
        yield* TestClock.adjust("1 minute")
        yield* Fiber.join(stopped)
      }
    })
  )

  it.effect("refuses a lease that is too short, endless or no time, and no places, before it looks for runs", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const wrong: ReadonlyArray<Pick<RunWorker.Options, "lease" | "concurrency">> = [
        ...([0, -1, -30_000, 999, NaN, Infinity, "Infinity", "0 seconds", "-1 minute", "999 millis"] as const).map(
          (lease) => ({ lease })
        ),
        { concurrency: 0 },
        { concurrency: NaN }
      ]
      for (const options of wrong) {
        const given = { agents: [agent], ...options }
        const inLayer = Effect.asVoid(Effect.scoped(Layer.build(RunWorker.layer(given))))
        for (const work of [RunWorker.run(given), Effect.asVoid(RunWorker.runOnce(given)), inLayer]) {
          const error = yield* Effect.flip(Effect.provide(work, layer))
          assert.deepStrictEqual(
            [error._tag, "path" in error && error.path],
            ["ConfigInvalid", Object.keys(options)[0]]
          )
        }
      }
      assert.deepStrictEqual(yield* opsOf(store, "r"), ["phase"])
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent], lease: "1 second" }), layer), 1)
    })
  )

  it.effect.each([
    { what: "an hour ahead", jump: 3_600_000 },
    { what: "a day behind", jump: -86_400_000 }
  ])(
    "keeps its run when its clock jumps $what, and a worker with such a clock does not take it (R-5, F7)",
    ({ jump }) =>
      Effect.gen(function* () {
        const { store, submit } = yield* crowded
        yield* submit(agent, "r")
        const clock = yield* Clock.clockWith(Effect.succeed)
        let skew = 0
        const millis = () => clock.currentTimeMillisUnsafe() + skew
        const jumping = { ...clock, currentTimeMillisUnsafe: millis, currentTimeMillis: Effect.sync(millis) }
        const ends: Array<string> = []
        const onRun = (_: RunStore.RunHead, exit: Exit.Exit<unknown, unknown>) =>
          Effect.sync(() => void ends.push(exit._tag))
        const layer = process(store, Effect.as(Effect.sleep("2 minutes"), "ok"))
        const work = (workerId: string) =>
          RunWorker.run({ agents: [agent], workerId, onRun }).pipe(
            Effect.provide(layer),
            Effect.provideService(Clock.Clock, jumping),
            Effect.forkChild
          )
        const first = yield* work("first")
        yield* TestClock.adjust("25 seconds")
        skew = jump
        const second = yield* work("second")
        yield* TestClock.adjust("3 minutes")
        assert.deepStrictEqual(ends, ["Success"])
        const records = yield* Stream.runCollect(store.read("r", 1))
        assert.isTrue(records.every(({ workerId }) => workerId.startsWith("first#")))
        yield* Fiber.interruptAll([first, second])
      })
  )

  it.effect("claims a run at once that was submitted or answered by a machine whose clock is ahead", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* TestClock.setTime(3_600_000)
      yield* submit(agent, "r")
      yield* TestClock.setTime(0)
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), layer), 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect.each([
    { what: "ended", given: false },
    { what: "ended, and another had given it back", given: true }
  ])("releases a run whose lease had $what by the time it was claimed (R-5)", ({ given }) =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const another = { workerId: "another", lease: 0 }
      const slow: RunStore.RunStoreShape = {
        ...store,
        acquire: Effect.fnUntraced(function* (runId, claim) {
          yield* store.acquire(runId, claim)
          if (claim.lease === 0) return
          yield* Effect.sleep("2 seconds")
          if (given) yield* store.acquire(runId, another)
        })
      }
      const late = yield* Effect.forkChild(
        Effect.provide(RunWorker.run({ agents: [agent], lease: "1 second" }), process(slow))
      )
      yield* TestClock.adjust("5 seconds")
      const stopped = yield* Effect.forkChild(Fiber.interrupt(late))
      yield* TestClock.adjust("1 minute")
      yield* Fiber.join(stopped)
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), layer), 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

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

  it.effect("skips a run for a while when `resume` fails, unless the run has advanced", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const asked: Array<number> = []
      const resume = ({ revision, runId }: RunStore.RunHead) =>
        Effect.suspend(() => {
          asked.push(revision)
          return Effect.fail(new KernelError.ToolNotFound({ name: runId }))
        })
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent], resume }), layer))
      yield* TestClock.adjust("29 seconds")
      assert.deepStrictEqual(asked, [1])
      yield* TestClock.adjust("2 seconds")
      assert.deepStrictEqual(asked, [1, 1])
      const gate = Hooks.layer({ onTurnPrepared: () => Effect.succeed(Hooks.pause("not yet")) })
      yield* Effect.flip(Effect.provide(Kernel.resume(agent, "r"), [layer, gate]))
      yield* Effect.provide(Kernel.answer("r", []), layer)
      const { revision } = Option.getOrThrow(yield* store.head("r"))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(asked, [1, 1, revision])
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("applies the host's list of skills and its task callback, neither of which is stored (BP-65, BP-103)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const paid: Array<string> = []
      const pay = Effect.sync(() => {
        paid.push("eva")
        return "ok"
      })
      const provider = Scenario.scripted({
        root: [plan(["a"]), final("done")],
        tasks: { a: [command("pay"), final("A")] }
      })
      yield* Effect.provide(Kernel.submit(planner(), "go", { runId: "r", provider }), process(store, pay))
      const told: Array<string> = []
      const resume = () => ({
        provider,
        allowedSkills: ["look"],
        onTaskComplete: ({ result, taskId }: Kernel.TaskReport) => Effect.sync(() => told.push(`${taskId}: ${result}`))
      })
      yield* Effect.provide(RunWorker.runOnce({ agents: [planner()], resume }), process(store, pay))
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.deepStrictEqual(paid, [])
      assert.deepStrictEqual(told, ["a: A"])
    })
  )

  it.effect("skips runs it cannot run, runs with a lease, and runs in progress without one", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const layer = process(store)
      yield* Effect.provide(Kernel.submit(foreign, "hi", { runId: "foreign" }), layer)
      yield* Effect.provide(Kernel.submit(agent, "hi", { runId: "held" }), layer)
      yield* store.acquire("held", { workerId: "else", lease: "1 minute" })
      const stuck = process(store, Effect.never)
      const live = yield* Effect.forkChild(Effect.provide(Kernel.run(agent, "hi", { runId: "live" }), stuck), {
        startImmediately: true
      })
      const work = RunWorker.runOnce({ agents: [agent], concurrency: 9 })
      assert.strictEqual(yield* Effect.provide(work, layer), 0)
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Effect.provide(work, layer), 1)
      assert.strictEqual(yield* statusOf(store, "held"), "completed")
      yield* Fiber.interrupt(live)
    })
  )

  it.effect("fills a place as soon as it is free, without waiting for a look", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      for (const runId of ["a", "b", "c", "d"]) yield* submit(agent, runId)
      const work = RunWorker.run({ agents: [agent], concurrency: 1, pollInterval: "1 hour" })
      const worker = yield* Effect.forkChild(
        Effect.provide(work, process(store, Effect.as(Effect.sleep("10 millis"), "ok")))
      )
      for (let n = 0; n < 10; n++) yield* TestClock.adjust("10 millis")
      for (const runId of ["a", "b", "c", "d"]) assert.strictEqual(yield* statusOf(store, runId), "completed", runId)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("lists runs page by page, and finds a free one among hundreds it cannot claim", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      for (let n = 0; n < 250; n++) yield* submit(foreign, `foreign-${n}`)
      for (let n = 0; n < 250; n++) {
        yield* submit(agent, `held-${n}`)
        yield* store.acquire(`held-${n}`, { workerId: "else", lease: "1 hour" })
      }
      yield* TestClock.adjust("1 milli")
      yield* submit(agent, "free")
      const pages: Array<number> = []
      const counted = noting(store, pages)
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), process(counted)), {
        startImmediately: true
      })
      assert.isAtMost(pages.length, 2)
      yield* TestClock.adjust("3 seconds")
      assert.strictEqual(yield* statusOf(store, "free"), "completed")
      assert.isAtMost(Math.max(...pages), 100)
      // Two pages a poll, and two for the place that became free.
      assert.isAtMost(pages.length, 10)
      // The next poll starts over and finds runs that became free.
      yield* store.release("held-7", "else")
      yield* store.acquire("held-7", { workerId: "", lease: 0 })
      yield* TestClock.adjust("12 seconds")
      assert.strictEqual(yield* statusOf(store, "held-7"), "completed")
      yield* Fiber.interrupt(worker)
      // Whoever works until nothing is left looks at all of them.
      yield* submit(agent, "last")
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(counted)), 1)
      assert.isAtMost(Math.max(...pages), 100)
    })
  )

  it.effect("finds a run submitted behind hundreds of waiting ones by its second poll", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      for (let n = 0; n < 650; n++) yield* submit(foreign, `foreign-${n}`)
      yield* TestClock.adjust("1 milli")
      const pages: Array<number> = []
      const counted = noting(store, pages)
      const order: Array<string> = []
      const onRun = ({ runId }: RunStore.RunHead) => Effect.sync(() => order.push(runId))
      const worker = yield* Effect.forkChild(
        Effect.provide(RunWorker.run({ agents: [agent], onRun }), process(counted)),
        {
          startImmediately: true
        }
      )
      for (let n = 0; n < 20; n++) {
        const before = pages.length
        yield* submit(agent, `new-${n}`)
        yield* TestClock.adjust("2 seconds")
        assert.strictEqual(yield* statusOf(store, `new-${n}`), "completed", `${n}`)
        assert.isAtMost(pages.length - before, 6)
        if (n % 2 === 0) yield* TestClock.adjust("1 second")
      }
      assert.isAtMost(Math.max(...pages), 100)
      // Of several it takes the oldest.
      order.length = 0
      const pairs = ["a", "b", "c", "d"].map((pair) => [`${pair}-1`, `${pair}-2`])
      for (const pair of pairs) {
        for (const runId of pair) {
          yield* submit(agent, runId)
          yield* TestClock.adjust("1 milli")
        }
        yield* TestClock.adjust("3 seconds")
      }
      yield* TestClock.adjust("3 seconds")
      assert.deepStrictEqual(order, pairs.flat())
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("finds an old run that becomes free among hundreds, however many new ones arrive", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      // Each at an instant of its own: five pages, the old run on the third.
      for (let n = 0; n < 500; n++) {
        yield* submit(n === 250 ? agent : foreign, n === 250 ? "old" : `foreign-${n}`)
        yield* TestClock.adjust("1 milli")
      }
      yield* store.acquire("old", { workerId: "else", lease: "5 seconds" })
      const order: Array<string> = []
      const onRun = ({ runId }: RunStore.RunHead) => Effect.sync(() => order.push(runId))
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent], onRun }), layer))
      for (let n = 0; n < 20; n++) {
        for (let m = 0; m < 10; m++) yield* submit(foreign, `foreign-${n}-${m}`)
        yield* submit(agent, `new-${n}`)
        yield* TestClock.adjust("1 second")
      }
      // It is free after the third page was read; six pages later it is the third page again.
      assert.strictEqual(yield* statusOf(store, "old"), "completed")
      assert.isAtLeast(order.length, 10)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("claims the oldest run first, and polls for no more while it is at full concurrency", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const order: Array<string> = []
      let lists = 0
      const counted: RunStore.RunStoreShape = {
        ...store,
        list: (filter) => Effect.suspend(() => (isOfWaiting(filter) || lists++, store.list(filter)))
      }
      for (const runId of ["c", "a", "b"]) {
        yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId }), process(store))
        yield* TestClock.adjust("1 second")
      }
      const slow = process(counted, Effect.as(Effect.sleep("1 minute"), "ok"))
      const onRun = ({ runId }: RunStore.RunHead) => Effect.sync(() => order.push(runId))
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent], onRun }), slow))
      yield* TestClock.adjust("50 seconds")
      assert.isAtMost(lists, 2)
      yield* TestClock.adjust("4 minutes")
      assert.deepStrictEqual(order, ["c", "a", "b"])
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("claims the run of a dead worker once its lease has expired, not before", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      // The first worker claims the run and then disappears.
      yield* store.acquire("r", { workerId: "dead", lease: "30 seconds" })
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), process(store)))
      yield* TestClock.adjust("29 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "running")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("claims the runs behind one that cannot be read", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "broken")
      yield* TestClock.adjust("1 milli")
      yield* submit(agent, "whole")
      const corrupt = new RunStore.StoreError({ operation: "read", reason: "corrupt", detail: "no record" })
      const weak: RunStore.RunStoreShape = {
        ...store,
        read: (runId, from) => (runId === "broken" ? Stream.fail(corrupt) : store.read(runId, from))
      }
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(weak)), 1)
      assert.strictEqual(yield* statusOf(store, "whole"), "completed")
    })
  )

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
      assert.strictEqual(lines[0], "run r stopped,RunPaused: run 'r' is paused: approval_required")
      assert.match(lines[1] ?? "", /odd[^]*\n +at /)
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("retries a failed run when its provider was unreachable, or when configured to (R-13)", () =>
    Effect.gen(function* () {
      for (const [reason, told, ends] of [
        ["overloaded", {}, "completed"],
        ["authentication", {}, "failed"],
        ["authentication", { retries: () => true }, "completed"],
        ["overloaded", { retries: () => false }, "failed"],
        ["overloaded", { retries: RunWorker.isPassing }, "completed"],
        ["authentication", { retries: RunWorker.isPassing }, "failed"]
      ] as const) {
        const { layer, store, submit } = yield* crowded
        yield* submit(agent, "r")
        const provider = MockProvider.make("paid", "paid").failOnStep(0, reason)
        const retry = Schedule.spaced("40 seconds")
        const work = RunWorker.run({ agents: [agent], resume: () => ({ provider }), retry, ...told })
        const worker = yield* Effect.forkChild(Effect.provide(work, layer))
        yield* TestClock.adjust("30 seconds")
        assert.strictEqual(yield* statusOf(store, "r"), "failed")
        yield* TestClock.adjust("1 minute")
        assert.strictEqual(yield* statusOf(store, "r"), ends)
        yield* Fiber.interrupt(worker)
      }
    })
  )

  it.effect("does not retry a run that failed outside a worker, even with a transient error", () =>
    Effect.gen(function* () {
      const { layer, store } = yield* crowded
      const provider = MockProvider.make("paid").failOnStep(0, "overloaded")
      yield* Effect.flip(Effect.provide(Kernel.run(agent, "pay eva", { runId: "r", provider }), layer))
      const work = RunWorker.run({ agents: [agent], resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, layer))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* statusOf(store, "r"), "failed")
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("claims a run that pauses repeatedly as often as it is answered (DR-9)", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      let pauses = 0
      const gate = Hooks.layer({
        onTurnPrepared: () => Effect.sync(() => (++pauses > 10 ? undefined : Hooks.pause("not yet")))
      })
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), [layer, gate]))
      for (let seen = 1; seen <= 10; seen++) {
        yield* TestClock.adjust("1 minute")
        assert.deepStrictEqual([pauses, yield* statusOf(store, "r")], [seen, "waiting"])
        yield* Effect.provide(Kernel.answer("r", []), layer)
      }
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("resumes a run with the known results of its calls, and later when they are unknown (DR-17)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let paid = 0
      const pay = Effect.andThen(
        Effect.sync(() => paid++),
        Effect.never
      )
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      const first = RunWorker.run({ agents: [agent], drain: 0 })
      const worker = yield* Effect.forkChild(Effect.provide(first, process(store, pay, "write")))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(worker)
      const away = new RunStore.StoreError({ operation: "ledger", reason: "unavailable", detail: "away" })
      let asked = 0
      const resume = ({ runId }: RunStore.RunHead) =>
        Effect.gen(function* () {
          if (asked++ === 0) return yield* away
          const calls = yield* RunStore.inFlight(runId)
          const known: Kernel.Recovery = { resolve: { output: [Content.text("paid before")] } }
          return { recover: Object.fromEntries(calls.map(({ callId }) => [callId, known])) }
        })
      const second = RunWorker.run({ agents: [agent], resume })
      yield* Effect.forkChild(Effect.provide(second, process(store, pay, "write")))
      yield* TestClock.adjust("500 millis")
      assert.deepStrictEqual([asked, yield* statusOf(store, "r")], [1, "queued"])
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([asked, paid, yield* statusOf(store, "r")], [2, 1, "completed"])
    })
  )

  it.live("that runs once claims a run only once if it cannot be read or `resume` fails", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      yield* submit(agent, "s")
      const gone = new RunStore.StoreError({ operation: "load", reason: "invalid", detail: "no run" })
      const odd: RunStore.RunStoreShape = { ...store, load: (id) => (id === "r" ? Effect.fail(gone) : store.load(id)) }
      const resume = ({ runId }: RunStore.RunHead) => (runId === "r" ? Effect.fail(gone) : Effect.succeed({}))
      const counts = [
        yield* Effect.provide(RunWorker.runOnce({ agents: [agent], resume }), layer),
        yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(odd))
      ]
      assert.deepStrictEqual(counts, [2, 1])
      assert.deepStrictEqual([yield* statusOf(store, "r"), yield* statusOf(store, "s")], ["queued", "completed"])
    })
  )

  it.effect("does nothing with a run that another worker has claimed meanwhile, or when listing fails", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      const late: RunStore.RunStoreShape = {
        ...store,
        acquire: (runId, claim) =>
          Effect.andThen(
            Effect.ignore(store.acquire(runId, { workerId: "else", lease: "1 minute" })),
            store.acquire(runId, claim)
          )
      }
      const away = new RunStore.StoreError({ operation: "list", reason: "unavailable", detail: "away" })
      for (const weak of [late, { ...store, list: () => Effect.fail(away) }]) {
        assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(weak)), 0)
      }
      assert.deepStrictEqual(yield* opsOf(store, "r"), ["phase"])
    })
  )

  it.effect("logs why it could not claim a run, and nothing when another worker was first", () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ cause, message }) => void lines.push(`${message} ${Cause.pretty(cause)}`))
    return Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      const busy = new RunStore.RunBusy({ runId: "r", workerId: "else", expiresAt: 60_000 })
      const locked = new RunStore.StoreError({
        operation: "acquire",
        reason: "unavailable",
        detail: "read-only, for Bearer SECRET-0123"
      })
      const claims = [Effect.fail(busy), Effect.fail(locked)]
      for (const claim of claims) {
        const weak = process({ ...store, acquire: () => claim })
        assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), weak), 0)
      }
      assert.lengthOf(lines, 1)
      assert.match(lines[0] ?? "", /could not claim run r.*read-only, for <redacted>/)
    }).pipe(Effect.provide(Logger.layer([logger])))
  })

  it.effect("runs as many runs concurrently as configured", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      for (const runId of ["a", "b", "c"]) yield* submit(agent, runId)
      const slow = process(store, Effect.as(Effect.sleep("1 minute"), "ok"))
      const work = RunWorker.run({ agents: [agent], concurrency: 2 })
      const worker = yield* Effect.forkChild(Effect.provide(work, slow))
      yield* TestClock.adjust("10 seconds")
      assert.lengthOf(yield* store.list({ unleased: true }), 1)
      yield* TestClock.adjust("2 minutes")
      assert.lengthOf(yield* store.list({ status: ["completed"] }), 3)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("polls with the configured interval, worker id and grace period", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      // Somebody ran it without a lease, and is there no more.
      yield* submit(agent, "left")
      yield* store.release("left", Option.getOrThrow(yield* store.head("left")).lease?.workerId ?? "")
      const slow = process(store, Effect.as(Effect.sleep("1 second"), "ok"))
      const work = RunWorker.run({
        agents: [agent],
        workerId: "me",
        pollInterval: "10 seconds",
        orphanAfter: "1 minute"
      })
      const worker = yield* Effect.forkChild(Effect.provide(work, slow), { startImmediately: true })
      // Another process submits it, of which this one learns when it looks.
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process({ ...store }))
      const holder = Effect.map(store.head("r"), (head) => Option.getOrThrow(head).lease?.workerId)
      yield* TestClock.adjust("9 seconds")
      assert.notStrictEqual(yield* holder, "me")
      yield* TestClock.adjust("1500 millis")
      assert.strictEqual(yield* holder, "me")
      yield* TestClock.adjust("49 seconds")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.strictEqual(yield* statusOf(store, "left"), "running")
      yield* TestClock.adjust("2 seconds")
      assert.strictEqual(yield* statusOf(store, "left"), "completed")
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("works as long as its layer is open", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      const scope = yield* Scope.make()
      yield* Layer.buildWithScope(Layer.provide(RunWorker.layer({ agents: [agent] }), layer), scope)
      yield* submit(agent, "r")
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      yield* Scope.close(scope, Exit.void)
      yield* submit(agent, "s")
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(yield* statusOf(store, "s"), "queued")
    })
  )

  it.effect("renews its lease while a run lasts, despite failures of the store in between", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let renewals = 0
      const flaky: RunStore.RunStoreShape = {
        ...store,
        acquire: (...claim) => (++renewals % 4 === 0 ? Effect.fail(unavailable) : store.acquire(...claim))
      }
      const slow = process(flaky, Effect.as(Effect.sleep("4 minutes"), "ok"))
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), slow)
      const one = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), slow))
      const two = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), process(store)))
      yield* TestClock.adjust("5 minutes")
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.strictEqual((yield* opsOf(store, "r")).filter((op) => op === "resume").length, 1)
      yield* Fiber.interruptAll([one, two])
    })
  )

  it.effect("stops with AgentCrashError when another worker has its run, and does nothing more (R-5, CP-16)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const entered = yield* Ref.make(0)
      const go = yield* Deferred.make<void>()
      const pay = Effect.andThen(
        Ref.update(entered, (count) => count + 1),
        Effect.as(Deferred.await(go), "ok")
      )
      // The store is cut off from this worker: it can neither renew nor commit.
      let cut = false
      const cutOff: RunStore.RunStoreShape = {
        ...store,
        acquire: (runId, claim) => (cut ? Effect.fail(unavailable) : store.acquire(runId, claim))
      }
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      const ends: Array<string> = []
      const onRun: RunWorker.Options["onRun"] = (_, exit) =>
        Effect.sync(() => void ends.push(Exit.isFailure(exit) ? String(exit.cause.reasons[0]) : "done"))
      const first = yield* Effect.forkChild(
        Effect.provide(
          RunWorker.runOnce({ agents: [agent], onRun: onRun ?? (() => Effect.void) }),
          process(cutOff, pay)
        )
      )
      yield* TestClock.adjust("1 second")
      assert.strictEqual(yield* Ref.get(entered), 1)
      cut = true
      yield* TestClock.adjust("31 seconds")
      yield* Fiber.join(first)
      assert.isTrue(ends[0]?.includes("AgentCrashError"), ends[0])
      const done = yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store))
      assert.strictEqual(done, 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  for (const [how, renewal] of [
    ["never said whether it is renewed", Effect.never],
    ["took its time to fail each time", Effect.delay(Effect.fail(unavailable), "3 seconds")]
  ] as const) {
    it.effect(`stops when its lease has expired and the store ${how} (R-5, CP-16)`, () =>
      Effect.gen(function* () {
        const { store, submit } = yield* crowded
        yield* submit(agent, "r")
        let isFirst = true
        const silent: RunStore.RunStoreShape = {
          ...store,
          acquire: (runId, claim) => {
            if (!isFirst) return renewal
            isFirst = false
            return store.acquire(runId, claim)
          }
        }
        const ends: Array<string> = []
        const worker = RunWorker.run({
          agents: [agent],
          onRun: (_, exit) => Effect.sync(() => void ends.push(String(exit)))
        })
        yield* Effect.forkDetach(Effect.provide(worker, process(silent, Effect.never)))
        yield* TestClock.adjust("29 seconds")
        assert.deepStrictEqual(ends, [])
        yield* TestClock.adjust("2 seconds")
        assert.include(ends[0] ?? "", "AgentCrashError")
      })
    )
  }

  it.effect("stops as soon as the store reports that another worker has its run (R-5, CP-16)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      let isTaken = false
      const taken: RunStore.RunStoreShape = {
        ...store,
        acquire: (runId, claim) =>
          isTaken
            ? Effect.fail(new RunStore.RunBusy({ runId, workerId: "other", expiresAt: 60_000 }))
            : store.acquire(runId, claim)
      }
      let isAtWork = true
      const pay = Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isAtWork = false)))
      yield* Effect.forkDetach(Effect.provide(RunWorker.run({ agents: [agent] }), process(taken, pay)))
      yield* TestClock.adjust("9 seconds")
      isTaken = true
      assert.isTrue(isAtWork)
      yield* TestClock.adjust("2 seconds")
      assert.isFalse(isAtWork)
    })
  )

  it.effect("claims a run again after its own lease expired only when it has stopped running it (R-5)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      const away: RunStore.RunStoreShape = {
        ...store,
        acquire: (runId, claim) =>
          Effect.flatMap(Clock.currentTimeMillis, (now) =>
            now > 0 && now <= 30_000 ? Effect.fail(unavailable) : store.acquire(runId, claim)
          )
      }
      const seen: Array<string> = []
      const pay = Effect.suspend(() => {
        seen.push("pays")
        return Effect.uninterruptible(Effect.as(Effect.sleep("1 minute"), "ok"))
      })
      const onRun = () => Effect.sync(() => void seen.push("stopped"))
      const worker = RunWorker.run({ agents: [agent], concurrency: 2, onRun })
      yield* Effect.forkDetach(Effect.provide(worker, process(away, pay)))
      yield* TestClock.adjust("33 seconds")
      assert.deepStrictEqual(seen, ["pays"])
      yield* TestClock.adjust("10 seconds")
      assert.deepStrictEqual(seen, ["pays", "stopped", "pays"])
    })
  )

  it.effect("releases a run it claimed although the store never confirmed the claim (R-6)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      const lost = new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "no answer" })
      let asked = 0
      const flaky: RunStore.RunStoreShape = {
        ...store,
        acquire: (...lease) => Effect.andThen(store.acquire(...lease), asked++ === 0 ? Effect.fail(lost) : Effect.void)
      }
      const work = Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(flaky))
      assert.deepStrictEqual([yield* work, yield* work], [0, 1])
    })
  )

  it.effect("stops when its lease has expired, also when the store was slow to renew it (R-5, CP-16)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      let asked = 0
      const slower: RunStore.RunStoreShape = {
        ...store,
        acquire: (...lease) => {
          asked++
          if (asked > 2) return Effect.never
          return Effect.delay(store.acquire(...lease), asked === 2 ? "19 seconds" : 0)
        }
      }
      let isAtWork = true
      const pay = Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isAtWork = false)))
      yield* Effect.forkDetach(Effect.provide(RunWorker.run({ agents: [agent] }), process(slower, pay)))
      // Renewed at 10 seconds, confirmed at 29: the lease expires at 40.
      yield* TestClock.adjust("39 seconds")
      assert.deepStrictEqual([asked, isAtWork], [3, true])
      yield* TestClock.adjust("1 second")
      assert.isFalse(isAtWork)
    })
  )

  it.effect("continues its run when a later renewal succeeds, and otherwise until its lease expires", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      const away = new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "away" })
      let asked = 0
      const flaky: RunStore.RunStoreShape = {
        ...store,
        acquire: (...lease) => {
          asked++
          if (asked === 2) return Effect.fail(away)
          return asked < 4 ? store.acquire(...lease) : Effect.delay(Effect.fail(away), "15 seconds")
        }
      }
      let isAtWork = true
      const pay = Effect.onInterrupt(Effect.never, () => Effect.sync(() => (isAtWork = false)))
      yield* Effect.forkDetach(Effect.provide(RunWorker.run({ agents: [agent] }), process(flaky, pay)))
      // Not renewed at 10 seconds, but at 20: the lease ends at 50. What it asks at 30 fails at 45.
      yield* TestClock.adjust("49 seconds")
      assert.deepStrictEqual([asked, isAtWork], [4, true])
      yield* TestClock.adjust("1 second")
      assert.isFalse(isAtWork)
    })
  )

  it.effect("keeps a run when the host's `resume` fails (R-1)", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const resume = () => RunStore.inFlight("another").pipe(Effect.as({}))
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent], resume }), layer), 1)
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), layer), 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("waits for an uninterruptible renewal until its lease expires, and no longer (R-17)", () =>
    Effect.gen(function* () {
      const { store, submit } = yield* crowded
      yield* submit(agent, "r")
      let asked = 0
      const stuck: RunStore.RunStoreShape = {
        ...store,
        acquire: (...lease) => (asked++ === 1 ? Effect.uninterruptible(Effect.never) : store.acquire(...lease))
      }
      const pay = Effect.as(Effect.sleep("15 seconds"), "ok")
      const work = Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(stuck, pay))
      const worker = yield* Effect.forkChild(work)
      yield* TestClock.adjust("29 seconds")
      assert.isUndefined(worker.pollUnsafe())
      yield* TestClock.adjust("1 second")
      assert.isDefined(worker.pollUnsafe())
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
    })
  )

  it.effect("releases its lease after the last renewal, which is uninterruptible (R-5, DR-22)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let asked = 0
      const slower: RunStore.RunStoreShape = {
        ...store,
        acquire: (...lease) =>
          Effect.uninterruptible(Effect.delay(store.acquire(...lease), asked++ === 1 ? "400 millis" : 0))
      }
      const provider = Scenario.scripted({ root: [slow(500, command("pay")), final("done")], tasks: {} })
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      yield* Effect.provide(Kernel.submit(planner(), "go", { runId: "r", provider }), process(store))
      const work = RunWorker.runOnce({ agents: [planner()], lease: "1200 millis", resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, process(slower).pipe(Layer.provide(asks))))
      yield* TestClock.adjust("1 second")
      assert.isDefined(worker.pollUnsafe())
      assert.deepStrictEqual([asked, yield* statusOf(store, "r")], [2, "waiting"])
      const open = yield* Kernel.questions("r").pipe(Effect.provideService(RunStore.RunStore, store))
      const answers = open.map(({ callId }) => ({ callId, approved: true }))
      yield* Kernel.answer("r", answers).pipe(Effect.provideService(RunStore.RunStore, store))
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
    })
  )

  it.effect.each([
    ["works on", RunWorker.run],
    ["ends with its work", RunWorker.runOnce]
  ] as const)(
    "when stopped, one that %s starts nothing new, completes its step, and releases its lease (R-17)",
    ([, work]) =>
      Effect.gen(function* () {
        const store = yield* RunStore.makeMemory
        const slow = process(store, Effect.as(Effect.sleep("2 seconds"), "ok"), "write")
        yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), slow)
        yield* Effect.provide(Kernel.submit(agent, "pay ida", { runId: "s" }), slow)
        const worker = yield* Effect.forkChild(Effect.provide(work({ agents: [agent] }), slow))
        yield* TestClock.adjust("1 second")
        const stopping = yield* Effect.forkChild(Fiber.interrupt(worker), { startImmediately: true })
        yield* TestClock.adjust("2 seconds")
        yield* Fiber.join(stopping)
        const state = Option.getOrThrow(yield* store.load("r"))
        // The call that was under way has its result; nothing was started after it.
        assert.deepStrictEqual(state.status, { type: "running", phase: "tool_call_completed" })
        assert.deepStrictEqual(yield* opsOf(store, "s"), ["phase"])
        const free = yield* store.list({ status: ["queued"], unleased: true })
        assert.deepStrictEqual(free.map((head) => head.runId).sort(), ["r", "s"])
        const taken = yield* Effect.provide(RunWorker.runOnce({ agents: [agent], concurrency: 2 }), process(store))
        assert.strictEqual(taken, 2)
        assert.strictEqual(yield* statusOf(store, "r"), "completed")
      })
  )

  it.effect("when stopped during a step that takes too long, interrupts the step in time (R-17)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const endless = process(store, Effect.never, "write")
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), endless)
      const worker = yield* Effect.forkChild(Effect.provide(RunWorker.run({ agents: [agent] }), endless))
      yield* TestClock.adjust("1 second")
      const stopping = yield* Effect.forkChild(Fiber.interrupt(worker), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      assert.isDefined(stopping.pollUnsafe())
      const state = Option.getOrThrow(yield* store.load("r"))
      assert.deepStrictEqual(
        state.currentTurn?.inFlight.map((call) => call.callId),
        ["call-a"]
      )
    })
  )

  it.effect("when stopped, waits neither for a store that hangs nor for an `onRun` that never returns (R-17)", () =>
    Effect.gen(function* () {
      const stops = Effect.fnUntraced(function* (store: RunStore.RunStoreShape, onRun: RunWorker.Options["onRun"]) {
        const worker = RunWorker.run({ agents: [agent], ...(onRun === undefined ? {} : { onRun }) })
        const working = yield* Effect.forkChild(Effect.provide(worker, process(store)))
        yield* TestClock.adjust("1 second")
        const stopping = yield* Effect.forkChild(Fiber.interrupt(working), { startImmediately: true })
        yield* TestClock.adjust("10 seconds")
        assert.isDefined(stopping.pollUnsafe())
      })
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      let asked = 0
      const hanging = Effect.uninterruptible(
        Effect.andThen(
          Effect.sync(() => asked++),
          Effect.never
        )
      )
      yield* stops({ ...store, acquire: () => hanging }, undefined)
      assert.isAbove(asked, 0)
      yield* stops({ ...store, release: () => hanging }, undefined)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      yield* Effect.provide(Kernel.submit(agent, "pay ida", { runId: "s" }), layer)
      yield* stops(store, () => hanging)
      assert.strictEqual(yield* statusOf(store, "s"), "completed")
      assert.isAbove(asked, 2)
    })
  )

  it.effect.each([
    [7, 6, {}],
    [3, 2, { retry: Schedule.upTo(Schedule.spaced("1 minute"), { times: 1 }) }]
  ] as const)(
    "takes up a run that crashes again and again by its schedule, and gives up at its end: %i",
    ([all, early, told]) =>
      Effect.gen(function* () {
        const store = yield* RunStore.makeMemory
        yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
        // The third commit of every life fails: the store is there, the run does not come on.
        let commits = 0
        const weak = oneByOne(store, (record, state) =>
          record.op === "resume"
            ? store.append([record], state)
            : Effect.fail(new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: `${commits++}` }))
        )
        const worker = yield* Effect.forkChild(
          Effect.provide(RunWorker.run({ agents: [agent], ...told }), process(weak))
        )
        const lives = Effect.map(opsOf(store, "r"), (ops) => ops.filter((op) => op === "resume").length)
        // At once after the first crash.
        yield* TestClock.adjust("500 millis")
        yield* TestClock.adjust("500 millis")
        assert.strictEqual(yield* lives, 2)
        yield* TestClock.adjust("30 seconds")
        assert.strictEqual(yield* lives, early)
        yield* TestClock.adjust("10 minutes")
        assert.strictEqual(yield* lives, all)
        yield* Fiber.interrupt(worker)
      })
  )

  it.effect(
    "fails a run that ends the process of its worker each time, and asks the store nothing more about it",
    () => {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => void lines.push(String(message)))
      return Effect.gen(function* () {
        const store = yield* RunStore.makeMemory
        const runId = "r\u001b[2K\nINFO all is well"
        yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId }), process(store))
        // Nothing that a process does after it took the run up comes to be stored: the run is what ends it.
        const asked: Array<string> = []
        const ask = <A>(what: string, effect: A) => (asked.push(what), effect)
        const deadly: RunStore.RunStoreShape = {
          ...store,
          load: (id) => ask("load", store.load(id)),
          head: (id) => ask("head", store.head(id)),
          read: (...of) => ask("read", store.read(...of)),
          acquire: (...of) => ask("acquire", store.acquire(...of)),
          append: (records, state) =>
            records.every(({ events, op }) => op === "resume" || events.some(({ type }) => type === "run_failed"))
              ? store.append(records, state)
              : Effect.fail(new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: "gone" }))
        }
        const told: Array<string> = []
        const onRun = ({ status }: RunStore.RunHead) => Effect.sync(() => void told.push(status.type))
        const follower = yield* Effect.forkChild(
          Stream.runCollect(Stream.takeUntil(store.tail(runId), ({ events }) => events[0]?.type === "run_failed"))
        )
        const first = yield* Effect.forkChild(
          Effect.provide(RunWorker.run({ agents: [agent], onRun }), process(deadly))
        )
        yield* TestClock.adjust("10 minutes")
        const { status } = Option.getOrThrow(yield* store.head(runId))
        assert.deepInclude(status, { type: "failed" })
        if (status.type !== "failed") return
        assert.strictEqual(status.error.tag, "AgentCrashError")
        assert.deepStrictEqual(status.error.fields, { runId, attempts: 7 })
        assert.lengthOf(yield* Fiber.join(follower), 9)
        assert.deepStrictEqual(told.slice(-2), ["queued", "failed"])
        assert.deepStrictEqual(
          lines.filter((line) => line.includes("failed:")),
          [
            "run r\\u{1b}[2K INFO all is well failed: its worker crashed or lost it 7 times without progress, so no worker tries it again"
          ]
        )
        asked.length = 0
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(asked, [])
        yield* Fiber.interrupt(first)
        // Where every failed run is retried, it was tried often enough, until a person says otherwise.
        const stubborn = RunWorker.run({ agents: [agent], retries: () => true })
        const worker = yield* Effect.forkChild(Effect.provide(stubborn, process(deadly)))
        yield* TestClock.adjust("1 hour")
        assert.deepStrictEqual(asked, ["read"])
        yield* Fiber.interrupt(worker)
        yield* Effect.provideService(Kernel.answer(runId, []), RunStore.RunStore, store)
        assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store)), 1)
        assert.strictEqual(yield* statusOf(store, runId), "completed")
      }).pipe(Effect.provide(Logger.layer([logger])))
    }
  )

  it.effect("does not claim a run that another worker finished since it was listed (R-5)", () =>
    Effect.gen(function* () {
      const { layer, store, submit } = yield* crowded
      yield* submit(agent, "r")
      const listed = yield* store.list()
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), layer), 1)
      const ended: Array<string> = []
      const stale = process({
        ...store,
        list: () => Effect.succeed(listed),
        read: (id) => Stream.take(store.read(id), 1)
      })
      const work = RunWorker.runOnce({
        agents: [agent],
        onRun: ({ runId }) => Effect.sync(() => void ended.push(runId))
      })
      assert.strictEqual(yield* Effect.provide(work, stale), 0)
      assert.deepStrictEqual(ended, [])
    })
  )

  it.effect(
    "retries a workflow as long as one of its tasks makes progress, over any number of workers (R-1, R-17)",
    () =>
      Effect.gen(function* () {
        const store = yield* RunStore.makeMemory
        const layer = process(store)
        const provider = Scenario.scripted(minutes(12))
        yield* Effect.provide(Kernel.submit(planner({ maxSteps: 20 }), "go", { runId: "r", provider }), layer)
        // Each worker lives long enough for one turn of the task.
        for (let n = 0; n < 14; n++) {
          const work = RunWorker.run({ agents: [planner({ maxSteps: 20 })], resume: () => ({ provider }) })
          const worker = yield* Effect.forkChild(Effect.provide(work, layer))
          yield* TestClock.adjust("100 seconds")
          const stopping = yield* Effect.forkChild(Fiber.interrupt(worker))
          yield* TestClock.adjust("10 seconds")
          yield* Fiber.join(stopping)
        }
        assert.strictEqual(yield* statusOf(store, "r"), "completed")
      })
  )

  it.effect("retries a run as long as it makes progress, however often its provider is down in between (R-1)", () =>
    Effect.gen(function* () {
      const { layer, store } = yield* crowded
      const talker = Agent.make({ name: "talker", instructions: "", model: "scripted", skills: "all", maxSteps: 20 })
      const away = new Provider.ProviderError({ provider: "scripted", reason: "disconnected", detail: "away" })
      // Prose is corrected, so the run advances by one turn each time.
      const provider = MockProvider.make().onCall((_, call) =>
        call % 2 === 1 ? Effect.fail(away) : call < 20 ? "still thinking" : final("done")
      )
      yield* Effect.provide(Kernel.submit(talker, "go", { runId: "r" }), layer)
      const work = RunWorker.run({ agents: [talker], resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, layer))
      for (let n = 0; n < 30; n++) yield* TestClock.adjust("10 seconds")
      yield* Fiber.interrupt(worker)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      assert.strictEqual((yield* opsOf(store, "r")).filter((op) => op === "resume").length, 11)
    })
  )

  it.effect("gives up on a workflow whose task makes no progress, at the end of its schedule", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const provider = Scenario.scripted(minutes(3))
      yield* Effect.provide(Kernel.submit(planner(), "go", { runId: "r", provider }), process(store))
      // The store takes nothing of the second turn of the task.
      const weak = oneByOne(store, (record, state) =>
        record.runId === "r:t1/a" && state.turns.length === 1 && record.op !== "resume"
          ? Effect.fail(new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: "no" }))
          : store.append([record], state)
      )
      const work = RunWorker.run({ agents: [planner()], resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, process(weak)))
      const lives = Effect.map(opsOf(store, "r"), (ops) => ops.filter((op) => op === "resume").length)
      yield* TestClock.adjust("20 minutes")
      // One in which the task came on, and seven in which nothing did.
      assert.strictEqual(yield* lives, 8)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* lives, 8)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("gives up on it although another of its tasks waits for a person each time", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const tasks = { ...minutes(3).tasks, b: [command("pay"), final("B")] }
      const provider = Scenario.scripted({ root: [plan(["a", "b"]), final("done")], tasks })
      yield* Effect.provide(Kernel.submit(planner(), "go", { runId: "r", provider }), process(store))
      const weak = oneByOne(store, (record, state) =>
        record.runId === "r:t1/a" && state.turns.length === 1 && record.events[0]?.type === "model_completed"
          ? Effect.fail(new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: "no" }))
          : store.append([record], state)
      )
      const asking = Policy.layer(({ runId }) =>
        Effect.succeed(runId === "r:t1/b" ? Policy.confirm("it costs") : Policy.allowed)
      )
      const work = RunWorker.run({ agents: [planner()], resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, [process(weak), asking]))
      const lives = Effect.map(opsOf(store, "r"), (ops) => ops.filter((op) => op === "resume").length)
      yield* TestClock.adjust("20 minutes")
      const spent = yield* lives
      assert.isAtMost(spent, 8)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(yield* lives, spent)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("does not count an answer to a task as an attempt (DR-22)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const tasks = { a: [command("pay"), final("A")] }
      const provider = Scenario.scripted({ root: [plan(["a"]), final("done")], tasks })
      const asking = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      let lives = 0
      const onRun = () => Effect.sync(() => void lives++)
      const work = RunWorker.run({ agents: [planner()], resume: () => ({ provider }), onRun })
      // From the answer on the store takes nothing but that a run was taken up.
      let isWeak = false
      const weak = oneByOne(store, (record, state) =>
        isWeak && record.op !== "resume"
          ? Effect.fail(new RunStore.StoreError({ operation: "append", reason: "corrupt", detail: "no" }))
          : store.append([record], state)
      )
      yield* Effect.provide(Kernel.submit(planner(), "go", { runId: "r", provider }), process(store))
      const worker = yield* Effect.forkChild(Effect.provide(work, [process(weak), asking]))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual([yield* statusOf(store, "r"), lives], ["waiting", 1])
      isWeak = true
      const open = yield* Kernel.questions("r").pipe(Effect.provideService(RunStore.RunStore, store))
      const answers = open.map(({ callId }) => ({ callId, approved: true }))
      yield* Kernel.answer("r", answers).pipe(Effect.provideService(RunStore.RunStore, store))
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(lives, 1 + 7)
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("skips a workflow that runs without a lease as long as one of its tasks makes progress", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const provider = Scenario.scripted(minutes(15))
      const live = yield* Effect.forkChild(
        Effect.provide(Kernel.run(planner({ maxSteps: 20 }), "go", { runId: "r", provider }), process(store))
      )
      const work = RunWorker.run({ agents: [planner({ maxSteps: 20 })], resume: () => ({ provider }) })
      const worker = yield* Effect.forkChild(Effect.provide(work, process(store)))
      yield* TestClock.adjust("30 minutes")
      assert.strictEqual((yield* Fiber.join(live)).text, "done")
      assert.isFalse((yield* opsOf(store, "r")).includes("resume"))
      yield* Fiber.interrupt(worker)
    })
  )

  it.effect("calls no model after the deadline of a run, which starts when the run is claimed (DR-21, R-19)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      let asked = 0
      const scripted = Scenario.scripted({ root: [slow(20_000, final("late"))], tasks: {} })
      const provider: Provider.ProviderShape = {
        ...scripted,
        stream: (request) => Stream.suspend(() => (asked++, scripted.stream(request)))
      }
      const hasty = planner({ budget: { deadline: 10_000 } })
      yield* Effect.provide(Kernel.submit(hasty, "go", { runId: "r" }), process(store))
      yield* TestClock.adjust("1 hour")
      const ends: Array<string> = []
      const onRun = (_: RunStore.RunHead, exit: Exit.Exit<unknown, unknown>) =>
        Effect.sync(() => void ends.push(Exit.isFailure(exit) ? String(exit.cause.reasons[0]) : "done"))
      const work = RunWorker.run({ agents: [hasty], resume: () => ({ provider }), onRun })
      const worker = yield* Effect.forkChild(Effect.provide(work, process(store)))
      yield* TestClock.adjust("9 seconds")
      assert.deepStrictEqual([asked, ends.length], [1, 0])
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(asked, 1)
      assert.isTrue(ends.every((end) => end.includes("DeadlineExceeded")))
      // The life that it cut off, and one that found it over.
      assert.strictEqual(ends.length, 2)
      // The head stays at the last commit, so a worker with more time can continue.
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
      yield* Fiber.interrupt(worker)
      const patient = { ...hasty, budget: {} }
      const done = yield* Effect.forkChild(Effect.provide(Kernel.resume(patient, "r", { provider }), process(store)))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(done)).text, "late")
    })
  )

  it.effect("claims a run past its deadline once, and again when its agent allows more time (DR-21, CP-15)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const provider = Scenario.scripted({ root: [slow(20_000, final("late"))], tasks: {} })
      const within = (deadline: number) => planner({ budget: { deadline } })
      const ends: Array<string> = []
      const onRun = (_: RunStore.RunHead, exit: Exit.Exit<unknown, unknown>) =>
        Effect.sync(() => void ends.push(Exit.isFailure(exit) ? String(exit.cause.reasons[0]) : "done"))
      const working = (agent: RunWorker.Runnable) =>
        Effect.forkChild(
          Effect.provide(RunWorker.run({ agents: [agent], resume: () => ({ provider }), onRun }), process(store))
        )
      yield* Effect.provide(Kernel.submit(within(10_000), "go", { runId: "r" }), process(store))
      // The end of this one is never reported: it dies before the deadline.
      const cut = yield* Effect.forkChild(
        Effect.provide(Kernel.resume(within(10_000), "r", { provider, workerId: "dead" }), process(store))
      )
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.interrupt(cut)
      yield* store.acquire("r", { workerId: "dead", lease: "25 seconds" })
      const first = yield* working(within(10_000))
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(ends.length, 1)
      assert.include(ends[0], "DeadlineExceeded")
      yield* Fiber.interrupt(first)
      const second = yield* working(within(3_600_000))
      yield* TestClock.adjust("1 minute")
      assert.deepStrictEqual(ends.slice(1), ["done"])
      yield* Fiber.interrupt(second)
    })
  )

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

  it.effect("skips a run it paused and that is resumed elsewhere without a lease", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      const work = RunWorker.runOnce({ agents: [agent] })
      yield* Effect.provide(work, process(store).pipe(Layer.provide(asks)))
      const approvals = [{ callId: "call-a", approved: true }]
      const stuck = process(store, Effect.never).pipe(Layer.provide(asks))
      const live = yield* Effect.forkChild(Effect.provide(Kernel.resume(agent, "r", { answers: approvals }), stuck), {
        startImmediately: true
      })
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* statusOf(store, "r"), "running")
      assert.strictEqual(yield* Effect.provide(work, process(store)), 0)
      yield* Fiber.interrupt(live)
    })
  )

  it.effect("skips a submitted or answered run that is resumed elsewhere without a lease (R-5)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      const layer = process(store)
      const work = RunWorker.runOnce({ agents: [agent] })
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "answered" }), layer)
      yield* Effect.provide(work, layer.pipe(Layer.provide(asks)))
      const answers = [{ callId: "call-a", approved: true }]
      yield* Effect.provide(Kernel.answer("answered", answers), layer)
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "submitted" }), layer)
      const live = yield* Effect.forEach(["answered", "submitted"], (runId) =>
        Effect.forkChild(Effect.provide(Kernel.resume(agent, runId), process(store, Effect.never)))
      )
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* Effect.provide(work, layer), 0)
      yield* Fiber.interruptAll(live)
      // Nothing happens to them any more: after a while they are anybody's.
      yield* TestClock.adjust("10 minutes")
      assert.strictEqual(yield* Effect.provide(work, layer), 2)
    })
  )

  it.effect("retries a transient store failure when it is resumed, as at every commit (R-6)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      let failures = 0
      const hiccup = Effect.fail(
        new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "a moment" })
      )
      const flaky: RunStore.RunStoreShape = {
        ...store,
        acquire: (...asked) => (failures++ === 0 ? hiccup : store.acquire(...asked))
      }
      const resumed = yield* Effect.forkChild(Effect.provide(Kernel.resume(agent, "r"), process(flaky)))
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(resumed)).status, "completed")
      assert.strictEqual(failures, 2)
    })
  )

  it.effect("skips a run that was resumed elsewhere while it looked at others", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const go = yield* Deferred.make<void>()
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      const resuming = Effect.provide(Kernel.resume(agent, "r"), process(store, Effect.never))
      const live = yield* Effect.forkChild(Effect.andThen(Deferred.await(go), resuming))
      const goesOn = Effect.andThen(Deferred.succeed(go, undefined), Stream.runHead(store.tail("r", 2)))
      const slow: RunStore.RunStoreShape = { ...store, list: (filter) => Effect.tap(store.list(filter), () => goesOn) }
      assert.strictEqual(yield* Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(slow)), 0)
      yield* Fiber.interrupt(live)
    })
  )

  it.effect("finishes what a person approved elsewhere (DR-22)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const asks = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      yield* Effect.provide(Kernel.submit(agent, "pay eva", { runId: "r" }), process(store))
      const work = Effect.provide(RunWorker.runOnce({ agents: [agent] }), process(store).pipe(Layer.provide(asks)))
      yield* work
      assert.strictEqual(yield* statusOf(store, "r"), "waiting")
      assert.strictEqual(yield* work, 0)
      const said = Kernel.answer("r", [{ callId: "call-a", approved: true, by: "eva" }])
      yield* Effect.provide(said, Layer.succeed(RunStore.RunStore, store))
      assert.strictEqual(yield* statusOf(store, "r"), "queued")
      assert.strictEqual(yield* work, 1)
      assert.strictEqual(yield* statusOf(store, "r"), "completed")
      const late = yield* Effect.flip(Effect.provide(said, Layer.succeed(RunStore.RunStore, store)))
      assert.strictEqual(late._tag, "ApprovalNotFound")
    })
  )

  it.effect("takes a run at once when its host names it, and none after it has ended", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const scope = yield* Scope.make()
      const work = Effect.gen(function* () {
        const { take } = yield* Scope.provide(RunWorker.start({ agents: [agent], pollInterval: "1 hour" }), scope)
        // The poll at the start finds nothing, and the next one is far.
        yield* Effect.yieldNow
        const submit = (runId: string) => Kernel.submit(agent, "pay eva", { runId })
        yield* Effect.flatMap(submit("r"), take)
        yield* Stream.runDrain(Kernel.follow("r"))
        assert.strictEqual(yield* statusOf(store, "r"), "completed")
        yield* take("none")
        yield* Scope.close(scope, Exit.void)
        yield* Effect.flatMap(submit("late"), take)
        assert.strictEqual(yield* statusOf(store, "late"), "queued")
      })
      yield* Effect.provide(work, process(store))
    })
  )
})
