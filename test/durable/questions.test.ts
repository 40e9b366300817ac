import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import {
  Agent,
  Hooks,
  Kernel,
  KernelError,
  MediaStore,
  Message,
  Policy,
  Protocol,
  ProtocolRegistry,
  RunStore,
  RunWorker,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider, Replay, Scenario } from "kernai/testing"
import { CurrentClaim } from "../../src/internal/run/claim.ts"
import { command, final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"
import { agent as workflows, plan, play, slow, stored, takeUp } from "../support/workflow.ts"

const send = Skill.make("send", {
  description: "Sends a letter",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed(`sent to ${to}`)
})
const entered: Array<string> = []
const secret = Skill.make("hidden", {
  description: "Is not for this agent",
  input: Schema.Struct({}),
  execute: () => Effect.sync(() => entered.push("hidden"))
})
const agent = Agent.make({ instructions: "", model: "m", skills: [send] })
const careful = Policy.layer((call) => Effect.succeed(Policy.confirm(`${call.name} costs`)))
const sends = (to: string) => `<block type="command" name="send">{"to": "${to}"}</block>`

/** Writes the letters, each in a task of its own. */
const letters = () => {
  const tasks = ["Oslo", "Rome"].map((to) => ({ id: to, input: `write to ${to}`, parallel: true }))
  const plan = JSON.stringify({ goal: "letters", strategy: "parallel", tasks })
  return MockProvider.make().onCall(({ messages }) => {
    const [asked = "", ...rest] = messages.filter(({ role }) => role === "user").map(Message.text)
    if (rest.length > 0) return "<final>done</final>"
    return asked === "go" ? `<block type="plan">${plan}</block>` : sends(asked.replace("write to ", ""))
  })
}

describe("Kernel.questions", () => {
  it.effect(
    "returns the open questions of a run until they are answered, with all a person needs to decide (DR-22)",
    () =>
      Effect.gen(function* () {
        const provider = MockProvider.make(sends("Oslo") + sends("Rome"), "<final>done</final>")
        assert.strictEqual((yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" })))._tag, "RunPaused")
        const open = yield* Kernel.questions("r")
        assert.deepStrictEqual(open, [
          {
            callId: "r:t1.0",
            name: "send",
            input: { to: "Oslo" },
            reason: "send costs",
            runId: "r",
            agents: ["agent"]
          },
          { callId: "r:t1.1", name: "send", input: { to: "Rome" }, reason: "send costs", runId: "r", agents: ["agent"] }
        ])
        yield* Kernel.answer("r", [{ callId: "r:t1.0", approved: true }], { workerId: "ada" })
        const records = yield* Stream.runCollect((yield* RunStore.RunStore).read("r"))
        assert.match(records.at(-1)?.workerId ?? "", /^ada#./)
        assert.deepStrictEqual(yield* Kernel.questions("r"), open.slice(1))
        const approvals = [{ callId: "r:t1.1", approved: false }]
        assert.strictEqual((yield* Kernel.resume(agent, "r", { provider, answers: approvals })).text, "done")
        assert.deepStrictEqual(yield* Kernel.questions("r"), [])
        // A run that has ended stays as it is.
        const ended = yield* stored("r")
        yield* Kernel.answer("r", [])
        assert.deepStrictEqual(yield* stored("r"), ended)
        assert.strictEqual((yield* Effect.flip(Kernel.questions("none")))._tag, "RunNotFound")
      }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("returns nothing for a run that has ended, even if one of its tasks waits (DR-10, DR-22)", () =>
    Effect.gen(function* () {
      const enough = Hooks.layer({
        onToolCallCompleted: ({ result }) =>
          Effect.succeed(result.name === "quick" ? Hooks.finish("enough") : undefined)
      })
      const script = {
        root: [plan(["quick", "late"]), final("done")],
        tasks: { quick: [slow(50, final("Q"))], late: [slow(100, command("send", { to: "Oslo" })), final("L")] }
      }
      const { error } = yield* Effect.provide(play(script), enough)
      assert.strictEqual(error?._tag, "RunFinished")
      const callId = "run:t1/late:t1.0"
      assert.strictEqual((yield* Kernel.questions("run:t1/late"))[0]?.callId, callId)
      assert.deepStrictEqual(yield* Kernel.questions("run"), [])
      const refused = yield* Effect.flip(Kernel.answer("run", [{ callId, approved: true }]))
      assert.strictEqual(refused._tag, "QuestionNotFound")
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("asks no question about a skill that cannot run, and tells the model why (AC-18, DR-22)", () =>
    Effect.gen(function* () {
      const hidden = `<block type="command" name="hidden">{}</block>`
      const nowhere = `<block type="command" name="nowhere">{}</block>`
      const unfit = `<block type="command" name="send">{"too": "Oslo"}</block>`
      const provider = MockProvider.make(hidden + nowhere + unfit, "<final>done</final>")
      assert.strictEqual((yield* Kernel.run(agent, "?", { provider, runId: "r" })).text, "done")
      const read = provider.calls.at(-1)?.messages.map(Message.text).join("\n") ?? ""
      assert.include(read, "Skill 'hidden' is not allowed")
      assert.include(read, "Skill 'nowhere' not found")
      assert.include(read, "Missing required input: to for skill 'send'")
      assert.deepStrictEqual(entered, [])
    }).pipe(Effect.provide([kernel(send, secret), careful]))
  )

  it.effect("checks calls of the model with the policy, not invalid calls or builtins (AC-19)", () =>
    Effect.gen(function* () {
      const asked: Array<unknown> = []
      const policy = Policy.layer(({ effects, kind, name }) => {
        asked.push([kind, name, effects])
        return Effect.succeed(name === "look" ? Policy.denied("not now") : Policy.allowed)
      })
      const look = Skill.make("look", {
        description: "Looks",
        input: Schema.Struct({}),
        effects: "read",
        execute: () => Effect.succeed("seen")
      })
      const bible = Protocol.make("bible", {
        effects: "idempotent",
        handle: () => Effect.succeed("In the beginning")
      })
      const nameless = `<block type="command">{}</block>`
      const own = `<block type="command" name="/skills"></block>`
      const calls = `${nameless}${own}${sends("Oslo")}<block type="command" name="look">{}</block><block type="bible"></block>`
      const provider = MockProvider.make(calls, "<final>done</final>")
      const careful = Kernel.run({ ...agent, skills: "all" }, "?", { provider, runId: "r" }).pipe(
        Effect.provide([
          Kernel.layerNoProvider.pipe(
            Layer.provide([SkillRegistry.layer(send, look), ProtocolRegistry.layer(bible)]),
            Layer.provide([MediaStore.layerMemory, RunStore.layerMemory])
          ),
          policy
        ])
      )
      assert.strictEqual((yield* careful).text, "done")
      assert.deepStrictEqual(asked, [
        ["skill", "send", "write"],
        ["skill", "look", "read"],
        ["protocol", "bible", "idempotent"]
      ])
    })
  )

  it.effect("returns a fork's own calls, which are answered by their own ids (DR-22, R-24)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(sends("Oslo"), "<final>done</final>")
      yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
      yield* Kernel.fork("r", { runId: "f" })
      const callId = "f:t1.0"
      assert.deepStrictEqual(
        (yield* Kernel.questions("f")).map((open) => open.callId),
        [callId]
      )
      const { status } = yield* stored("f")
      assert.deepInclude(status, {
        metadata: {
          callIds: [callId],
          questions: [{ callId, name: "send", input: { to: "Oslo" }, reason: "send costs" }]
        }
      })
      const resumed = Kernel.resume(agent, "f", { provider, answers: [{ callId, approved: true }] })
      assert.strictEqual((yield* resumed).text, "done")
      yield* Kernel.fork("f", { runId: "g" })
      const again = yield* stored("g")
      assert.notInclude(JSON.stringify({ ...again, forkedFrom: undefined }), callId)
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("returns the questions of a workflow's tasks, which are answered through the root run (DR-22)", () =>
    Effect.gen(function* () {
      const provider = letters()
      yield* Effect.flip(Kernel.run(agent, "go", { provider, runId: "r" }))
      const open = yield* Kernel.questions("r")
      assert.deepStrictEqual(
        open.map(({ input }) => input),
        [{ to: "Oslo" }, { to: "Rome" }]
      )
      const approvals = open.map(({ callId }) => ({ callId, approved: true }))
      assert.strictEqual((yield* Kernel.resume(agent, "r", { provider, answers: approvals })).text, "done")
      assert.deepStrictEqual(yield* Kernel.questions("r"), [])
    }).pipe(Effect.provide([kernel(send), careful]))
  )
})

describe("an answer to a task", () => {
  it.effect("survives a crash of its process before the task receives it, without asking again (DR-7)", () =>
    Effect.gen(function* () {
      const provider = letters()
      yield* Effect.flip(Kernel.run(agent, "go", { provider, runId: "r" }))
      const [oslo, rome] = (yield* Kernel.questions("r")).map(({ callId }) => callId)
      const approvals = [
        { callId: oslo ?? "", approved: true },
        { callId: rome ?? "", approved: false, reason: "too far" }
      ]
      const stop = () => new KernelError.AgentCrashError({ runId: "r", agentId: "agent" })
      const resumed = Kernel.resume(agent, "r", { provider, answers: approvals })
      yield* Effect.flip(Effect.provideService(resumed, CurrentClaim, { stop }))
      assert.strictEqual((yield* Kernel.resume(agent, "r", { provider })).text, "done")
      const heard = provider.calls.flatMap(({ messages }) => messages.map(Message.text)).join()
      assert.include(heard, "sent to Oslo")
      assert.include(heard, "too far")
      assert.notInclude(heard, "sent to Rome")
    }).pipe(Effect.provide([kernel(send), careful]))
  )
})

describe("Kernel.answer", () => {
  const script = {
    root: [plan(["a", "b"]), final("done")],
    tasks: { a: [command("send", { to: "Oslo" }), final("A")], b: [command("send", { to: "Rome" }), final("B")] }
  }
  const answers = ["a", "b"].map((id) => ({ callId: `run:t1/${id}:t1.0`, approved: true, by: "Ada" }))
  const [toA] = answers

  type Appending = ReturnType<RunStore.RunStoreShape["append"]>

  /** Answers on a store whose second append is made another, if at all. */
  const answerWith = (second: (appending: Appending) => Appending) =>
    Effect.gen(function* () {
      const store = yield* RunStore.RunStore
      let appends = 0
      const append: RunStore.RunStoreShape["append"] = (records, state) =>
        Effect.suspend(() => (++appends === 2 ? second(store.append(records, state)) : store.append(records, state)))
      return yield* Effect.provideService(Kernel.answer("run", answers), RunStore.RunStore, { ...store, append })
    })

  const failure = (reason: RunStore.StoreError["reason"]) => () =>
    Effect.fail(new RunStore.StoreError({ operation: "append", reason, detail: "busy" }))

  const goesOn = Effect.gen(function* () {
    assert.deepStrictEqual(yield* Kernel.questions("run"), [])
    assert.strictEqual((yield* takeUp(script)).text, "done")
    assert.strictEqual((yield* Replay.run(workflows(), "run")).state.status.type, "completed")
  })

  it.effect("is recorded for a run whose process died while resuming, and offers the run (R-1, DR-22)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(sends("Oslo"), "<final>done</final>")
      const { revision } = yield* Effect.andThen(
        Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" })),
        stored("r")
      )
      assert.strictEqual((yield* Effect.flip(Kernel.resume(agent, "r", { provider })))._tag, "RunPaused")
      yield* Kernel.fork("r", { revision: revision + 1, runId: "cut" })
      assert.strictEqual((yield* stored("cut")).status.type, "running")
      yield* Kernel.answer("cut", [{ callId: "cut:t1.0", approved: true }])
      assert.deepStrictEqual(yield* Kernel.questions("cut"), [])
      const records = yield* Stream.runCollect((yield* RunStore.RunStore).read("cut"))
      assert.match(records.at(-1)?.workerId ?? "", /^local#./)
      const { lease } = Option.getOrThrow(yield* (yield* RunStore.RunStore).head("cut"))
      assert.strictEqual(lease?.expiresAt, 0)
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("is recorded as a whole despite a transient store failure (R-6, DR-22)", () =>
    Effect.gen(function* () {
      yield* play(script)
      const answering = yield* Effect.forkChild(answerWith(failure("unavailable")))
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(answering)
      yield* goesOn
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("is recorded as a whole despite interruption of its caller (DR-7)", () =>
    Effect.gen(function* () {
      yield* play(script)
      const answering = yield* Effect.forkChild(answerWith((appending) => Effect.delay(appending, 100)))
      yield* TestClock.adjust(50)
      const interrupting = yield* Effect.forkChild(Fiber.interrupt(answering))
      yield* TestClock.adjust(100)
      yield* Fiber.join(interrupting)
      const { lease } = Option.getOrThrow(yield* (yield* RunStore.RunStore).head("run"))
      assert.strictEqual(lease?.expiresAt, 0)
      yield* goesOn
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("keeps the run locked until all of it is recorded, however slow the store (DR-6)", () =>
    Effect.gen(function* () {
      yield* play(script)
      const store = yield* RunStore.RunStore
      const taking = store.acquire("run", { workerId: "other", lease: "1 second" })
      const answering = yield* Effect.forkChild(answerWith((appending) => Effect.delay(appending, 9_000)))
      yield* TestClock.adjust(8_000)
      assert.strictEqual((yield* Effect.flip(taking))._tag, "RunBusy")
      yield* TestClock.adjust(1_000)
      yield* Fiber.join(answering)
      yield* taking
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("can be repeated unchanged when it was recorded only in part (R-1, R-25)", () =>
    Effect.gen(function* () {
      yield* play(script)
      // The tasks are told in the reverse order of the plan: b knows, a does not.
      assert.strictEqual((yield* Effect.flip(answerWith(failure("corrupt"))))._tag, "StoreError")
      assert.deepStrictEqual(
        (yield* Kernel.questions("run")).map(({ callId }) => callId),
        [toA?.callId]
      )
      const other = answers.map((answer) => ({ ...answer, approved: false }))
      assert.strictEqual((yield* Effect.flip(Kernel.answer("run", other)))._tag, "QuestionNotFound")
      yield* Kernel.answer("run", answers)
      yield* goesOn
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("fails without blocking when the store does not confirm the lease (R-6)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(sends("Oslo"), "<final>done</final>")
      yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
      const store = yield* RunStore.RunStore
      const answering = Effect.provideService(
        Kernel.answer("r", [{ callId: "r:t1.0", approved: true }]),
        RunStore.RunStore,
        { ...store, acquire: () => Effect.never }
      )
      const failing = yield* Effect.forkDetach(Effect.flip(answering))
      yield* TestClock.adjust("2 minutes")
      const exit = failing.pollUnsafe()
      assert.isDefined(exit)
      const error = yield* exit ?? Effect.die("unknown")
      assert.strictEqual(error._tag === "StoreError" ? error.reason : error._tag, "timeout")
      assert.strictEqual((yield* Kernel.questions("r")).length, 1)
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("releases a run it acquired although the store never confirmed it (R-6, DR-22)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(sends("Oslo"), "<final>done</final>")
      yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
      const store = yield* RunStore.RunStore
      const lost = new RunStore.StoreError({ operation: "acquire", reason: "unavailable", detail: "no answer" })
      const failsToAnswer = Effect.gen(function* () {
        let asked = 0
        const answering = Effect.provideService(
          Kernel.answer("r", [{ callId: "r:t1.0", approved: true }]),
          RunStore.RunStore,
          // What gives it back is heard again.
          {
            ...store,
            acquire: (...lease) =>
              Effect.andThen(store.acquire(...lease), asked++ < 3 ? Effect.fail(lost) : Effect.void)
          }
        )
        const failing = yield* Effect.forkChild(Effect.flip(answering))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* Fiber.join(failing), lost)
        return Option.getOrThrow(yield* store.head("r")).lease
      })
      assert.isUndefined(yield* failsToAnswer)
      // What was offered before stays so, and is free at once.
      yield* store.acquire("r", { workerId: "gone", lease: 0 })
      assert.strictEqual((yield* failsToAnswer)?.isLive, false)
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect(
    "offers a run whose answer is stored although the store never confirmed it, so a worker continues it (R-6)",
    () =>
      Effect.gen(function* () {
        const provider = MockProvider.make(sends("Oslo"), "<final>done</final>")
        yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
        const store = yield* RunStore.RunStore
        const lost = new RunStore.StoreError({ operation: "append", reason: "unavailable", detail: "no answer" })
        const answering = Effect.provideService(
          Kernel.answer("r", [{ callId: "r:t1.0", approved: true }]),
          RunStore.RunStore,
          { ...store, append: (records, state) => Effect.andThen(store.append(records, state), Effect.fail(lost)) }
        )
        const failing = yield* Effect.forkChild(Effect.flip(answering))
        yield* TestClock.adjust("1 second")
        assert.deepStrictEqual(yield* Fiber.join(failing), lost)
        assert.strictEqual(yield* RunWorker.runOnce({ agents: [agent], resume: () => ({ provider }) }), 1)
        assert.strictEqual((yield* stored("r")).status.type, "completed")
      }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("offers nothing when the run was resumed elsewhere first (DR-6)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(sends("Oslo"), "<final>done</final>")
      yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
      const store = yield* RunStore.RunStore
      const late = new RunStore.ConcurrentAppendError({ runId: "r", expected: 7, actual: 8 })
      const answering = Effect.provideService(
        Kernel.answer("r", [{ callId: "r:t1.0", approved: true }]),
        RunStore.RunStore,
        { ...store, append: () => Effect.fail(late) }
      )
      assert.deepStrictEqual(yield* Effect.flip(answering), late)
      assert.isUndefined(Option.getOrThrow(yield* store.head("r")).lease)
      // What was offered before stays so: nobody would come for it else.
      yield* store.acquire("r", { workerId: "gone", lease: 0 })
      assert.deepStrictEqual(yield* Effect.flip(answering), late)
      assert.isDefined(Option.getOrThrow(yield* store.head("r")).lease)
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("keeps a run offered that was answered concurrently (DR-22)", () =>
    Effect.gen(function* () {
      const provider = MockProvider.make(sends("Oslo"), "<final>done</final>")
      yield* Effect.flip(Kernel.run(agent, "?", { provider, runId: "r" }))
      const store = yield* RunStore.RunStore
      const answering = Kernel.answer("r", [{ callId: "r:t1.0", approved: true }])
      const first = Effect.orDie(Effect.provideService(answering, RunStore.RunStore, store))
      const second = Effect.provideService(answering, RunStore.RunStore, {
        ...store,
        acquire: (runId, claim) => Effect.andThen(claim.lease === 0 ? Effect.void : first, store.acquire(runId, claim))
      })
      assert.strictEqual((yield* Effect.flip(second))._tag, "ConcurrentAppendError")
      assert.strictEqual(yield* RunWorker.runOnce({ agents: [agent], resume: () => ({ provider }) }), 1)
      assert.strictEqual((yield* stored("r")).status.type, "completed")
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("does not disturb a run with other running tasks, which then finds the answer (DR-6, DR-22)", () =>
    Effect.gen(function* () {
      const provider = Scenario.scripted({ ...script, tasks: { ...script.tasks, b: [slow(10_000, final("B"))] } })
      const running = yield* Effect.forkChild(Effect.flip(Kernel.run(workflows(), "go", { provider, runId: "run" })))
      yield* TestClock.adjust("1 second")
      assert.strictEqual((yield* stored("run")).status.type, "running")
      yield* Kernel.answer("run", answers.slice(0, 1))
      // The same once more, and nothing at all, do as little.
      yield* Kernel.answer("run", answers.slice(0, 1))
      yield* Kernel.answer("run", [])
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(running))._tag, "RunPaused")
      yield* goesOn
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("is refused while a worker has the run, and its tasks receive nothing (DR-6, DR-22)", () =>
    Effect.gen(function* () {
      const provider = Scenario.scripted({ ...script, tasks: { ...script.tasks, b: [slow(10_000, final("B"))] } })
      const running = yield* Effect.forkChild(Effect.flip(Kernel.run(workflows(), "go", { provider, runId: "run" })))
      // Before the run has a lease of its own.
      yield* TestClock.adjust("50 millis")
      yield* (yield* RunStore.RunStore).acquire("run", { workerId: "other", lease: "1 minute" })
      assert.strictEqual((yield* Effect.flip(Kernel.answer("run", answers.slice(0, 1))))._tag, "RunBusy")
      assert.strictEqual((yield* Kernel.questions("run"))[0]?.callId, toA?.callId)
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(running)
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("reaches a task that a resumed run has not started yet (DR-22)", () =>
    Effect.gen(function* () {
      const provider = Scenario.scripted({ ...script, tasks: { ...script.tasks, a: [slow(10_000, final("A"))] } })
      const one = workflows({ taskConcurrency: 1 })
      yield* play(script)
      const resuming = yield* Effect.forkChild(Kernel.resume(one, "run", { provider, answers: answers.slice(0, 1) }))
      yield* TestClock.adjust("1 second")
      yield* Kernel.answer("run", answers.slice(1))
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual((yield* Fiber.join(resuming)).text, "done")
      assert.strictEqual((yield* Replay.run(one, "run")).state.status.type, "completed")
    }).pipe(Effect.provide([kernel(send), careful]))
  )

  it.effect("that was recorded only in part is accepted by a resume, too (R-1, R-25)", () =>
    Effect.gen(function* () {
      yield* play(script)
      yield* Effect.flip(answerWith(failure("corrupt")))
      assert.strictEqual((yield* takeUp(script, { answers: answers })).text, "done")
      assert.strictEqual((yield* Replay.run(workflows(), "run")).state.status.type, "completed")
    }).pipe(Effect.provide([kernel(send), careful]))
  )
})
