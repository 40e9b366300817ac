/** Agents that call others in the background. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Kernel, Program, type RunEvent, RunStore, Skill } from "kernai"
import { Replay } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"
import { call, lastAsked, native, slowly, voices } from "../support/team.ts"
import { stored } from "../support/workflow.ts"

/** A program that takes an hour, and pays at its end. */
let paid: Array<string> = []
const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.sync(() => `paid ${paid.push(to)}`)
})
const worker = Program.make("worker", {
  description: "Works for a while.",
  background: true,
  skills: [pay],
  run: (to) =>
    Effect.gen(function* () {
      yield* Program.sleep("30 seconds")
      return String(yield* Program.call(pay, { to }))
    })
})

const lead = native("lead", { agents: [worker] })
const work = (input: string, id = "call") => call("worker", { input, background: true }, id)
const resultOf = (id: string, text: string, type = "result") =>
  `<block type="${type}" name="worker" id="${id}">${text}</block>`

/** Runs an effect whose calls take their time. */
const inTime = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    paid = []
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust("5 minutes")
    return yield* Fiber.join(fiber)
  })

describe("an agent that calls another in the background", () => {
  it.effect("has an id at once, continues, and receives the answer as a message of a later turn (tools)", () =>
    Effect.gen(function* () {
      const { provider, requests } = voices({ lead: [work("Ada", "call-7"), "It works.", "It is done."] })
      const result = yield* inTime(Kernel.run(lead, "Pay Ada", { runId: "run", provider }))
      assert.strictEqual(result.text, "It is done.")
      const asked = lastAsked(requests, "lead")
      assert.include(asked[1], "in the background as 't1/call-7'")
      assert.strictEqual(asked.at(-1), resultOf("t1/call-7", "paid 1"))
      const state = yield* stored("run")
      assert.deepStrictEqual([state.background, result.turns, paid], [undefined, 3, ["Ada"]])
      assert.strictEqual((yield* stored("run:t1/call-7")).parentRunId, "run")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("does so in blocks, and hears the end of each of several calls on its own", () =>
    Effect.gen(function* () {
      const blocks = native("lead", { agents: [worker], dialect: "blocks" })
      const one = command("worker", { input: "Ada", background: true })
      const { provider, requests } = voices({
        lead: [one, one, final("waiting"), final("one is left"), final("both")]
      })
      const result = yield* inTime(Kernel.run(blocks, "Pay twice", { runId: "run", provider }))
      assert.deepStrictEqual([result.text, paid], ["both", ["Ada", "Ada"]])
      const asked = lastAsked(requests, "lead").filter((text) => text.includes(`name="worker" id=`))
      assert.deepStrictEqual(asked, [resultOf("t1/0", "paid 1"), resultOf("t2/0", "paid 2")])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect(
    "waits for the answer of a call without the parameter, and of an agent that is not for the background",
    () =>
      Effect.gen(function* () {
        const { provider, requests } = voices({
          lead: [
            call("worker", { input: "Ada", background: false }),
            call("plain", { input: "a", background: true }),
            "."
          ],
          plain: ["b"]
        })
        const both = native("lead", { agents: [worker, native("plain")] })
        yield* inTime(Kernel.run(both, "go", { provider }))
        assert.deepStrictEqual(lastAsked(requests, "lead"), ["go", "paid 1", "b"])
      }).pipe(Effect.provide(kernel()))
  )

  it.effect("lists its calls and cancels one by its id, and the call has no other result (tools)", () =>
    Effect.gen(function* () {
      const { provider, requests } = voices({
        lead: [work("Ada"), call("background_calls"), call("background_calls", { cancel: "t1/call" }, "c"), "bye"]
      })
      const result = yield* inTime(Kernel.run(lead, "go", { runId: "run", provider: slowly(provider, 1_000) }))
      const asked = lastAsked(requests, "lead")
      assert.deepStrictEqual(JSON.parse(asked[2] ?? ""), [
        { id: "t1/call", name: "worker", input: { input: "Ada" }, status: "running" }
      ])
      assert.deepStrictEqual(asked.slice(-2), [
        "'t1/call' is cancelled.",
        resultOf("t1/call", "This call was cancelled.", "error")
      ])
      assert.deepStrictEqual([result.text, paid], ["bye", []])
      assert.strictEqual((yield* stored("run:t1/call")).status.type, "cancelled")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("lists and cancels by /calls in blocks", () =>
    Effect.gen(function* () {
      const blocks = native("lead", { agents: [worker], dialect: "blocks" })
      const calls = (text: string) => `<block type="command" name="/calls">${text}</block>`
      const { provider, requests } = voices({
        lead: [command("worker", { input: "Ada", background: true }), calls(""), calls("cancel t1/0"), final("bye")]
      })
      yield* inTime(Kernel.run(blocks, "go", { provider }))
      const asked = lastAsked(requests, "lead").join("\n")
      assert.include(asked, `"status":"running"`)
      assert.include(asked, "'t1/0' is cancelled.")
      assert.deepStrictEqual(paid, [])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("pauses for a person whom only a background call asks, and continues with the answer", () =>
    Effect.gen(function* () {
      const careful = Program.make("worker", {
        background: true,
        run: (to) => Effect.as(Program.confirm(`Pay ${to}?`), "agreed")
      })
      const asking = native("lead", { agents: [careful] })
      const { provider, requests } = voices({ lead: [work("Ada"), "I wait.", "Agreed."] })
      const paused = yield* Effect.flip(Kernel.run(asking, "go", { runId: "run", provider }))
      assert.strictEqual(paused._tag, "RunPaused")
      const [question] = yield* Kernel.questions("run")
      assert.deepInclude(question, { reason: "Pay Ada?", agents: ["lead", "worker"] })
      yield* Kernel.answer("run", [{ callId: question?.callId ?? "", approved: true }])
      const result = yield* Kernel.resume(asking, "run", { provider })
      assert.strictEqual(result.text, "Agreed.")
      assert.strictEqual(lastAsked(requests, "lead").at(-1), resultOf("t1/call", "agreed"))
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("counts what the call used, and cancels what is left at its last turn", () =>
    Effect.gen(function* () {
      const other = native("other", { background: true })
      const both = native("lead", { agents: [worker, other], maxSteps: 4 })
      const { provider } = voices({
        lead: [work("Ada"), call("other", { input: "a", background: true }), "I wait.", "bye"],
        other: [{ text: "b", usage: { inputTokens: { total: 70 }, outputTokens: { total: 7 } } }]
      })
      const result = yield* inTime(Kernel.run(both, "go", { runId: "run", provider }))
      assert.isAtLeast(result.usage.inputTokens, 70)
      assert.deepStrictEqual([result.text, paid], ["bye", []])
      assert.strictEqual((yield* stored("run:t1/call")).status.type, "cancelled")
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("ends its background calls when its run is cancelled", () =>
    Effect.gen(function* () {
      const { provider } = voices({ lead: [work("Ada"), "I wait."] })
      const fiber = yield* Effect.forkChild(Effect.flip(Kernel.run(lead, "go", { runId: "run", provider })))
      paid = []
      yield* TestClock.adjust("1 second")
      yield* Kernel.cancel("run")
      yield* TestClock.adjust("1 minute")
      assert.strictEqual((yield* Fiber.join(fiber))._tag, "RunCancelled")
      assert.strictEqual((yield* stored("run:t1/call")).status.type, "cancelled")
      assert.deepStrictEqual(paid, [])
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("is replayed with its results in the turns that received them", () =>
    Effect.gen(function* () {
      const wait = Skill.make("wait", {
        description: "Waits",
        input: Schema.Struct({ ms: Schema.Int }),
        execute: ({ ms }) => Effect.as(Effect.sleep(ms), `waited ${ms}`)
      })
      const slow = native("slow", { background: true, skills: ["wait"] })
      const quick = native("quick", { background: true, skills: ["wait"] })
      const both = native("lead", { agents: [slow, quick] })
      const { provider } = voices({
        lead: [
          call("slow", { input: "a", background: true }),
          call("quick", { input: "b", background: true }),
          "I wait.",
          "One.",
          "Done."
        ],
        slow: [call("wait", { ms: 2_000 }), "slow"],
        quick: [call("wait", { ms: 1_000 }), "quick"]
      })
      const program = Effect.gen(function* () {
        const result = yield* inTime(Kernel.run(both, "go", { runId: "run", provider }))
        assert.strictEqual(result.text, "Done.")
        const { state } = yield* Replay.run(both, "run")
        assert.deepStrictEqual(state.turns, (yield* stored("run")).turns)
      })
      yield* Effect.provide(program, kernel(wait))
    })
  )

  it.effect("emits the start and the end of its child run", () =>
    Effect.gen(function* () {
      const { provider } = voices({ lead: [work("Ada"), "I wait.", "Done."] })
      const events: ReadonlyArray<RunEvent.RunEvent> = yield* inTime(
        Stream.runCollect(Kernel.stream(lead, "go", { runId: "run", provider }))
      )
      const ref = { agent: "worker", callId: "run:t1/call", childRunId: "run:t1/call" }
      assert.deepInclude(of(events, "task_start")[0], ref)
      assert.deepInclude(of(events, "task_complete")[0], { ...ref, result: "paid 1" })
      const [ended] = of(events, "turn_started").flatMap(({ ended = [] }) => ended)
      assert.deepInclude(ended, { callId: "run:t1/call", name: "worker" })
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("runs again in a fork the call that was open there", () =>
    Effect.gen(function* () {
      const { provider } = voices({ lead: [work("Ada"), "I wait.", "Done."] })
      yield* inTime(Kernel.run(lead, "go", { runId: "run", provider }))
      const store = yield* RunStore.RunStore
      const records = yield* Stream.runCollect(store.read("run"))
      const asked = records.find(({ events }) => events.some(({ type }) => type === "turn_completed"))
      yield* Kernel.fork("run", { revision: asked?.revision ?? 0, runId: "fork" })
      const again = yield* inTime(Kernel.resume(lead, "fork", { provider }))
      assert.deepStrictEqual([again.text, paid], ["Done.", ["Ada"]])
      assert.strictEqual((yield* stored("fork:t1/call")).status.type, "completed")
    }).pipe(Effect.provide(kernel()))
  )
})
