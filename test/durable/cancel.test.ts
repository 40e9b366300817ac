import { assert, describe, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, Policy, type RunEvent, RunStore, RunWorker, Skill } from "kernai"
import { MockProvider, Scenario } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"
import { plan } from "../support/workflow.ts"

/** A skill that never ends, and the facts about it. */
const endless = (effects: "read" | "write" = "write") => {
  const entered: Array<string> = []
  const stopped: Array<string> = []
  const skill = Skill.make("wait", {
    description: "Waits",
    input: Schema.Struct({ for: Schema.String }),
    effects,
    execute: (input) =>
      Effect.suspend(() => {
        entered.push(input.for)
        return Effect.onInterrupt(Effect.never, () => Effect.sync(() => stopped.push(input.for)))
      })
  })
  return { skill, entered, stopped }
}

const waits = (what: string) => command("wait", JSON.stringify({ for: what }))

const agentOf = (...skills: ReadonlyArray<Skill.AnySkill>) =>
  Agent.make({ instructions: "", model: "m", skills, taskConcurrency: 8 })

const headOf = (runId: string) =>
  RunStore.RunStore.use((store) => Effect.map(store.head(runId), (head) => Option.getOrThrow(head)))

const statusOf = (runId: string) => Effect.map(headOf(runId), ({ status }) => status.type)

const until = (isTrue: () => boolean) =>
  Effect.repeat(Effect.yieldNow, { until: () => Effect.succeed(isTrue()), times: 10_000 })

describe("Kernel.cancel", () => {
  it.effect("ends a run in the middle of a skill, with its reason and who cancelled it", () => {
    const { entered, skill, stopped } = endless()
    return Effect.gen(function* () {
      const provider = MockProvider.make(waits("Oslo"))
      const running = yield* Effect.forkChild(Kernel.run(agentOf(skill), "?", { provider, runId: "r" }))
      yield* until(() => entered.length > 0)
      yield* Kernel.cancel("r", { reason: "wrong city", by: "Ada" })
      const error = yield* Effect.flip(Fiber.join(running))
      assert.deepInclude({ ...error }, { _tag: "RunCancelled", runId: "r", reason: "wrong city", by: "Ada" })
      assert.strictEqual(error.message, "run 'r' was cancelled by Ada: wrong city")
      assert.deepStrictEqual(stopped, ["Oslo"])
      const { status } = yield* headOf("r")
      assert.deepInclude({ ...status }, { type: "cancelled", reason: "wrong city", by: "Ada" })
      const left = yield* RunStore.inFlight("r")
      assert.deepStrictEqual(
        left.map(({ name }) => name),
        ["wait"]
      )
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("ends a model call, and `run_cancelled` is the last event of the stream, which does not fail", () =>
    Effect.gen(function* () {
      const provider = Scenario.scripted({ root: [{ text: final("late"), delay: 60_000 }] })
      const events: Array<string> = []
      const running = yield* Effect.forkChild(
        Stream.runForEach(Kernel.stream(agentOf(), "?", { provider, runId: "r" }), ({ type }) =>
          Effect.sync(() => events.push(type))
        )
      )
      yield* until(() => events.includes("messages_sent"))
      yield* Kernel.cancel("r")
      yield* Fiber.join(running)
      assert.strictEqual(events.at(-1), "run_cancelled")
      assert.notInclude(events, "model_completed")
      assert.strictEqual(yield* statusOf("r"), "cancelled")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("lists the calls in flight in its event, and whether they write", () => {
    const { entered, skill } = endless()
    return Effect.gen(function* () {
      const provider = MockProvider.make(waits("Oslo"))
      const running = yield* Effect.forkChild(Kernel.run(agentOf(skill), "?", { provider, runId: "r" }))
      yield* until(() => entered.length > 0)
      yield* Kernel.cancel("r")
      yield* Fiber.await(running)
      const store = yield* RunStore.RunStore
      const last = (yield* Stream.runCollect(store.read("r"))).at(-1)?.events[0]
      assert.deepStrictEqual(last?.type === "run_cancelled" ? last.inFlight : undefined, [
        { callId: "r:t1.0", name: "wait", effects: "write" }
      ])
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("reports by name the skills that do not stop, and only those", () => {
    const { entered, skill } = endless("read")
    const stubborn = Skill.make("stubborn", {
      description: "Never stops",
      input: Schema.Struct({}),
      execute: () => Effect.uninterruptible(Effect.never)
    })
    return Effect.gen(function* () {
      const provider = MockProvider.make(waits("Oslo") + command("stubborn"))
      const agent = Agent.make({ instructions: "", model: "m", skills: [skill, stubborn], concurrency: 2 })
      const events: Array<RunEvent.RunEvent> = []
      const running = yield* Effect.forkChild(
        Stream.runForEach(Kernel.stream(agent, "?", { provider, runId: "r" }), (event) =>
          Effect.sync(() => events.push(event))
        )
      )
      yield* until(() => entered.length > 0)
      yield* TestClock.adjust("1 second")
      yield* Kernel.cancel("r")
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(running)
      const leaked = events.flatMap((event) => (event.type === "call_leaked" ? [event.name] : []))
      assert.deepStrictEqual(leaked, ["stubborn"])
      const last = events.at(-1)
      assert.deepStrictEqual(last?.type === "run_cancelled" ? last.inFlight : undefined, [
        { callId: "r:t1.0", name: "wait", effects: "read" },
        { callId: "r:t1.1", name: "stubborn", effects: "write" }
      ])
    }).pipe(Effect.provide(kernel()))
  })

  it.effect("ends the child runs with their root", () => {
    const { entered, skill, stopped } = endless()
    return Effect.gen(function* () {
      const provider = MockProvider.make().onCall(({ messages }) =>
        messages.length > 1 && JSON.stringify(messages.at(-1)).includes("do ")
          ? waits(JSON.stringify(messages.at(-1)).includes("do a") ? "a" : "b")
          : plan(["a", "b"])
      )
      const running = yield* Effect.forkChild(Kernel.run(agentOf(skill), "go", { provider, runId: "r" }))
      yield* until(() => entered.length === 2)
      yield* Kernel.cancel("r", { reason: "enough" })
      assert.strictEqual((yield* Effect.flip(Fiber.join(running)))._tag, "RunCancelled")
      assert.sameMembers(stopped, ["a", "b"])
      const store = yield* RunStore.RunStore
      const statuses = (yield* store.list({ rootRunId: "r" })).map(({ status }) => status.type)
      assert.deepStrictEqual(statuses, ["cancelled", "cancelled", "cancelled"])
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("cancels a run that no process runs at once, and no worker takes it up", () =>
    Effect.gen(function* () {
      const agent = agentOf()
      const provider = MockProvider.make(final("done"))
      yield* Kernel.submit(agent, "?", { provider, runId: "r" })
      assert.strictEqual(yield* statusOf("r"), "queued")
      yield* Kernel.cancel("r")
      assert.strictEqual(yield* statusOf("r"), "cancelled")
      assert.strictEqual(yield* RunWorker.runOnce({ agents: [agent], resume: () => ({ provider }) }), 0)
      assert.strictEqual(provider.callCount, 0)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("leaves a cancelled run resumable on purpose: it continues where it stood", () => {
    const { entered, skill } = endless("read")
    return Effect.gen(function* () {
      const agent = agentOf(skill)
      const first = yield* Effect.forkChild(
        Kernel.run(agent, "?", { provider: MockProvider.make(waits("Oslo")), runId: "r" })
      )
      yield* until(() => entered.length > 0)
      yield* Kernel.cancel("r")
      yield* Fiber.await(first)
      const recover = { "r:t1.0": { resolve: { output: [] } } }
      const result = yield* Kernel.resume(agent, "r", { provider: MockProvider.make(final("done")), recover })
      assert.strictEqual(result.text, "done")
      assert.strictEqual(yield* statusOf("r"), "completed")
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("does not let a resume repeat a write call that was in flight", () => {
    const { entered, skill } = endless()
    return Effect.gen(function* () {
      const agent = agentOf(skill)
      const first = yield* Effect.forkChild(
        Kernel.run(agent, "?", { provider: MockProvider.make(waits("Oslo")), runId: "r" })
      )
      yield* until(() => entered.length > 0)
      yield* Kernel.cancel("r")
      yield* Fiber.await(first)
      const error = yield* Effect.flip(Kernel.resume(agent, "r", { provider: MockProvider.make(final("done")) }))
      assert.deepInclude({ ...error }, { _tag: "InFlightToolCalls", callIds: ["r:t1.0"] })
      assert.deepStrictEqual(entered, ["Oslo"])
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("withdraws the questions of a run that waits; a resume asks them again", () => {
    const { skill } = endless()
    const confirm = Policy.layer((call) => Effect.succeed(Policy.confirm(`${call.name} costs`)))
    return Effect.gen(function* () {
      const agent = agentOf(skill)
      const provider = MockProvider.make(waits("Oslo"))
      yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
      assert.strictEqual(yield* statusOf("r"), "waiting")
      yield* Kernel.cancel("r", { by: "Ada" })
      assert.deepStrictEqual(yield* Kernel.questions("r"), [])
      const refused = yield* Effect.flip(Kernel.answer("r", [{ callId: "r:t1.0", approved: true }]))
      assert.deepInclude({ ...refused }, { _tag: "RunCancelled", by: "Ada" })
      assert.strictEqual((yield* Effect.flip(Kernel.resume(agent, "r", { provider })))._tag, "RunPaused")
      assert.strictEqual((yield* Kernel.questions("r")).length, 1)
    }).pipe(Effect.provide([confirm, kernel(skill)]))
  })

  it.effect("and `Kernel.answer` at the same time lose nothing: one of them comes first", () => {
    const { skill } = endless()
    const confirm = Policy.layer((call) => Effect.succeed(Policy.confirm(`${call.name} costs`)))
    return Effect.gen(function* () {
      const provider = MockProvider.make(waits("Oslo"))
      yield* Effect.flip(Kernel.run(agentOf(skill), "?", { provider, runId: "r" }))
      const [answered, cancelled] = yield* Effect.all(
        [Effect.exit(Kernel.answer("r", [{ callId: "r:t1.0", approved: true }])), Effect.exit(Kernel.cancel("r"))],
        { concurrency: 2 }
      )
      assert.isTrue(Exit.isSuccess(cancelled))
      assert.strictEqual(yield* statusOf("r"), "cancelled")
      const store = yield* RunStore.RunStore
      const { questions } = Option.getOrThrow(yield* store.load("r"))
      if (Exit.isSuccess(answered)) assert.isTrue(questions[0]?.answer?.approved)
      else {
        const tag = Option.getOrUndefined(Cause.findErrorOption(answered.cause))?._tag ?? ""
        assert.include(["RunCancelled", "ConcurrentAppendError"], tag)
        assert.isUndefined(questions[0]?.answer)
      }
    }).pipe(Effect.provide([confirm, kernel(skill)]))
  })

  it.effect("fails for an unknown run, a completed one and a child run, and may be repeated", () => {
    const { entered, skill } = endless()
    return Effect.gen(function* () {
      const agent = agentOf(skill)
      assert.strictEqual((yield* Effect.flip(Kernel.cancel("unknown")))._tag, "RunNotFound")
      yield* Kernel.run(agent, "?", { provider: MockProvider.make(final("done")), runId: "done" })
      assert.strictEqual((yield* Effect.flip(Kernel.cancel("done")))._tag, "RunAlreadyCompleted")
      assert.strictEqual(yield* statusOf("done"), "completed")
      const provider = MockProvider.make(plan(["a"]), waits("a"))
      const running = yield* Effect.forkChild(Kernel.run(agent, "go", { provider, runId: "r" }))
      yield* until(() => entered.length > 0)
      const part = yield* Effect.flip(Kernel.cancel("r:t1/a"))
      assert.deepInclude({ ...part }, { _tag: "NotRootRun", runId: "r:t1/a", rootRunId: "r" })
      yield* Kernel.cancel("r", { by: "Ada" })
      yield* Fiber.await(running)
      const { revision, status } = yield* headOf("r")
      yield* Kernel.cancel("r", { by: "Bob" })
      assert.deepStrictEqual([(yield* headOf("r")).revision, (yield* headOf("r")).status], [revision, status])
      assert.deepInclude({ ...status }, { by: "Ada" })
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("cancels a failed run, so that no worker tries it again", () =>
    Effect.gen(function* () {
      const agent = agentOf()
      const provider = MockProvider.make().failOnStep(0)
      yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
      assert.strictEqual(yield* statusOf("r"), "failed")
      yield* Kernel.cancel("r")
      assert.strictEqual(yield* statusOf("r"), "cancelled")
      assert.strictEqual(yield* RunWorker.runOnce({ agents: [agent], retries: () => true }), 0)
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is not delayed by a run that stores records all the time", () => {
    const quick = Skill.make("quick", {
      description: "Is quick",
      input: Schema.Struct({}),
      execute: () => Effect.as(Effect.yieldNow, "again")
    })
    return Effect.gen(function* () {
      const provider = MockProvider.make().onCall(() => command("quick", "{}"))
      const agent = Agent.make({ instructions: "", model: "m", skills: [quick], maxSteps: 1_000_000 })
      const running = yield* Effect.forkChild(Kernel.run(agent, "?", { provider, runId: "r" }))
      yield* until(() => provider.callCount > 10)
      yield* Kernel.cancel("r")
      assert.strictEqual((yield* Effect.flip(Fiber.join(running)))._tag, "RunCancelled")
    }).pipe(Effect.provide(kernel(quick)))
  })

  it.effect("differs from interrupting the fiber of a run, which leaves the run resumable", () => {
    const { entered, skill, stopped } = endless()
    return Effect.gen(function* () {
      const provider = MockProvider.make(waits("Oslo"))
      const running = yield* Effect.forkChild(Kernel.run(agentOf(skill), "?", { provider, runId: "r" }))
      yield* until(() => entered.length > 0)
      yield* Fiber.interrupt(running)
      assert.deepStrictEqual(stopped, ["Oslo"])
      assert.strictEqual(yield* statusOf("r"), "running")
    }).pipe(Effect.provide(kernel(skill)))
  })
})

describe("RunOptions.signal", () => {
  it.effect("cancels the run when it is aborted, and keeps its reason", () => {
    const { entered, skill, stopped } = endless()
    return Effect.gen(function* () {
      const controller = new AbortController()
      const provider = MockProvider.make(waits("Oslo"))
      const running = yield* Effect.forkChild(
        Kernel.run(agentOf(skill), "?", { provider, runId: "r", signal: controller.signal })
      )
      yield* until(() => entered.length > 0)
      controller.abort(new Error("the page was closed"))
      const error = yield* Effect.flip(Fiber.join(running))
      assert.deepInclude({ ...error }, { _tag: "RunCancelled", reason: "the page was closed", by: "signal" })
      assert.deepStrictEqual(stopped, ["Oslo"])
      assert.strictEqual(yield* statusOf("r"), "cancelled")
    }).pipe(Effect.provide(kernel(skill)))
  })

  it.effect("that is aborted before the run starts prevents every model call", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(final("done"))
      const signal = AbortSignal.abort("too late")
      const error = yield* Effect.flip(Kernel.run(agentOf(), "?", { provider, runId: "r", signal }))
      assert.deepInclude({ ...error }, { _tag: "RunCancelled", reason: "too late" })
      assert.strictEqual(provider.callCount, 0)
      assert.strictEqual(yield* statusOf("r"), "cancelled")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("that is aborted after the run changes nothing, and keeps no listener", () =>
    Effect.gen(function* () {
      const controller = new AbortController()
      const provider = MockProvider.make(final("done"))
      yield* Kernel.run(agentOf(), "?", { provider, runId: "r", signal: controller.signal })
      controller.abort()
      yield* TestClock.adjust("1 minute")
      assert.strictEqual(yield* statusOf("r"), "completed")
    }).pipe(Effect.provide(kernel()))
  )
})
