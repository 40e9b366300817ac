/** The tree over all agents of a run, and the time axis that they share. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  Kernel,
  MediaStore,
  Policy,
  Program,
  ProtocolRegistry,
  Provider,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { RunTree } from "kernai/studio"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { call, native, voices } from "../support/team.ts"

const look = Skill.make("look", {
  description: "Looks",
  effects: "read",
  input: Schema.Struct({}),
  execute: () => Effect.succeed("free")
})
const helper = Agent.make({ name: "helper", description: "Helps", instructions: "", model: "scripted", skills: "all" })
const clerk = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all", agents: [helper] })

const layerOf = () =>
  Kernel.layer.pipe(
    Layer.provide([
      Layer.succeed(
        Provider.Provider,
        MockProvider.make(command("helper", "Look."), command("look", {}), final("Free."), final("Done."))
      ),
      SkillRegistry.layer(look),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory
    ]),
    Layer.provideMerge(RunStore.layerMemory)
  )

const knownRuns = Effect.flatMap(Kernel.run(clerk, "Is a seat free?"), ({ runId }) => readRuns(runId))

const readRuns = Effect.fnUntraced(function* (runId: string) {
  const store = yield* RunStore.RunStore
  const runs = new Map<string, RunTree.Known>()
  for (const line of yield* store.list({ rootRunId: runId })) {
    const records = yield* Stream.runCollect(store.read(line.runId))
    runs.set(line.runId, { line, records, upTo: Infinity })
  }
  return { runId, runs }
})

describe("the tree over all agents", () => {
  it.effect("has a child run with its turns and calls where the call that started it stood", () =>
    Effect.gen(function* () {
      const { runId, runs } = yield* knownRuns
      assert.deepStrictEqual(
        RunTree.linesOf(runId, runs).map(({ kind, label, level, status }) => [level, kind, label, status]),
        [
          [1, "run", "clerk", "completed"],
          [2, "turn", "turn 1 · scripted", "ok"],
          [3, "run", "helper", "completed"],
          [4, "turn", "turn 1 · scripted", "ok"],
          [5, "call", "look", "ok"],
          [4, "turn", "turn 2 · scripted", "ok"],
          [2, "turn", "turn 2 · scripted", "ok"]
        ]
      )
    }).pipe(Effect.provide(layerOf()))
  )

  it.effect("shows a turn that waits for a person, or that was interrupted, in the words of its run", () =>
    Effect.gen(function* () {
      const never = Skill.make("never", {
        description: "Never ends",
        effects: "read",
        input: Schema.Struct({}),
        execute: () => Effect.never
      })
      const lead = native("lead", { skills: [never] })
      const { provider } = voices({ lead: [call("never"), "Done."] })
      const statuses = Effect.map(readRuns("run"), ({ runId, runs }) =>
        RunTree.linesOf(runId, runs).map(({ status }) => status)
      )
      const asking = Policy.layer(() => Effect.succeed(Policy.confirm("it takes long")))
      yield* Effect.flip(Effect.provide(Kernel.run(lead, "go", { runId: "run", provider }), asking))
      assert.deepStrictEqual(yield* statuses, ["waiting", "waiting", "waiting"])

      const answers = [{ callId: "never", approved: true }]
      const running = yield* Effect.forkChild(Kernel.resume(lead, "run", { provider, answers }))
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* statuses, ["running", "running", "running"])
      yield* Fiber.interrupt(running)
      const store = yield* RunStore.RunStore
      yield* store.acquire("run", { workerId: "gone", lease: "1 millis" })
      yield* TestClock.adjust("1 hour")
      assert.deepStrictEqual(yield* statuses, ["interrupted", "interrupted", "interrupted"])
      const { runId, runs } = yield* readRuns("run")
      const open = RunTree.linesOf(runId, runs).flatMap(({ bars }) => bars.filter(({ to }) => to === undefined))
      assert.deepStrictEqual(open, [])
    }).pipe(Effect.provide(layerOf()))
  )

  it.effect("shows a background call as a child run that is not over while the agent continues", () =>
    Effect.gen(function* () {
      const careful = Program.make("careful", { background: true, run: (to) => Effect.as(Program.confirm(to), "paid") })
      const lead = native("lead", { agents: [careful] })
      const { provider } = voices({ lead: [call("careful", { input: "Pay?", background: true }), "I wait.", "Done."] })
      yield* Effect.flip(Kernel.run(lead, "go", { runId: "run", provider }))
      const { runId, runs } = yield* readRuns("run")
      assert.deepStrictEqual(
        RunTree.linesOf(runId, runs).map(({ label, level, status }) => [level, label, status]),
        [
          [1, "lead", "waiting"],
          [2, "turn 1 · lead", "ok"],
          [3, "careful", "waiting"],
          [4, "turn 1 · careful", "waiting"],
          [5, "program_ask", "running"],
          [2, "turn 2 · lead", "ok"]
        ]
      )
    }).pipe(Effect.provide(layerOf()))
  )

  it.effect("names a child whose journal was not read, and shows an earlier revision", () =>
    Effect.gen(function* () {
      const { runId, runs } = yield* knownRuns
      const early = new Map(
        Array.from(
          runs,
          ([id, known]) => [id, id === runId ? { ...known, upTo: 4 } : { ...known, records: [] }] as const
        )
      )
      const lines = RunTree.linesOf(runId, early)
      assert.deepStrictEqual(
        lines.map(({ label, level }) => [level, label]),
        [
          [1, "clerk"],
          [2, "turn 1 · scripted"],
          [2, "helper"]
        ]
      )
    }).pipe(Effect.provide(layerOf()))
  )
})

describe("the time axis", () => {
  it("keeps the proportions of work, and shortens times in which nothing worked", () => {
    const { length, place } = RunTree.axisOf(
      [
        { kind: "run", from: 0, to: 601_000 },
        { kind: "model", from: 0, to: 400 },
        { kind: "skill", from: 400, to: 1_000 },
        { kind: "waiting", from: 1_000, to: 601_000 }
      ],
      601_000
    )
    assert.strictEqual(length, 1_120)
    assert.strictEqual(place(400), 400 / 1_120)
    assert.strictEqual(place(1_000), 1_000 / 1_120)
    assert.strictEqual(place(301_000), 1_060 / 1_120)
    assert.strictEqual(place(601_000), 1)
  })

  it("places what worked at once at one place, and an open time until now", () => {
    const { length, place } = RunTree.axisOf(
      [
        { kind: "model", from: 100, to: 300 },
        { kind: "model", from: 100, to: 200 },
        { kind: "skill", from: 200 }
      ],
      500
    )
    assert.strictEqual(length, 400)
    assert.strictEqual(place(100), 0)
    assert.strictEqual(place(300), 0.5)
    assert.strictEqual(place(500), 1)
  })
})
