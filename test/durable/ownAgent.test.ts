/** A run belongs to its agent; its calls in flight when another agent or newer code would continue it. */
import { assert, describe, it } from "@effect/vitest"
import { type Duration, Effect, Fiber, Option, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, RunStore, Skill, type Call } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "../support/kernel.ts"

const paying = (effects: Call.Effects, execute: Effect.Effect<string>, name = "pay") =>
  Skill.make(name, { description: "Pays", input: Schema.Struct({}), effects, execute: () => execute })

const agent = (name: string, ...skills: ReadonlyArray<Skill.AnySkill>) =>
  Agent.make({ name, instructions: "", model: "m", dialect: "tools", skills })

const provider = MockProvider.make().onCall(({ messages }) =>
  messages.some(({ role }) => role === "assistant") ? { text: "done" } : { calls: [{ name: "pay", input: {} }] }
)

/** Interrupts a run in the middle of its call, as a crash does, and returns the id of the call. */
const stopped = (payer: Agent.Agent<string>) =>
  Effect.gen(function* () {
    yield* Kernel.run(payer, "pay", { runId: "r", provider }).pipe(Effect.timeout("1 second"), Effect.ignore)
    const [call] = yield* RunStore.inFlight("r")
    return call?.callId ?? ""
  })

const inFlight = Effect.map(RunStore.inFlight("r"), (calls) => calls.map(({ name }) => name))

describe("a run of an agent", () => {
  it.live("is refused to another agent by name, and nothing is stored", () =>
    Effect.gen(function* () {
      yield* stopped(agent("payer", paying("write", Effect.never)))
      const store = yield* RunStore.RunStore
      const before = yield* store.head("r")
      const error = yield* Effect.flip(Kernel.resume(agent("librarian"), "r", { provider }))
      assert.deepInclude({ ...error }, { _tag: "AgentMismatch", runId: "r", agent: "payer", given: "librarian" })
      const events = yield* Effect.flip(Stream.runDrain(Kernel.resumeStream(agent("librarian"), "r", { provider })))
      assert.strictEqual(events._tag, "AgentMismatch")
      assert.deepStrictEqual(yield* store.head("r"), before)
    }).pipe(Effect.provide(kernel()))
  )

  it.live("is continued by another agent for a reason, which the journal keeps", () =>
    Effect.gen(function* () {
      const callId = yield* stopped(agent("payer", paying("write", Effect.never)))
      const recover = { [callId]: { resolve: { output: [] } } }
      const { text } = yield* Kernel.resume(agent("librarian"), "r", { provider, recover, as: "payer is retired" })
      assert.strictEqual(text, "done")
      const records = yield* RunStore.recordsOf("r")
      assert.deepStrictEqual(
        records.flatMap(({ delta }) => delta.as ?? []),
        [{ agent: "librarian", reason: "payer is retired" }]
      )
      const head = Option.getOrThrow(yield* (yield* RunStore.RunStore).head("r"))
      assert.strictEqual(head.agent, "payer")
    }).pipe(Effect.provide(kernel()))
  )
})

describe("a call that was in flight", () => {
  it.live("stays in flight if it is retried where its skill is not available", () =>
    Effect.gen(function* () {
      const callId = yield* stopped(agent("payer", paying("write", Effect.never)))
      const recover = { [callId]: "retry" } as const
      const error = yield* Effect.flip(Kernel.resume(agent("payer"), "r", { provider, recover }))
      assert.deepInclude({ ...error }, { _tag: "InFlightToolCalls", callIds: [callId] })
      assert.include(error.message, "pay")
      assert.deepStrictEqual(yield* inFlight, ["pay"])
      // The host allows no skill here.
      const payer = agent("payer", paying("write", Effect.succeed("paid")))
      const denied = yield* Effect.flip(Kernel.resume(payer, "r", { provider, recover, allowedSkills: [] }))
      assert.strictEqual(denied._tag, "InFlightToolCalls")
      assert.deepStrictEqual(yield* inFlight, ["pay"])
      const { calls } = yield* Kernel.resume(payer, "r", { provider, recover })
      assert.deepStrictEqual(
        calls.map(({ isError, name }) => [name, isError]),
        [["pay", false]]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.live("keeps the effects that were stored with it when newer code calls them harmless", () =>
    Effect.gen(function* () {
      let paid = 0
      const callId = yield* stopped(agent("payer", paying("write", Effect.never)))
      const newer = agent(
        "payer",
        paying(
          "idempotent",
          Effect.sync(() => `paid ${++paid}`)
        )
      )
      const error = yield* Effect.flip(Kernel.resume(newer, "r", { provider }))
      assert.deepInclude({ ...error }, { _tag: "InFlightToolCalls", callIds: [callId] })
      assert.strictEqual(paid, 0)
    }).pipe(Effect.provide(kernel()))
  )

  it.live("asks a person before it is repeated with other credentials than it was made with", () =>
    Effect.gen(function* () {
      const charging = (key: string, execute: Effect.Effect<string>) =>
        agent(
          "payer",
          Skill.make("pay", {
            description: "Pays",
            input: Schema.Struct({}),
            effects: "idempotent",
            credentials: { [key]: {} },
            execute: () => execute
          })
        )
      const callId = yield* stopped(charging("stripe", Effect.never))
      const paid = Effect.succeed("paid")
      const error = yield* Effect.flip(Kernel.resume(charging("stripe_eu", paid), "r", { provider }))
      assert.deepInclude({ ...error }, { _tag: "InFlightToolCalls", callIds: [callId] })
      const { calls } = yield* Kernel.resume(charging("stripe", paid), "r", { provider })
      assert.deepStrictEqual(
        calls.map(({ isError, name }) => [name, isError]),
        [["pay", false]]
      )
    }).pipe(Effect.provide(kernel()))
  )

  it.effect("ends after the time limit that was stored with it, when newer code allows it more", () =>
    Effect.gen(function* () {
      const limited = (timeout: Duration.Input) =>
        agent(
          "payer",
          Skill.make("pay", {
            description: "Pays",
            input: Schema.Struct({}),
            effects: "idempotent",
            timeout,
            execute: () => Effect.never
          })
        )
      const first = yield* Effect.forkChild(Kernel.run(limited("10 seconds"), "pay", { runId: "r", provider }))
      yield* TestClock.adjust("5 seconds")
      yield* Fiber.interrupt(first)
      const again = yield* Effect.forkChild(Kernel.resume(limited("1 hour"), "r", { provider }))
      yield* TestClock.adjust("11 seconds")
      const { calls } = yield* Fiber.join(again)
      assert.deepStrictEqual(
        calls.map(({ isError, name }) => [name, isError]),
        [["pay", true]]
      )
    }).pipe(Effect.provide(kernel()))
  )
})
