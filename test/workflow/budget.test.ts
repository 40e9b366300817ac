import { assert, describe, it } from "@effect/vitest"
import { Array as Arr, Effect, Layer, Logger, Option, Stream } from "effect"
import {
  Agent,
  Kernel,
  KernelError,
  MediaStore,
  Middleware,
  Model,
  ProtocolRegistry,
  Provider,
  RunCodec,
  type RunEvent,
  RunStore,
  SkillRegistry,
  StreamPart,
  Usage
} from "kernai"
import { MockProvider, Scenario } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import {
  agent,
  intervals,
  isTask,
  overlap,
  plan,
  play,
  slow,
  stored,
  takeUp,
  told,
  using
} from "../support/workflow.ts"

const ids = (count: number) => Array.from({ length: count }, (_, index) => `t${index}`)

/** Tokens of every model call that was answered. */
const spent = (events: ReadonlyArray<RunEvent.RunEvent>): number =>
  of(events, "model_completed").reduce((sum, { usage }) => sum + (usage === null ? 0 : Usage.total(usage)), 0)

/** A plan of 10 tokens, then tasks of one call each, of 100 ms and so many tokens. */
const fanOut = (count: number, tokens: number): Scenario.Script => ({
  root: [using(10, plan(ids(count))), using(10, final("ok"))],
  tasks: Object.fromEntries(ids(count).map((id) => [id, [using(tokens, final(id), 100)]]))
})

/** The same script by a provider that tells no tokens. */
const unreported = (script: Scenario.Script): Provider.ProviderShape => ({
  name: "silent",
  stream: (request) =>
    Stream.map(Scenario.scripted(script).stream(request), (part) =>
      part.type === "finish" ? StreamPart.finish(part.reason) : part
    )
})

/** The end of a reply whose usage cannot be read. */
const nonsense: StreamPart.StreamPart = {
  ...StreamPart.finish("stop"),
  get usage(): StreamPart.Finish["usage"] {
    throw new Error("no usage")
  }
}

describe("the budget of a tree", () => {
  it.effect("counts the root and its children once, in the result as in the events (CP-15)", () =>
    Effect.gen(function* () {
      const { events, text } = yield* play(fanOut(5, 30), { agent: { budget: { maxTokens: 1_000 } } })
      assert.strictEqual(text, "ok")
      assert.strictEqual(spent(events), 170)
      const end = of(events, "run_completed").find((event) => event.depth === 0)
      assert.strictEqual(Usage.total(end?.result?.usage ?? Usage.zero), 170)
      const state = yield* stored("run")
      assert.strictEqual(Usage.total(state.usage), 170)
      assert.strictEqual(Usage.total((yield* stored("run:t1/t3")).usage), 30)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect(
    "stops a run whose answer exceeded it; resumed with a larger budget, the run returns that answer without another call (CP-15)",
    () =>
      Effect.gen(function* () {
        const provider = MockProvider.make(final("the answer"), final("another")).withTokenCounter(() => ({
          input: 90,
          output: 11
        }))
        const one = agent({ budget: { maxTokens: 100 } })
        const error = yield* Effect.flip(Kernel.run(one, "go", { runId: "run", provider }))
        assert.deepInclude(error, { _tag: "BudgetExhaustedError", used: 101, limit: 100 })
        assert.strictEqual((yield* stored("run")).status.type, "failed")
        const more = agent({ budget: { maxTokens: 101 } })
        assert.strictEqual((yield* Kernel.resume(more, "run", { provider })).text, "the answer")
        assert.strictEqual(provider.callCount, 1)
      }).pipe(Effect.provide(kernel()))
  )

  it.effect("counts the usage of a refused reply, across all resumes (CP-15, R-19)", () =>
    Effect.gen(function* () {
      const usage = { inputTokens: { total: 50 }, outputTokens: { total: 10 } }
      const broken = new KernelError.ProviderError({ provider: "m", reason: "disconnected", detail: "gone" })
      const refused = new KernelError.MiddlewareTermination({ reason: "said what it may not" })
      const ends: Record<string, { readonly stream: Provider.ProviderShape["stream"]; readonly tag: string }> = {
        "withheld by a filter": {
          stream: () => Stream.make(StreamPart.text(final("x")), StreamPart.finish("content-filter", usage)),
          tag: "ProviderError"
        },
        "broken after its end": {
          stream: () => Stream.concat(Stream.make(StreamPart.finish("stop", usage)), Stream.fail(broken)),
          tag: "ProviderError"
        }
      }
      const model = Model.make("m", { price: { inputPerMillion: 10_000, outputPerMillion: 0 } })
      const one = agent({ model, budget: { maxTokens: 100 } })
      for (const [runId, { stream, tag }] of Object.entries(ends)) {
        let calls = 0
        const provider: Provider.ProviderShape = {
          name: "counted",
          stream: (request) => Stream.suspend(() => (calls++, stream(request)))
        }
        assert.strictEqual((yield* Effect.flip(Kernel.run(one, "go", { runId, provider })))._tag, tag)
        assert.strictEqual((yield* Effect.flip(Kernel.resume(one, runId, { provider })))._tag, tag)
        const error = yield* Effect.flip(Kernel.resume(one, runId, { provider }))
        assert.deepInclude(error, { _tag: "BudgetExhaustedError", used: 120, limit: 100 })
        assert.strictEqual(calls, 2)
        const state = yield* stored(runId)
        assert.deepInclude(state, { usage: Usage.make({ inputTokens: 100, outputTokens: 20 }), costUsd: 1 })
      }
      const provider: Provider.ProviderShape = {
        name: "m",
        stream: () => Stream.make(StreamPart.text(final("x")), StreamPart.finish("stop", usage))
      }
      const guard = Middleware.layer({ callModel: (call, next) => Stream.concat(next(call), Stream.fail(refused)) })
      const run = Kernel.run(one, "go", { runId: "guarded", provider }).pipe(Effect.provide(guard))
      assert.deepStrictEqual(yield* Effect.flip(run), refused)
      assert.strictEqual(Usage.total((yield* stored("guarded")).usage), 60)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is exceeded by at most one call when children start together (R-19)", () =>
    Effect.gen(function* () {
      const { error, events } = yield* play(fanOut(20, 30), { agent: { budget: { maxTokens: 200 } } })
      assert.strictEqual(error?._tag, "BudgetExhaustedError")
      const total = spent(events)
      assert.isAtLeast(total, 200)
      assert.isBelow(total, 200 + 30)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("lets as many children run at once as it can pay for, once the size of their calls is known", () =>
    Effect.gen(function* () {
      const { events, text } = yield* play(fanOut(9, 30), { agent: { budget: { maxTokens: 1_000 } } })
      assert.strictEqual(text, "ok")
      const calls = of(events, "model_completed").filter((event) => event.depth === 1)
      // The first call tells how large they are; the other eight, four a second time, need not wait for each other.
      assert.deepStrictEqual(
        calls.map((event) => event.at),
        [100, 200, 200, 200, 200, 200, 200, 200, 200]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("does not reduce concurrency when no budget is set", () =>
    Effect.gen(function* () {
      const { events } = yield* play(fanOut(8, 30))
      assert.strictEqual(overlap(intervals(events).values()), 8)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("limits cost by the model's price, and reserves it like tokens", () =>
    Effect.gen(function* () {
      const model = Model.make("m", { price: { inputPerMillion: 1_000_000, outputPerMillion: 0 } })
      const { error, events } = yield* play(fanOut(20, 30), { agent: { model, budget: { maxCostUsd: 100 } } })
      assert.strictEqual(error?._tag, "BudgetExhaustedError")
      const cost = of(events, "model_completed").reduce((sum, event) => sum + (event.costUsd ?? 0), 0)
      assert.isAtLeast(cost, 100)
      assert.isBelow(cost, 130)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("counts the cost of the root and its children, in the result as in the events (CP-15, R-19)", () =>
    Effect.gen(function* () {
      const model = Model.make("m", { price: { inputPerMillion: 1_000_000, outputPerMillion: 0 } })
      const { events } = yield* play(fanOut(3, 30), { agent: { model } })
      const cost = of(events, "model_completed").reduce((sum, event) => sum + (event.costUsd ?? 0), 0)
      assert.isAbove(cost, 100)
      const end = of(events, "run_completed").find((event) => event.depth === 0)
      assert.strictEqual(end?.result?.costUsd, cost)
      assert.strictEqual((yield* stored("run")).costUsd, cost)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("takes a price that is not a number as unknown, so the run can be loaded again", () =>
    Effect.gen(function* () {
      for (const inputPerMillion of [Number.NaN, Infinity]) {
        const model = Model.make("m", { price: { inputPerMillion, outputPerMillion: 1 } })
        const { costUsd } = yield* Kernel.run(Agent.make({ instructions: "", model }), "go", {
          provider: MockProvider.make("done").withTokenCounter(() => ({ input: 5, output: 5 })),
          runId: `at ${inputPerMillion}`
        })
        assert.isUndefined(costUsd)
        for (const record of yield* RunStore.recordsOf(`at ${inputPerMillion}`)) {
          const written = yield* Effect.fromResult(RunCodec.encodeRecord(record))
          yield* Effect.fromResult(RunCodec.make().decodeRecord(written))
        }
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.effect(
    "starts no task once it is used up and keeps finished ones; a larger budget continues with the rest (CP-15)",
    () =>
      Effect.gen(function* () {
        const script = fanOut(6, 30)
        const first = yield* play(script, { agent: { budget: { maxTokens: 100 }, taskConcurrency: 2 } })
        assert.strictEqual(first.error?._tag, "BudgetExhaustedError")
        const failed = yield* stored("run")
        assert.strictEqual(failed.status.type, "failed")
        assert.deepStrictEqual(
          failed.currentTurn?.completed.map((result) => result.error),
          failed.currentTurn?.completed.map(() => undefined)
        )
        // 10 for the plan, then three tasks of 30; the one that found nothing left was the last to start.
        assert.strictEqual(failed.currentTurn?.completed.length, 3)
        assert.strictEqual(failed.currentTurn?.inFlight.length, 1)
        assert.strictEqual(failed.currentTurn?.pending.length, 2)
        const second = yield* takeUp(script, { agent: { budget: { maxTokens: 1_000 }, taskConcurrency: 2 } })
        assert.strictEqual(second.text, "ok")
        assert.strictEqual(spent(first.events) + spent(second.events), 200)
        assert.strictEqual(Usage.total((yield* stored("run")).usage), 200)
        assert.include(told(second.events), '{"t0":"t0","t1":"t1","t2":"t2","t3":"t3","t4":"t4","t5":"t5"}')
      }).pipe(Effect.provide(kernel()))
  )

  it.effect("counts the usage of failed and unfinished children, also after a resume", () =>
    Effect.gen(function* () {
      const script: Scenario.Script = {
        root: [using(10, plan(["bad", "slow"])), using(10, final("ok"))],
        tasks: {
          bad: [using(40, command("/tasks"))],
          slow: [using(40, command("/tasks")), slow(10_000_000, final("never"))]
        }
      }
      // The deadline cuts off the second task in its second call; the first has given up by then.
      const options = { maxSteps: 2, budget: { maxTokens: 1_000, deadline: 1_000 } }
      yield* play(script, { agent: options })
      const cut = yield* stored("run")
      assert.strictEqual(Usage.total(cut.usage), 10 + 80)
      const again: Scenario.Script = { ...script, tasks: { ...script.tasks, slow: [using(40, final("late"))] } }
      const refused = yield* takeUp(again, { agent: { ...options, budget: { maxTokens: 130 } } })
      assert.deepInclude(refused.error, { _tag: "BudgetExhaustedError", used: 130, limit: 130 })
      assert.strictEqual(of(refused.events, "messages_sent").length, 0)
      const done = yield* takeUp(again, { agent: { ...options, budget: { maxTokens: 500 } } })
      assert.strictEqual(done.text, "ok")
      assert.strictEqual(Usage.total((yield* stored("run")).usage), 10 + 80 + 80 + 10)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("counts the usage of a task whose result a person gave, across all resumes (R-19, CP-15)", () =>
    Effect.gen(function* () {
      const script: Scenario.Script = {
        root: [using(10, plan(["a"])), using(10, command("/tasks")), using(10, final("ok"))],
        tasks: { a: [using(500, command("/tasks")), slow(10_000_000, final("never"))] }
      }
      yield* play(script, { agent: { budget: { deadline: 1_000 } } })
      const limited = (maxTokens: number) => ({ agent: { budget: { maxTokens } } })
      const given = { "run:t1/a": { resolve: { output: [{ type: "text" as const, text: "known" }] } } }
      const second = yield* takeUp(script, { recover: given, ...limited(515) })
      assert.deepInclude(second.error, { _tag: "BudgetExhaustedError", used: 520, limit: 515 })
      const state = yield* stored("run")
      assert.strictEqual(Usage.total(state.usage), 520)
      // The result itself is as any other: what was spent is in the counters.
      assert.notProperty(state.turns[0]?.completed[0], "spent")
      const third = yield* takeUp(script, limited(515))
      assert.deepInclude(third.error, { _tag: "BudgetExhaustedError", used: 520, limit: 515 })
      assert.strictEqual(of(third.events, "messages_sent").length, 0)
      assert.strictEqual((yield* takeUp(script, limited(1_000))).text, "ok")
      assert.strictEqual(Usage.total((yield* stored("run")).usage), 530)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("counts the usage of a task that a suspended former owner started when it woke up (R-19)", () =>
    Effect.gen(function* () {
      const script: Scenario.Script = {
        root: [using(10, plan(["a"])), using(10, final("ok"))],
        tasks: { a: [using(500, command("/tasks")), slow(10_000_000, final("never"))] }
      }
      yield* play(script, { agent: { budget: { deadline: 1_000 } } })
      const begun = yield* RunStore.RunStore.use((store) => Stream.runCollect(store.read("run:t1/a")))
      const task = yield* stored("run:t1/a")
      const store = yield* RunStore.makeMemory
      if (!Arr.isReadonlyArrayNonEmpty(begun)) return assert.fail("the task has no record")
      const woken: RunStore.RunStoreShape = {
        ...store,
        append: (records, state) =>
          state.runId === "run:t1/a" && records[0].revision === 1
            ? Effect.andThen(store.append(begun, task), store.append(records, state))
            : store.append(records, state)
      }
      const live = Layer.fresh(Kernel.layerNoProvider).pipe(
        Layer.provide([SkillRegistry.layer(), ProtocolRegistry.layer(), MediaStore.layerMemory]),
        Layer.provide(Layer.succeed(RunStore.RunStore, woken))
      )
      const late = yield* Effect.provide(play(script, { agent: { budget: { maxTokens: 505 } } }), live)
      assert.deepInclude(late.error, { _tag: "BudgetExhaustedError", used: 510, limit: 505 })
      assert.strictEqual(spent(late.events), 10)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("counts calls without reported usage as zero, and runs them concurrently", () =>
    Effect.gen(function* () {
      const { events, text } = yield* play(
        { root: [] },
        {
          agent: { budget: { maxTokens: 50 } },
          provider: unreported(fanOut(9, 30))
        }
      )
      assert.strictEqual(text, "ok")
      assert.strictEqual(Math.max(...Array.from(intervals(events).values(), ([, to]) => to)), 200)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("releases the reservation of a call whose provider throws or reports invalid usage (R-19)", () =>
    Effect.gen(function* () {
      const scripted = Scenario.scripted(fanOut(3, 30))
      const provider: Provider.ProviderShape = {
        name: "broken",
        stream: (request) => {
          if (isTask(request, "t0")) throw new Error("no stream")
          return isTask(request, "t1") ? Stream.make(nonsense) : scripted.stream(request)
        }
      }
      const { events, text } = yield* play({ root: [] }, { agent: { budget: { maxTokens: 1_000 } }, provider })
      assert.strictEqual(text, "ok")
      assert.deepStrictEqual(
        of(events, "task_error").map(({ id }) => id),
        ["t0", "t1"]
      )
      assert.deepStrictEqual(
        of(events, "task_complete").map(({ id }) => id),
        ["t2"]
      )
    }).pipe(Effect.provide([kernel(), Logger.layer([])]))
  )

  it.effect("limits the steps of each run separately (DR-20)", () =>
    Effect.gen(function* () {
      const { events, text } = yield* play(
        {
          root: [plan(["a", "b"]), final("ok")],
          tasks: { a: [command("/tasks"), final("A")], b: [command("/tasks")] }
        },
        { runId: "run", agent: { maxSteps: 2 } }
      )
      assert.strictEqual(text, "ok")
      assert.include(told(events, "run"), '{"a":"A","b":"error: Agent reached maximum steps (2)"}')
    }).pipe(Effect.provide(kernel()))
  )
})

describe("the spawn budget", () => {
  it.effect("counts the runs of the tree over its life, also those that ended (CP-15)", () =>
    Effect.gen(function* () {
      const all = ids(4)
      const script = {
        root: [plan(all, "sequential"), final("ok")],
        tasks: Object.fromEntries(all.map((id) => [id, [final(id)]]))
      }
      const { events, text } = yield* play(script, { agent: { spawn: { maxAgents: 3, maxDepth: 1 } } })
      assert.strictEqual(text, "ok")
      assert.deepStrictEqual(
        of(events, "task_complete").map(({ id }) => id),
        ["t0", "t1"]
      )
      assert.deepStrictEqual(
        of(events, "task_error").map(({ id }) => id),
        ["t2", "t3"]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("continues its count after a resume, and counts a resumed child once (CP-15, DR-26)", () =>
    Effect.gen(function* () {
      const asked = Agent.make({
        instructions: "",
        model: "m",
        skills: "all",
        taskConcurrency: 1,
        spawn: { maxAgents: 3, maxDepth: 1 }
      })
      const all = ids(3)
      const broken = new Provider.ProviderError({ provider: "script", reason: "server_error", detail: "down" })
      const first = Scenario.scripted({
        root: [plan(all), final("ok")],
        tasks: { t0: [final("0")], t1: [broken], t2: [broken] }
      })
      yield* Effect.exit(Kernel.run(asked, "go", { provider: first, runId: "run" }))
      const second = Scenario.scripted({ root: [final("ok")], tasks: { t1: [final("1")], t2: [final("2")] } })
      const result = yield* Kernel.resume(asked, "run", { provider: second })
      assert.strictEqual(result.text, "ok")
      const store = yield* RunStore.RunStore
      const heads = yield* store.list({ rootRunId: "run" })
      assert.deepStrictEqual(heads.map(({ runId }) => runId).toSorted(), ["run", "run:t1/t0", "run:t1/t1"])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("denies each task when it allows no child, and the run continues", () =>
    Effect.gen(function* () {
      for (const spawn of [
        { maxAgents: 1, maxDepth: 1 },
        { maxAgents: 50, maxDepth: 0 },
        { maxAgents: 50, maxConcurrent: 1, maxDepth: 2 }
      ]) {
        const { events, text } = yield* play(fanOut(3, 30), { runId: `run-${spawn.maxDepth}`, agent: { spawn } })
        assert.strictEqual(text, "ok")
        assert.strictEqual(of(events, "task_error").length, 3)
        assert.include(of(events, "task_error")[0]?.error ?? "", "may not spawn another")
        assert.strictEqual(of(events, "run_started").length, 1)
      }
    }).pipe(Effect.provide(kernel()))
  )

  it.live("yields to other fibers while it denies thousands of tasks", () =>
    Effect.gen(function* () {
      const ids = Array.from({ length: 2_000 }, (_, n) => `t${n}`)
      const store = yield* RunStore.RunStore
      const provider = MockProvider.make(plan(ids), final("done"))
      const asked = Agent.make({ instructions: "", model: "m", skills: "all", spawn: { maxAgents: 0, maxDepth: 1 } })
      const run = yield* Effect.forkChild(Kernel.run(asked, "go", { provider, runId: "run" }))
      let [last, widest] = [0, 0]
      while (run.pollUnsafe() === undefined) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        const revision = Option.match(yield* store.head("run"), { onNone: () => 0, onSome: (head) => head.revision })
        widest = Math.max(widest, revision - last)
        last = revision
      }
      assert.isAbove(last, 4_000)
      assert.isAtMost(widest, 1_024)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("gives a slot back when a child ends, however it ends", () =>
    Effect.gen(function* () {
      const all = ids(6)
      const { events, text } = yield* play(
        {
          root: [plan(all), final("ok")],
          tasks: Object.fromEntries(
            all.map((id, index) => [id, [index % 2 === 0 ? command("/tasks") : slow(100, final(id))]])
          )
        },
        { agent: { maxSteps: 2, spawn: { maxAgents: 50, maxConcurrent: 2, maxDepth: 1 } } }
      )
      assert.strictEqual(text, "ok")
      assert.strictEqual(of(events, "task_error").length, 3)
      assert.strictEqual(of(events, "task_complete").length, 3)
      assert.strictEqual(overlap(intervals(events).values()), 1)
    }).pipe(Effect.provide(kernel()))
  )
})
