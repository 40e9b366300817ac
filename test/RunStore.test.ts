import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Option, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, type Provider, RunState, RunStore, Skill, SkillRegistry } from "kernai"
import { MockProvider, Scenario } from "kernai/testing"
import { command, final } from "./support/blocks.ts"
import { kernel } from "./support/kernel.ts"
import * as Journal from "../src/testing/internal/sampleJournal.ts"
import { endsWithLayer, put, suite } from "./support/runStore.ts"
import { agent, plan } from "./support/workflow.ts"

describe("RunStore.layerMemory", () => {
  const context = Effect.runSync(Layer.buildWithScope(RunStore.layerMemory, Scope.makeUnsafe()))
  suite(Effect.succeed(Context.get(context, RunStore.RunStore)))

  it.effect("ends the subscriptions of a run with its layer, as file and database stores do", () =>
    endsWithLayer(RunStore.layerMemory)
  )

  it.effect("returns a record unchanged, including additional fields", () =>
    Effect.gen(function* () {
      const store = Context.get(context, RunStore.RunStore)
      const scope = { runId: "r", rootRunId: "r", step: 0, depth: 0, taskId: undefined }
      const begin: RunState.RunRecord = {
        runId: "r",
        revision: 1,
        op: "phase",
        events: [
          {
            ...scope,
            at: 1,
            revision: 1,
            type: "run_started",
            agent: "a",
            parentRunId: undefined,
            messages: [],
            history: 0,
            context: {}
          }
        ],
        delta: {},
        createdAt: 1,
        workerId: "w"
      }
      const said = (revision: number, other: Partial<RunState.RunRecord>, at = 1): RunState.RunRecord => ({
        ...begin,
        revision,
        events: [{ ...scope, at, revision, type: "turn_started", turnId: `t${revision}` }],
        ...other
      })
      const records = [
        begin,
        said(2, {}),
        said(3, { workerId: "another" }),
        said(4, { createdAt: 2 }),
        said(5, { delta: { settled: true } }),
        said(6, { op: "resume", delta: { resumed: true } }),
        said(7, { events: said(7, {}).events.map((event) => ({ ...event, revision: 6 })) }),
        said(8, { events: said(8, {}).events.map((event) => ({ ...event, runId: "a task" })) }),
        said(9, { events: [...said(9, {}).events, ...said(9, {}).events] }),
        said(10, { op: "launch", events: [] }),
        said(11, { op: "resume" })
      ]
      let state = RunState.advance(undefined, begin)
      yield* store.append([begin], state)
      for (const record of records.slice(1)) {
        state = RunState.advance(state, record)
        yield* store.append([record], state)
      }
      assert.deepStrictEqual(yield* Stream.runCollect(store.read("r")), records)
      assert.deepStrictEqual(yield* Stream.runCollect(Stream.take(store.tail("r", 4), 7)), records.slice(4))
    })
  )
})

describe("RunStore.layerMemoryWith", () => {
  const on = <A, E>(options: RunStore.MemoryOptions, body: (store: RunStore.RunStoreShape) => Effect.Effect<A, E>) =>
    Effect.provide(RunStore.RunStore.use(body), RunStore.layerMemoryWith(options))

  /** Stores a run that ended, with a task for each other id. */
  const end = Effect.fnUntraced(function* (
    store: RunStore.RunStoreShape,
    runId: string,
    { tasks = [], text = "done" }: { readonly tasks?: ReadonlyArray<string>; readonly text?: string } = {}
  ) {
    const run = Journal.begin(runId)
    yield* put(store, [run.last()])
    for (const task of tasks) {
      const below = Journal.begin(task, { rootRunId: runId, parentRunId: runId, depth: 1 })
      yield* put(store, [below.last(), ...Journal.finish(below)])
    }
    yield* put(store, Journal.finish(run, text))
  })

  const idsOf = (store: RunStore.RunStoreShape) =>
    Effect.map(store.list(), (heads) => heads.map(({ runId }) => runId).toSorted())

  it.effect("keeps a limited number of ended runs, and drops those that ended first, with their tasks", () =>
    on({ endedRuns: 4 }, (store) =>
      Effect.gen(function* () {
        yield* end(store, "a", { tasks: ["a1", "a2"] })
        yield* end(store, "b")
        assert.deepStrictEqual(yield* idsOf(store), ["a", "a1", "a2", "b"])
        yield* end(store, "c")
        assert.deepStrictEqual(yield* idsOf(store), ["b", "c"])
        assert.deepStrictEqual(yield* store.load("a1"), Option.none())
        assert.deepStrictEqual(yield* Stream.runCollect(store.read("a")), [])
        // The name is free again.
        yield* end(store, "a")
        assert.deepStrictEqual(yield* idsOf(store), ["a", "b", "c"])
      })
    )
  )

  it.effect("keeps a limited number of bytes of ended runs, and the last run however large it is", () =>
    on({ endedBytes: 100_000 }, (store) =>
      Effect.gen(function* () {
        for (const id of ["a", "b", "c", "d"]) yield* end(store, id, { text: "x".repeat(28_000) })
        assert.deepStrictEqual(yield* idsOf(store), ["b", "c", "d"])
        yield* end(store, "e", { text: "x".repeat(200_000) })
        assert.deepStrictEqual(yield* idsOf(store), ["e"])
      })
    )
  )

  it.effect("counts an interrupted run as ended until it is resumed", () =>
    on({ endedRuns: 2 }, (store) =>
      Effect.gen(function* () {
        const interrupt = Effect.fnUntraced(function* (runId: string) {
          yield* put(store, [Journal.begin(runId).last()])
          yield* store.acquire(runId, { workerId: "w", lease: "15 seconds" })
          yield* store.release(runId, "w")
        })
        for (const id of ["a", "b", "c"]) yield* interrupt(id)
        assert.deepStrictEqual(yield* idsOf(store), ["b", "c"])
        const resumed = Journal.begin("b")
        yield* put(store, [resumed.commit("resume", [])])
        for (const id of ["d", "e"]) yield* interrupt(id)
        assert.deepStrictEqual(yield* idsOf(store), ["b", "d", "e"])
        yield* end(store, "f")
        assert.deepStrictEqual(yield* idsOf(store), ["b", "e", "f"])
      })
    )
  )

  it.effect("drops no run that is under way, paused or queued, nor its tasks, nor what it was forked from", () =>
    on({ endedRuns: 1 }, (store) =>
      Effect.gen(function* () {
        const paused = Journal.begin("paused")
        const pause = paused.commit("pause", [{ type: "paused", reason: "wait", metadata: null }])
        yield* put(store, [Journal.begin("running").last(), Journal.begin("paused").last(), pause])
        const task = Journal.begin("running/task", { rootRunId: "running", parentRunId: "running", depth: 1 })
        yield* put(store, [task.last(), ...Journal.finish(task)])
        const queued = Journal.begin("queued")
        const failure = queued.commit("phase", [{ type: "run_failed", error: { tag: "ProviderError", message: "" } }])
        yield* put(store, [Journal.begin("queued").last()])
        yield* store.acquire("queued", { workerId: "w", lease: 0 })
        yield* put(store, [failure])
        yield* end(store, "original")
        const fork = (from: string, runId: string) =>
          Effect.provideService(Kernel.fork(from, { revision: 3, runId }), RunStore.RunStore, store)
        yield* fork("original", "fork")
        for (const id of ["a", "b", "c"]) yield* end(store, id)
        const open = ["fork", "original", "paused", "queued", "running", "running/task"]
        assert.deepStrictEqual(yield* idsOf(store), ["c", ...open])
        // The fork ends, and so does what kept the original.
        const state = Option.getOrThrow(yield* store.load("fork"))
        const last: RunState.RunRecord = {
          runId: "fork",
          revision: 4,
          op: "phase",
          events: [
            {
              type: "run_completed",
              source: "caller",
              runId: "fork",
              rootRunId: "fork",
              step: 0,
              depth: 0,
              taskId: undefined,
              at: 1,
              revision: 4
            }
          ],
          delta: {},
          createdAt: 1,
          workerId: "w"
        }
        yield* store.append([last], RunState.advance(state, last))
        assert.deepStrictEqual(yield* idsOf(store), ["fork", "paused", "queued", "running", "running/task"])
      })
    )
  )

  it.effect("counts a failed run that is resumed from its next end", () =>
    on({ endedRuns: 2 }, (store) =>
      Effect.gen(function* () {
        const run = Journal.begin("a")
        yield* put(store, [run.last()])
        yield* put(store, [run.commit("phase", [{ type: "run_failed", error: { tag: "StoreError", message: "" } }])])
        yield* end(store, "b")
        yield* put(store, [run.commit("resume", [], { resumed: true })])
        yield* end(store, "c")
        yield* put(store, Journal.finish(run))
        assert.deepStrictEqual(yield* idsOf(store), ["a", "c"])
      })
    )
  )

  it.effect("bounds the kernel with everything in memory", () =>
    Effect.gen(function* () {
      const talk = (index: number) => Kernel.run(agent(), "go", { runId: `r${index}` })
      yield* Effect.forEach(
        Array.from({ length: 101 }, (_, index) => index),
        talk,
        { discard: true }
      )
      const again = (index: number) => Effect.result(Kernel.resume(agent(), `r${index}`))
      assert.deepStrictEqual(
        [yield* again(0), yield* again(1), yield* again(100)].map(({ _tag }) => _tag),
        ["Failure", "Success", "Success"]
      )
    }).pipe(
      Effect.provide(Layer.provide(Kernel.layerMemory, [MockProvider.layer(final("done")), SkillRegistry.layer()]))
    )
  )
})

describe("RunStore.inFlight", () => {
  it.effect("lists the calls of a run and its tasks that started without a result, by idempotency key (DR-17)", () => {
    const keys: Array<string> = []
    const pay = Skill.make("pay", {
      description: "Pays",
      input: Schema.Struct({ to: Schema.String }),
      execute: (_, { idempotencyKey }) =>
        Effect.andThen(
          Effect.sync(() => keys.push(idempotencyKey)),
          Effect.never
        )
    })
    const call = (to: string) => ({ calls: [{ id: "call-a", name: "pay", input: { to } }] })
    const clerk = agent({ dialect: "tools" })
    const cut = (runId: string, provider: Provider.ProviderShape, who = clerk) =>
      Effect.gen(function* () {
        const fiber = yield* Effect.forkChild(Kernel.run(who, "go", { runId, provider }))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
        return (yield* RunStore.inFlight(runId)).map(({ idempotencyKey, input, runId, callId, name }) => ({
          idempotencyKey,
          input,
          runId,
          callId,
          name
        }))
      })
    return Effect.gen(function* () {
      const facts = { callId: "call-a", name: "pay", input: { to: "eva" } }
      const own = yield* cut("r", MockProvider.make(call("eva")))
      assert.deepStrictEqual(own, [{ ...facts, runId: "r", idempotencyKey: keys[0] ?? "" }])
      const provider = Scenario.scripted({ root: [plan(["a"])], tasks: { a: [command("pay", { to: "bob" })] } })
      const below = yield* cut("w", provider, agent())
      const runId = "w:t1/a"
      assert.deepStrictEqual(below, [
        { callId: `${runId}:t1.0`, name: "pay", input: { to: "bob" }, runId, idempotencyKey: keys[1] ?? "" }
      ])
      yield* Effect.exit(
        Kernel.resume(clerk, "r", {
          recover: { "call-a": { resolve: { output: [] } } },
          provider: MockProvider.make("paid")
        })
      )
      assert.deepStrictEqual(yield* RunStore.inFlight("r"), [])
      assert.strictEqual((yield* Effect.flip(RunStore.inFlight("nobody")))._tag, "RunNotFound")
    }).pipe(Effect.provide(kernel(pay)))
  })
})

describe("RunStore.recordsOf", () => {
  it.effect("returns the records of a run and of the runs below it, and of no other run of its tree", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.RunStore
      const run = Journal.begin("r")
      const below = { rootRunId: "r", parentRunId: "r", depth: 1 }
      const task = Journal.begin("r:t1/a", below)
      const other = Journal.begin("r:t1/b", below)
      const inner = Journal.begin("r:t1/a:t1/c", { rootRunId: "r", parentRunId: "r:t1/a", depth: 2 })
      for (const journal of [run, task, other, inner, Journal.begin("another")]) yield* put(store, [journal.last()])
      const ended = Journal.finish(task)
      yield* put(store, ended)
      const idsOf = (records: ReadonlyArray<RunState.RunRecord>) => new Set(records.map(({ runId }) => runId))
      const ids = ["r", "r:t1/a", "r:t1/b", "r:t1/a:t1/c"]
      assert.sameMembers([...idsOf(yield* RunStore.recordsOf("r"))], ids)
      const own = yield* RunStore.recordsOf("r:t1/a")
      assert.sameMembers([...idsOf(own)], ["r:t1/a", "r:t1/a:t1/c"])
      assert.deepStrictEqual(
        own.filter(({ runId }) => runId === "r:t1/a").map(({ revision }) => revision),
        [1, ...ended.map(({ record }) => record.revision)]
      )
      assert.strictEqual((yield* Effect.flip(RunStore.recordsOf("nobody")))._tag, "RunNotFound")
    }).pipe(Effect.provide(RunStore.layerMemory))
  )
})

describe("RunStore.prune", () => {
  it.effect("lists the store equally often for hundreds of trees as for a few", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.RunStore
      yield* Effect.forEach(Array.from({ length: 250 }), () => Kernel.run(agent(), "go"), { discard: true })
      let [looks, removals] = [0, 0]
      const watched = RunStore.RunStore.of({
        ...store,
        list: (filter) => Effect.suspend(() => ((looks += 1), store.list(filter))),
        remove: (runIds) => Effect.suspend(() => ((removals += 1), store.remove(runIds)))
      })
      const pruned = RunStore.prune({ updatedBefore: Infinity })
      const gone = yield* Effect.provideService(pruned, RunStore.RunStore, watched)
      assert.strictEqual(new Set(gone).size, 250)
      assert.deepStrictEqual(yield* store.list(), [])
      assert.deepStrictEqual([looks, removals], [3, 3])
    }).pipe(Effect.provide(Layer.merge(MockProvider.layer(final("done")), kernel())))
  )
})

describe("RunStore.makeMemory", () => {
  suite(Effect.succeed(Effect.runSync(RunStore.makeMemory)))
})
