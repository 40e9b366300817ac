/** Calls that ask a person, or the model, while they run. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, Stream } from "effect"
import { Agent, Content, Kernel, Model, Policy, type RunState, RunStore, Skill } from "kernai"
import { MockProvider, Replay } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel, of } from "../support/kernel.ts"

const form = { type: "object", properties: { seat: { type: "string" } }, required: ["seat"] }

/** What each execution came to. */
const entered: Array<string> = []

const book = Skill.make("book", {
  description: "Books a seat",
  input: Schema.Struct({ train: Schema.String }),
  execute: Effect.fnUntraced(function* ({ train }, { ask }) {
    entered.push("entered")
    const seat = yield* ask!({ message: `Which seat in ${train}?`, form, name: "book/seat" })
    if (seat._tag !== "Accepted") return `no seat: ${seat._tag}`
    const sure = yield* ask!({ message: "Sure?" })
    entered.push("booked")
    return `${String(seat.values["seat"])} ${sure._tag}`
  })
})

const agent = Agent.make({ instructions: "", model: "m", skills: "all" })
const outputs = (events: ReadonlyArray<Parameters<typeof of>[0][number]>) =>
  of(events, "skill_result").map(({ output }) => output)

const started = Effect.fnUntraced(function* (
  runId: string,
  provider: MockProvider.Mock,
  asking: Agent.Agent<string> = agent
) {
  entered.length = 0
  const paused = yield* Effect.flip(Kernel.run(asking, "go", { provider, runId }))
  assert.strictEqual(paused._tag, "RunPaused")
  return (yield* Kernel.questions(runId))[0]!
})

const resumed = (runId: string, provider: MockProvider.Mock, answer: Omit<RunState.Answer, "callId">) =>
  Effect.flatMap(Kernel.questions(runId), ([question]) =>
    Effect.map(
      Stream.runCollect(
        Kernel.resumeStream(agent, runId, { provider, answers: [{ callId: question?.callId ?? "", ...answer }] })
      ),
      (events) => [...events]
    )
  )

describe("a call that asks a person", () => {
  const says = () => MockProvider.make(command("book", { train: "T1" }), final("done"))

  it.effect("receives earlier answers when it runs again, so it can continue where it asked", () =>
    Effect.gen(function* () {
      const seen: Array<ReadonlyArray<string>> = []
      const order = Skill.make("order", {
        description: "Orders a meal",
        input: Schema.Struct({}),
        execute: (_, { answered = [], ask }) => {
          seen.push(answered.map(({ message }) => message))
          return Effect.as(ask!({ message: "Order 7: with salt?" }), "ordered")
        }
      })
      const provider = MockProvider.make(command("order"), final("done"))
      const program = Effect.gen(function* () {
        yield* started("o", provider)
        yield* resumed("o", provider, { approved: true })
      })
      yield* Effect.provide(program, kernel(order))
      assert.deepStrictEqual(seen, [[], ["Order 7: with salt?"]])
    })
  )

  it.effect("pauses its run with each question, and runs again with the answers", () =>
    Effect.gen(function* () {
      const provider = says()
      const question = yield* started("r", provider)
      assert.deepStrictEqual(question, {
        callId: "r:t1.0",
        name: "book",
        input: { train: "T1" },
        reason: "Which seat in T1?",
        asking: { message: "Which seat in T1?", form, name: "book/seat" },
        runId: "r",
        agents: ["agent"]
      })
      // Answered from outside, then continued: the second question is another one.
      yield* Kernel.answer("r", [{ callId: question.callId, approved: true, values: { seat: "12A" }, by: "Ada" }])
      assert.strictEqual((yield* Effect.flip(Kernel.resume(agent, "r", { provider })))._tag, "RunPaused")
      const [second] = yield* Kernel.questions("r")
      assert.deepStrictEqual([second?.callId, second?.asking], ["r:t1.0", { message: "Sure?" }])
      const events = yield* resumed("r", provider, { approved: true })
      assert.deepStrictEqual(outputs(events), ["12A Accepted"])
      assert.deepStrictEqual(entered, ["entered", "entered", "entered", "booked"])
      assert.lengthOf(provider.calls, 2)
      const replayed = yield* Replay.run(agent, "r")
      assert.strictEqual(replayed.state.status.type, "completed")
    }).pipe(Effect.provide(kernel(book)))
  )

  it.effect.each([
    [{ approved: false, reason: "later" }, "Declined"],
    [{ approved: false, dismissed: true }, "Dismissed"]
  ] as const)("receives the refusal of the person: %j", ([answer, tag]) =>
    Effect.gen(function* () {
      const provider = says()
      yield* started("r", provider)
      assert.deepStrictEqual(outputs(yield* resumed("r", provider, answer)), [`no seat: ${tag}`])
    }).pipe(Effect.provide(kernel(book)))
  )

  it.effect("is refused at once where the policy denies the question", () =>
    Effect.gen(function* () {
      const provider = says()
      const events = yield* Stream.runCollect(Kernel.stream(agent, "go", { provider }))
      assert.deepStrictEqual(outputs([...events]), ["no seat: Declined"])
    }).pipe(
      Effect.provide(kernel(book).pipe(Layer.provide(Policy.layerRules({ deny: [{ name: "book/*", reason: "no" }] }))))
    )
  )

  it.effect("does not keep other calls of the same reply from their results", () =>
    Effect.gen(function* () {
      const both = command("book", { train: "T1" }) + command("book", { train: "T2" }) + command("look")
      const provider = MockProvider.make(both, final("done"))
      const several = Agent.make({ instructions: "", model: "m", skills: "all", concurrency: 3 })
      yield* started("r", provider, several)
      const open = yield* Kernel.questions("r")
      assert.deepStrictEqual(
        open.map(({ asking, callId }) => [callId, asking?.message]),
        [
          ["r:t1.0", "Which seat in T1?"],
          ["r:t1.1", "Which seat in T2?"]
        ]
      )
      const state = yield* Effect.flatMap(RunStore.RunStore, (store) => store.load("r")).pipe(
        Effect.flatMap(Effect.fromOption)
      )
      assert.deepStrictEqual(
        state.currentTurn?.completed.map(({ name }) => name),
        ["look"]
      )
      assert.deepStrictEqual(state.currentTurn?.inFlight, [])
      const answers = open.map(({ callId }) => ({ callId, approved: false }))
      assert.strictEqual((yield* Kernel.resume(several, "r", { provider, answers })).text, "done")
      yield* Replay.run(several, "r")
    }).pipe(
      Effect.provide(
        kernel(
          book,
          Skill.make("look", {
            description: "",
            input: Schema.Struct({}),
            effects: "read",
            execute: () => Effect.succeed("seen")
          })
        )
      )
    )
  )
})

describe("a call that asks the model", () => {
  const price = { inputPerMillion: 1_000_000, outputPerMillion: 1_000_000 }
  const costly = Agent.make({ instructions: "", model: Model.make("m", { price }), skills: "all" })
  const think = Skill.make("think", {
    description: "Thinks",
    input: Schema.Struct({}),
    execute: (_, { sample }) =>
      sample!({
        messages: [{ role: "user", content: [Content.text("2 + 2?")] }],
        system: "Be short",
        maxTokens: 5,
        name: "think/model"
      }).pipe(
        Effect.map(({ finishReason, text }) => `${text} (${finishReason})`),
        Effect.catchTag("SamplingRefused", ({ detail, reason }) => Effect.succeed(`${reason}: ${detail}`))
      )
  })
  const usage = { inputTokens: { total: 10 }, outputTokens: { total: 2 } }
  const says = () => MockProvider.make(command("think"), { text: "four", usage }, final("done"))

  it.effect("receives its reply, which counts in the usage and cost of the run", () =>
    Effect.gen(function* () {
      const provider = says()
      const result = yield* Kernel.run(costly, "go", { provider })
      assert.deepStrictEqual(
        provider.calls.map(({ generation }) => generation.maxTokens),
        [undefined, 5, undefined]
      )
      assert.deepStrictEqual(
        provider.calls[1]?.messages.map(({ role }) => role),
        ["system", "user"]
      )
      const turns = result.perTurnUsage.reduce((sum, one) => sum + (one?.inputTokens ?? 0), 0)
      assert.strictEqual(result.usage.inputTokens - turns, 10)
      assert.isAtLeast(result.costUsd ?? 0, 12)
    }).pipe(Effect.provide(kernel(think)))
  )

  it.effect("is refused by the policy, or asks a person first", () =>
    Effect.gen(function* () {
      const rules = (given: Policy.Rules) => kernel(think).pipe(Layer.provide(Policy.layerRules(given)))
      const events = yield* Effect.provide(
        Stream.runCollect(Kernel.stream(agent, "go", { provider: says() })),
        rules({ deny: [{ name: "think/model", reason: "no" }] })
      )
      assert.deepStrictEqual(outputs([...events]), ["denied: no"])
      yield* Effect.gen(function* () {
        const provider = says()
        yield* started("r", provider)
        assert.deepStrictEqual(outputs(yield* resumed("r", provider, { approved: true })), ["four (stop)"])
      }).pipe(Effect.provide(rules({ confirm: [{ name: "think/model" }] })))
    })
  )

  it.effect("is refused when the budget of the run is used up", () =>
    Effect.gen(function* () {
      const tight = Agent.make({ instructions: "", model: "m", skills: "all", budget: { maxTokens: 12 } })
      const provider = MockProvider.make({ text: command("think"), usage })
      const events: Array<Parameters<typeof of>[0][number]> = []
      yield* Kernel.stream(tight, "go", { provider }).pipe(
        Stream.runForEach((event) => Effect.sync(() => events.push(event))),
        Effect.ignore
      )
      assert.lengthOf(provider.calls, 1)
      assert.match(String(outputs(events)[0]), /^budget: /)
    }).pipe(Effect.provide(kernel(think)))
  )
})
