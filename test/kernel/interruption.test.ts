import { assert, describe, it } from "@effect/vitest"
import { Deferred, Duration, Effect, Fiber, Layer, Ref, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  Kernel,
  MediaStore,
  Model,
  Policy,
  ProtocolRegistry,
  Provider,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider, Scenario } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { follow, play, type Settings, slow, stored, takeUp } from "../support/workflow.ts"
import { act, agent, echo } from "../support/echo.ts"

describe("interruption (R-15)", () => {
  it.effect("of a stream's consumer interrupts the model call", () =>
    Effect.gen(function* () {
      const stopped = yield* Deferred.make<void>()
      const provider: Provider.ProviderShape = {
        name: "endless",
        stream: () => Stream.never.pipe(Stream.ensuring(Deferred.succeed(stopped, undefined)))
      }
      const fiber = yield* Effect.forkChild(Stream.runDrain(Kernel.stream(agent, "go", { provider })))
      yield* TestClock.adjust("1 second")
      yield* Fiber.interrupt(fiber)
      assert.isTrue(yield* Deferred.isDone(stopped))
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("interrupts a skill, and leaves the run resumable at its last commit (DR-21)", () =>
    Effect.gen(function* () {
      const stopped = yield* Ref.make(0)
      const slow = Skill.make("echo", {
        description: "",
        input: Schema.Struct({ text: Schema.String }),
        effects: "read",
        execute: () => Effect.never.pipe(Effect.onInterrupt(() => Ref.update(stopped, (n) => n + 1)))
      })
      yield* Effect.gen(function* () {
        const store = yield* RunStore.RunStore
        const provider = MockProvider.make(act("x"), final("ok"))
        const fiber = yield* Effect.forkChild(Kernel.run(agent, "go", { provider, runId: "r" }))
        yield* TestClock.adjust("1 second")
        yield* Fiber.interrupt(fiber)
        assert.strictEqual(yield* Ref.get(stopped), 1)
        const head = yield* store.head("r")
        assert.deepInclude(head, { _tag: "Some" })
      }).pipe(
        Effect.provide(
          Layer.provideMerge(
            Kernel.layerNoProvider.pipe(
              Layer.provide([SkillRegistry.layer(slow), ProtocolRegistry.layer(), MediaStore.layerMemory])
            ),
            RunStore.layerMemory
          )
        )
      )
    })
  )

  it.effect("happens when the deadline passes (DR-21)", () =>
    Effect.gen(function* () {
      const provider: Provider.ProviderShape = { name: "endless", stream: () => Stream.never }
      const hasty = { ...agent, budget: { deadline: 5000 } }
      const fiber = yield* Effect.forkChild(Effect.flip(Kernel.run(hasty, "go", { runId: "run", provider })))
      yield* TestClock.adjust("5 seconds")
      const error = yield* Fiber.join(fiber)
      assert.deepInclude(error, { _tag: "DeadlineExceeded", runId: "run", deadline: Duration.seconds(5) })
      assert.strictEqual(error.message, "run 'run' exceeded its deadline of 5s")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("happens at the same deadline, however often a run is resumed; pauses do not count (DR-21, R-19)", () => {
    const timed = (deadline: number): Settings => ({ skills: ["pay"], budget: { deadline } })
    const script = { root: [slow(4_000, command("pay")), slow(4_000, command("pay")), final("ok")], tasks: {} }
    const pay = Skill.dynamic("pay", {
      description: "pays",
      inputSchema: { type: "object" },
      execute: () => Effect.succeed("ok")
    })
    const late = { _tag: "DeadlineExceeded", runId: "run", deadline: Duration.seconds(5) } as const
    const asked = Policy.layer(() => Effect.succeed(Policy.confirm("it costs")))
    return Effect.gen(function* () {
      const paused = yield* play(script, { agent: timed(5_000) })
      assert.strictEqual(of(paused.events, "paused").length, 1)
      // Hours later four of its five seconds are over, as they were when it was paused.
      const approvals = [{ callId: "run:t1.0", approved: true }]
      const cut = yield* takeUp(script, { agent: timed(5_000), answers: approvals })
      assert.deepInclude(cut.error, late)
      assert.strictEqual(of(cut.events, "model_started").length, 1)
      const { revision } = yield* stored("run")
      const again = yield* takeUp(script, { agent: timed(5_000) })
      assert.deepInclude(again.error, late)
      assert.deepStrictEqual(of(again.events, "model_started"), [])
      assert.strictEqual((yield* stored("run")).revision, revision + 1)
      const longer = yield* takeUp(script, { agent: timed(24 * 3_600_000) })
      assert.strictEqual(of(longer.events, "paused").length, 1)
    }).pipe(Effect.provide(Layer.provideMerge(kernel(pay), asked)))
  })
})

describe("a deadline", () => {
  it.effect("does not run while a submitted or forked run waits for a worker (DR-21)", () => {
    const script = { root: [slow(1_000, act("a")), slow(1_000, final("ok"))], tasks: {} }
    const lateAfter = (runId: string, deadline: number) => {
      const timed = Agent.make({
        instructions: "You test.",
        model: Model.textOnly,
        skills: "all",
        budget: { deadline }
      })
      return follow(Kernel.resumeStream(timed, runId, { provider: Scenario.scripted(script) }))
    }
    return Effect.gen(function* () {
      yield* play(script)
      for (const within of [2_500, 1_500]) {
        yield* Kernel.submit(agent, "go", { runId: `submitted ${within}`, provider: MockProvider.make() })
        yield* Kernel.fork("run", { revision: 2, runId: `forked ${within}` })
      }
      yield* TestClock.adjust("1 minute")
      for (const kind of ["submitted", "forked"]) {
        assert.strictEqual((yield* lateAfter(`${kind} 2500`, 2_500)).text, "ok")
        const { error } = yield* lateAfter(`${kind} 1500`, 1_500)
        assert.deepInclude(error, { _tag: "DeadlineExceeded", runId: `${kind} 1500` })
      }
    }).pipe(Effect.provide(kernel(echo)))
  })
})
