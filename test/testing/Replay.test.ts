import { assert, describe, it, vi } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  Content,
  Hooks,
  Kernel,
  KernelError,
  MediaStore,
  Policy,
  ProtocolRegistry,
  Provider,
  type RunEvent,
  type RunState,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { CrashMatrix, MockProvider, Replay, Scenario } from "kernai/testing"
import { deep } from "../../src/kit/redact.ts"
import { command, final } from "../support/blocks.ts"
import { subjects } from "../support/crashScripts.ts"
import { kernel } from "../support/kernel.ts"
import { kernelOneByOne } from "../support/oneByOne.ts"
import { agent, isTask, plan, play, slow, stored, takeUp } from "../support/workflow.ts"

// A tree of four agents has many records: seconds of processor time, and minutes where many processes share a core.
vi.setConfig({ testTimeout: 600_000 })

/** Nothing outside may be reached: no model, no skill. */
const forbidding = (...names: ReadonlyArray<string>) =>
  Layer.mergeAll(
    Layer.succeed(Provider.Provider, { name: "mock", stream: () => Stream.die(new Error("a model was asked")) }),
    SkillRegistry.layer(
      ...names.map((name) =>
        Skill.dynamic(name, {
          description: name,
          effects: name === "send" ? "idempotent" : name === "look" ? "read" : "write",
          inputSchema: { type: "object" },
          execute: () => Effect.die(new Error(`${name} was entered`))
        })
      )
    )
  )

const forbidden = forbidding("pay", "look")

const closed = forbidding("pay", "look", "send", "file")

/** A skill that never comes to its end. */
const paying = Skill.dynamic("pay", {
  description: "pays",
  inputSchema: { type: "object" },
  execute: () => Effect.never
})

const kernelOn = (
  store: RunStore.RunStoreShape,
  parts: Layer.Layer<Provider.Provider | SkillRegistry.SkillRegistry, unknown>
) =>
  Kernel.layer.pipe(
    Layer.provide(parts),
    Layer.provide([ProtocolRegistry.layer(), MediaStore.layerMemory]),
    Layer.provideMerge(Layer.succeed(RunStore.RunStore, store))
  )

describe("Kernel.replay (R-26)", () => {
  const everyLife = Effect.fnUntraced(function* (subject: CrashMatrix.Subject, settings: CrashMatrix.Settings) {
    const stores: Array<RunStore.RunStoreShape> = []
    const store = Effect.map(RunStore.makeMemory, (shape) => {
      stores.push(shape)
      return Layer.succeed(RunStore.RunStore, shape)
    })
    const report = yield* CrashMatrix.run(subject, { ...settings, store })
    assert.deepStrictEqual(report.violations, [])
    for (const kept of stores) {
      const recorded = yield* Effect.provide(RunStore.recordsOf("run"), Layer.succeed(RunStore.RunStore, kept))
      // Hooks and policies are the agent's own and run again; models and skills do not.
      const replayed = yield* Replay.run(subject.agent, "run").pipe(
        Effect.provide(Layer.provideMerge(kernelOn(kept, closed), Layer.provideMerge(closed, subject.layer)))
      )
      assert.strictEqual(replayed.state.status.type, "completed")
      assert.isAtLeast(replayed.events.length, recorded.flatMap((record) => record.events).length / 2)
    }
  })

  for (const subject of subjects()) {
    it.live(`${subject.name}: replays as recorded after a crash at every record`, () =>
      everyLife(subject, { kernel: kernelOneByOne, ways: ["before", "after"] })
    )
  }

  it.live("a task that ended in a crash is replayed after those with stored results", () => {
    const counting = Hooks.layer({
      onToolCallCompleted: ({ context }) => Effect.succeed({ context: { ended: Number(context["ended"] ?? 0) + 1 } })
    })
    const tasks = subjects().filter(({ name }) => name === "workflow")
    return Effect.forEach(
      tasks,
      (subject) => everyLife({ ...subject, layer: Layer.merge(subject.layer, counting) }, { ways: ["after"] }),
      { discard: true }
    )
  })

  it.live("blocks of every type, native calls with thinking and failures replay the same events", () =>
    Effect.gen(function* () {
      for (const [index, replies] of conversations.entries()) {
        const store = yield* RunStore.makeMemory
        const parts = Layer.merge(talkative, MockProvider.layer(...replies))
        const told: Array<RunEvent.RunEvent> = []
        const dialect = index === 0 ? "blocks" : "tools"
        const agent = Agent.make({
          name: "all",
          instructions: "Be brief.",
          model,
          skills: "all",
          dialect,
          concurrency: 2
        })
        yield* Kernel.stream(agent, "go", { runId: "run", parts: true }).pipe(
          Stream.runForEach((event) => Effect.sync(() => void told.push(event))),
          Effect.exit,
          Effect.provide(kernelOn(store, parts))
        )
        const records = yield* Effect.provide(RunStore.recordsOf("run"), Layer.succeed(RunStore.RunStore, store))
        const recording = { runId: "run", records, events: told }
        const replayed = yield* Effect.provide(Replay.run(agent, recording), kernelOn(store, forbidden))
        assert.isAbove(told.length, 10)
        assert.deepStrictEqual(replayed.events.filter(isOfModel).map(timeless), told.filter(isOfModel).map(timeless))
      }
    })
  )

  it.live("an agent with changed instructions diverges at the step where they differ", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const replies = [{ calls: [{ id: "c", name: "pay", input: { to: "eva" } }] }, "done"]
      const make = (name: string, instructions: string) =>
        Agent.make({ name, instructions, model, skills: "all", dialect: "tools" })
      const agent = make("a", "Pay what is due.")
      yield* Effect.provide(
        Kernel.run(agent, "go", { runId: "run" }),
        kernelOn(store, Layer.merge(talkative, MockProvider.layer(...replies)))
      )
      const layer = kernelOn(store, forbidden)

      const changed = make("a", "Pay nothing.")
      const error = yield* Effect.flip(Effect.provide(Replay.run(changed, "run"), layer))
      assert.instanceOf(error, KernelError.ReplayDiverged)
      assert.strictEqual(error.index, 2)
      assert.strictEqual(error.expected, `turn_prepared of step 0, /prompt/system: "Pay what is due."`)
      assert.strictEqual(error.actual, `turn_prepared of step 0, /prompt/system: "Pay nothing."`)

      // Only the second turn sees the change.
      let turn = 0
      const instructions = Effect.sync(() => (turn++ === 0 ? "Pay what is due." : "Stop."))
      const later = Agent.make({ name: "a", instructions, model, skills: "all", dialect: "tools" })
      const second = yield* Effect.flip(Effect.provide(Replay.run(later, "run"), layer))
      assert.instanceOf(second, KernelError.ReplayDiverged)
      assert.match(second.actual, /^turn_prepared of step 1, .prompt.system: "Stop."$/)

      const renamed = make("b", "Pay what is due.")
      const first = yield* Effect.flip(Effect.provide(Replay.run(renamed, "run"), layer))
      assert.instanceOf(first, KernelError.ReplayDiverged)
      assert.strictEqual(first.index, 0)
      assert.match(first.actual, /run_started of step 0, .agent: "b"/)
    })
  )

  it.live("a failure recorded before redaction of a key replays unchanged", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const clerk = Agent.make({ instructions: "", model: "scripted" })
      const detail = "refused: access_token=abcdefgh1234"
      const failing = new KernelError.ProviderError({ provider: "mock", reason: "unknown", detail })
      const provider = { name: "mock", stream: () => Stream.fail(failing) }
      const layer = kernelOn(store, forbidden)
      yield* Effect.provide(Effect.flip(Kernel.run(clerk, "go", { provider, runId: "run" })), layer)
      const records = yield* Effect.provide(RunStore.recordsOf("run"), layer)
      const raw = records.map((record) => ({
        ...record,
        events: record.events.map((event) =>
          event.type === "run_failed"
            ? {
                ...event,
                error: { ...event.error, message: failing.message, fields: { ...event.error.fields, detail } }
              }
            : event
        )
      }))
      const { state } = yield* Effect.provide(Replay.run(clerk, { runId: "run", records: raw }), layer)
      assert.strictEqual(state.status.type, "failed")
    })
  )

  it.live("a failure of a task recorded before redaction of a key replays unchanged", () =>
    Effect.gen(function* () {
      const provider: Provider.ProviderShape = {
        name: "mock",
        stream: (request) =>
          isTask(request, "a")
            ? Stream.fail(
                new KernelError.ProviderError({ provider: "mock", reason: "unknown", detail: "access_token=abcdefgh" })
              )
            : scripted.stream(request)
      }
      const scripted = Scenario.scripted({ root: [plan(["a"]), final("ok")], tasks: {} })
      yield* Kernel.run(agent(), "go", { provider, runId: "run" })
      const records = yield* RunStore.recordsOf("run")
      const raw = deep(records, (text) => text.replaceAll("access_token=<redacted>", "access_token=abcdefgh"))
      assert.notDeepEqual(raw, records)
      const { state } = yield* Replay.run(agent(), { runId: "run", records: raw })
      assert.strictEqual(state.status.type, "completed")
    }).pipe(Effect.provide(kernel()))
  )

  it.live("an incomplete recording diverges where the run would continue, but not after a crash", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const agent = Agent.make({ name: "a", instructions: "", model, maxSteps: 1, dialect: "tools" })
      yield* Effect.provide(
        Kernel.run(agent, "go", { runId: "run" }),
        kernelOn(store, Layer.merge(talkative, MockProvider.layer("done")))
      )
      const records = yield* Effect.provide(RunStore.recordsOf("run"), Layer.succeed(RunStore.RunStore, store))
      const layer = kernelOn(yield* RunStore.makeMemory, forbidden)
      for (let length = 1; length <= records.length; length++) {
        const replayed = yield* Effect.provide(
          Replay.run(agent, { runId: "run", records: records.slice(0, length) }),
          layer
        )
        assert.strictEqual(replayed.state.revision, length)
      }
    })
  )

  it.live("a recording with more turns than the agent now has diverges where the run would end", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const agent = Agent.make({ name: "a", instructions: "", model, dialect: "tools" })
      yield* Effect.provide(
        Kernel.run(agent, "go", { runId: "run" }),
        kernelOn(store, Layer.merge(talkative, MockProvider.layer("", "done")))
      )
      const records = yield* Effect.provide(RunStore.recordsOf("run"), Layer.succeed(RunStore.RunStore, store))
      const layer = kernelOn(yield* RunStore.makeMemory, forbidden)
      const replayed = Replay.run({ ...agent, maxSteps: 1 }, { runId: "run", records })
      const error = yield* Effect.flip(Effect.provide(replayed, layer))
      assert.instanceOf(error, KernelError.ReplayDiverged)
      assert.strictEqual(error.expected, "turn_started of step 1")
      assert.strictEqual(error.actual, "run_completed of step 0")
    })
  )

  it.live("a fork replays from its fork point, without running copied or changed records again", () =>
    Effect.gen(function* () {
      for (const { agent, input, layer: parts, name } of subjects()) {
        if (name !== "three tools" && name !== "workflow") continue
        const store = yield* RunStore.makeMemory
        const layer = kernelOn(store, Layer.provideMerge(parts, closed))
        yield* Effect.provide(Kernel.run(agent, input, { runId: "run" }), layer)
        for (const { revision } of yield* Stream.runCollect(store.read("run"))) {
          const id = yield* Effect.provide(
            Kernel.fork("run", { revision, runId: `fork${revision}`, edit: moody }),
            layer
          )
          const replaying = Effect.provide(Replay.run(agent, id), Layer.provideMerge(kernelOn(store, closed), closed))
          const copied = yield* replaying
          assert.deepStrictEqual([copied.state.revision, copied.lives, copied.events.length], [revision, 0, 0])
          const inFlight = copied.state.currentTurn?.inFlight.map((call) => call.callId) ?? []
          const replay = Object.fromEntries(inFlight.map((callId) => [callId, "retry" as const]))
          yield* Effect.provide(Kernel.resume(agent, id, { recover: replay }), layer)
          const replayed = yield* replaying
          assert.strictEqual(replayed.state.status.type, "completed")
          const records = yield* Effect.provide(RunStore.recordsOf(id), layer)
          const anew = records.filter((record) => record.runId !== id || record.revision > revision)
          assert.strictEqual(replayed.events.filter(isPhase).length, anew.flatMap((record) => record.events).length)
        }
      }
    })
  )

  it.live("a resumed run counts its earlier usage, so an exhausted budget stops it again (CP-15)", () =>
    Effect.gen(function* () {
      const store = yield* RunStore.makeMemory
      const agent = Agent.make({
        name: "a",
        instructions: "",
        model,
        skills: "all",
        dialect: "tools",
        budget: { maxTokens: 150 }
      })
      const paying = (id: string) => ({
        calls: [{ id, name: "pay", input: {} }],
        usage: { inputTokens: { total: 100 }, outputTokens: { total: 0 } }
      })
      const parts = Layer.merge(talkative, MockProvider.layer(paying("a"), paying("b")))
      const layer = kernelOn(store, parts)
      let pauses = 0
      const hooks = Hooks.layer({
        onToolCallsCompleted: () => Effect.sync(() => (pauses++ === 0 ? Hooks.pause() : {}))
      })
      const paused = yield* Effect.flip(Effect.provide(Kernel.run(agent, "go", { runId: "run" }), [layer, hooks]))
      assert.instanceOf(paused, KernelError.RunPaused)
      const spent = yield* Effect.flip(Effect.provide(Kernel.resume(agent, "run"), layer))
      assert.instanceOf(spent, KernelError.BudgetExhaustedError)
      pauses = 0
      const replayed = yield* Effect.provide(Replay.run(agent, "run"), [kernelOn(store, forbidden), hooks])
      assert.strictEqual(replayed.lives, 2)
      assert.strictEqual(replayed.state.status.type, "failed")
    })
  )

  it.effect("a hook that stopped a run with concurrent calls sees them in the same state again", () =>
    Effect.gen(function* () {
      const durations = { a: 300, b: 100, c: 200 }
      const names = Object.keys(durations)
      const waits = Object.entries(durations).map(([name, takes]) =>
        Skill.dynamic(name, {
          description: name,
          inputSchema: { type: "object" },
          execute: () => Effect.as(Effect.sleep(takes), name)
        })
      )
      const calls = names.map((name) => ({ id: name, name, input: {} }))
      const parts = Layer.merge(SkillRegistry.layer(...waits), MockProvider.layer({ calls }, "done"))
      const make = (concurrency: number) =>
        Agent.make({ name: "n", instructions: "", model, skills: "all", dialect: "tools", concurrency })
      const shown = ({ op, events, delta }: RunState.RunRecord) =>
        events[0]?.type === "tool_call_completed" ? `${events[0].callId} ended` : (delta.launched?.[0] ?? op)
      for (const [first, asItWas] of [
        ["b", ["a", "b", "b ended", "a ended", "pause"]],
        ["a", ["a", "b", "b ended", "c", "a ended", "c ended", "pause"]]
      ] as const) {
        const store = yield* RunStore.makeMemory
        const hooks = Hooks.layer({
          onToolCallCompleted: ({ result }) => Effect.succeed(result.callId === first ? Hooks.pause("look") : undefined)
        })
        const run = yield* Effect.forkChild(
          Effect.exit(Effect.provide(Kernel.run(make(2), "go", { runId: "run" }), [kernelOn(store, parts), hooks]))
        )
        yield* TestClock.adjust("1 second")
        yield* Fiber.join(run)
        const journal = yield* Stream.runCollect(store.read("run", 8))
        assert.deepStrictEqual(journal.map(shown).slice(-asItWas.length), [...asItWas])
        const replaying = Effect.provide(Replay.run(make(2), "run"), [kernelOn(store, forbidding(...names)), hooks])
        assert.strictEqual((yield* replaying).state.status.type, "paused")
      }
      // Where nobody stopped it, how many run at once is no difference.
      const store = yield* RunStore.makeMemory
      const run = yield* Effect.forkChild(
        Effect.provide(Kernel.run(make(2), "go", { runId: "run" }), kernelOn(store, parts))
      )
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(run)
      for (const concurrency of [1, 3]) {
        yield* Effect.provide(Replay.run(make(concurrency), "run"), kernelOn(store, forbidding(...names)))
      }
    })
  )

  it.effect("tasks end or wait for a person in the recorded order", () =>
    Effect.gen(function* () {
      const pay = Skill.dynamic("pay", {
        description: "pays",
        inputSchema: { type: "object" },
        execute: () => Effect.succeed("paid")
      })
      const script = {
        root: [plan(["a", "b", { id: "c", depends_on: ["b"] }]), final("ok")],
        tasks: {
          a: [slow(3_000, command("pay")), final("A")],
          b: [slow(1_000, command("pay")), final("B")],
          c: [final("C")]
        }
      }
      const stopped = Hooks.layer({
        onToolCallCompleted: ({ result, state }) =>
          Effect.succeed(state.depth === 0 && result.name === "b" ? Hooks.pause("look") : undefined)
      })
      const asked = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
      for (const reason of ["look", "approval_required"]) {
        yield* Effect.gen(function* () {
          yield* play(script, { agent: { taskConcurrency: 2 } })
          const { status } = yield* stored("run")
          assert.deepStrictEqual([status.type, "reason" in status && status.reason], ["paused", reason])
          const { state } = yield* Replay.run(agent({ taskConcurrency: 2 }), "run")
          assert.deepStrictEqual({ ...state.status, createdAt: 0 }, { ...status, createdAt: 0 })
        }).pipe(Effect.provide(Layer.merge(kernel(pay), reason === "look" ? stopped : asked)))
      }
    })
  )

  it.effect("a decision about a task's call is replayed even if the run paused before it was needed", () =>
    Effect.gen(function* () {
      const script = {
        root: [plan(["a", "b"]), final("ok")],
        tasks: { a: [slow(1_000, final("A"))], b: [command("pay")] }
      }
      let asked = 0
      const hooks = Hooks.layer({
        onToolCallCompleted: () =>
          Effect.suspend(() => (asked++ === 0 ? Effect.never : Effect.succeed(Hooks.pause("look"))))
      })
      yield* Effect.gen(function* () {
        const provider = Scenario.scripted(script)
        const run = yield* Effect.forkChild(Kernel.run(agent(), "go", { runId: "run", provider }))
        yield* TestClock.adjust("1 minute")
        yield* Fiber.interrupt(run)
        yield* takeUp(script, { recover: { "run:t1/b:t1.0": "retry" } })
        assert.strictEqual((yield* stored("run")).status.type, "paused")
        asked = 0
        const { lives, state } = yield* Replay.run(agent(), "run")
        assert.deepStrictEqual([lives, state.status.type], [2, "paused"])
      }).pipe(Effect.provide(Layer.merge(kernel(paying), hooks)))
    })
  )

  it.effect("a refused resume replays its decisions on some calls of tasks, and names the missing ones", () =>
    Effect.gen(function* () {
      const script = {
        root: [plan(["a", "b"]), final("ok")],
        tasks: { a: [command("pay"), final("A")], b: [command("pay"), final("B")] }
      }
      yield* Effect.gen(function* () {
        const provider = Scenario.scripted(script)
        const run = yield* Effect.forkChild(Kernel.run(agent(), "go", { runId: "run", provider }))
        yield* TestClock.adjust("1 minute")
        yield* Fiber.interrupt(run)
        const paid: Kernel.Recovery = { resolve: { output: [Content.text("paid")] } }
        const { error } = yield* takeUp(script, { recover: { "run:t1/a:t1.0": paid } })
        assert.instanceOf(error, KernelError.InFlightToolCalls)
        assert.deepStrictEqual(error.callIds, ["run:t1/b:t1.0"])
        yield* takeUp(script, { recover: { "run:t1/a:t1.0": paid, "run:t1/b:t1.0": paid } })
        const { lives, state } = yield* Replay.run(agent(), "run")
        assert.deepStrictEqual([lives, state.status.type], [3, "completed"])
      }).pipe(Effect.provide(kernel(paying)))
    })
  )

  it.live("an unknown run is not found", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "a", instructions: "", model })
      const layer = kernelOn(yield* RunStore.makeMemory, forbidden)
      const error = yield* Effect.flip(Effect.provide(Replay.run(agent, "nobody"), layer))
      assert.instanceOf(error, KernelError.RunNotFound)
    })
  )
})

const model = { id: "scripted", capabilities: ["text"] as const }

const talkative = SkillRegistry.layer(
  Skill.dynamic("pay", { description: "pays", inputSchema: { type: "object" }, execute: () => Effect.succeed("paid") }),
  Skill.dynamic("look", {
    description: "looks",
    effects: "read",
    inputSchema: { type: "object" },
    execute: () => Effect.fail("nothing to see")
  })
)

const conversations: ReadonlyArray<ReadonlyArray<MockProvider.Reply>> = [
  [
    "just talk",
    `<block type="json">{"a":1}</block>`,
    `Let me see. <block type="command" name="pay">{"to":"eva"}</block><block type="command" name="look">x</block>`,
    `<block type="command" name="/skills"></block><block type="command" name="nobody">y</block>`,
    `<block type="plan">{"goal":"g","tasks":[{"id":"t","input":"do it"}]}</block>`,
    `<block type="final">t is done</block>`
  ],
  [
    {
      thinking: "hm",
      text: "I look.",
      calls: [
        { id: "c", name: "pay", input: { to: "ida" } },
        { id: "c", name: "look" }
      ]
    },
    { text: "cut off", reason: "length" },
    {
      calls: [{ id: "d", name: "pay", input: "no object" }],
      usage: { inputTokens: { total: 5 }, outputTokens: { total: 2 } }
    },
    new Provider.ProviderError({ provider: "mock", reason: "overloaded", detail: "busy", status: 529 })
  ]
]

/** A change no run makes itself. */
const moody = (record: RunState.RunRecord): RunState.RunRecord => ({
  ...record,
  delta: { ...record.delta, context: { mood: record.revision } }
})

const isPhase = (event: RunEvent.RunEvent) => "revision" in event

/** What models and the run itself tell; the events of skills are theirs. */
const isOfModel = ({ type }: RunEvent.RunEvent) => !/^(skill|protocol|builtin|task|workflow)_/.test(type)

const timeless = (event: RunEvent.RunEvent) =>
  JSON.parse(
    JSON.stringify(event, (key, value: unknown) => (/^(at|latencyMs|durationMs|revision)$/.test(key) ? 0 : value))
  )
