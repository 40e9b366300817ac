import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Fiber, Layer, Schema, Scope, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, type Provider, RunState, RunStore, Skill } from "kernai"
import { MockProvider, Scenario } from "kernai/testing"
import { command, final } from "./support/blocks.ts"
import { kernel } from "./support/kernel.ts"
import { endsWithLayer, suite } from "./support/runStore.ts"
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
    const call = (to: string) => ({ calls: [{ id: "call-a", name: "pay", params: { to } }] })
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

describe("RunStore.prune", () => {
  it.effect("lists a store equally often for hundreds of trees as for a few", () =>
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
