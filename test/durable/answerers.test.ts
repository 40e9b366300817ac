/** Rules about who may answer a question, and the values that a form accepts. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema, Stream } from "effect"
import { TestClock } from "effect/testing"
import { Agent, Kernel, Policy, Provider, RunStore, RunWorker, Skill } from "kernai"
import { MockProvider, Replay } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ amount: Schema.Finite }),
  execute: ({ amount }) => Effect.succeed(`paid ${amount}`)
})

const eva = { id: "eva" }
const bob = { id: "bob", roles: ["finance"] }
const ada = { id: "ada", roles: ["finance", "legal"] }

const byFinance = Policy.layer(() => Effect.succeed(Policy.confirm("it costs", { by: { roles: ["finance"] } })))

/** Starts a run of a caller that asks whether it may pay, and returns a function that answers. */
const asked = Effect.fnUntraced(function* (caller: Kernel.RunOptions["caller"], agent = clerk) {
  const provider = MockProvider.make(command("pay", { amount: 5 }), final("Done."))
  const error = yield* Effect.flip(Kernel.run(agent, "Pay.", { provider, runId: "r", caller }))
  assert.strictEqual(error._tag, "RunPaused")
  const [question] = yield* Kernel.questions("r")
  const answers = [{ callId: question?.callId ?? "", approved: true, by: "somebody else" }]
  const by = (caller?: Kernel.RunOptions["caller"]) => Kernel.answer("r", answers, { caller })
  return { answers, by, provider, question }
})

const clerk = Agent.make({ instructions: "", model: "m", skills: [pay] })

const refusal = <A, E extends { readonly _tag: string }, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.match(effect, {
    onFailure: (error) => ("reason" in error ? `${error._tag}: ${String(error.reason)}` : error._tag),
    onSuccess: () => "accepted"
  })

describe("the caller of an answer", () => {
  it.effect("answers a question that is for his role, and the journal keeps his name", () =>
    Effect.gen(function* () {
      const { by, provider, question } = yield* asked(eva)
      assert.deepStrictEqual(question?.answerers, [{ roles: ["finance"] }])
      assert.strictEqual(yield* refusal(by({ id: "carl", roles: ["sales"] })), "AnswerRefused: not_allowed")
      assert.strictEqual(yield* refusal(by()), "AnswerRefused: not_allowed")
      assert.strictEqual((yield* Kernel.questions("r")).length, 1)
      assert.strictEqual(yield* refusal(by(bob)), "accepted")
      assert.strictEqual((yield* Kernel.resume(clerk, "r", { provider })).text, "Done.")
      const records = yield* Stream.runCollect((yield* RunStore.RunStore).read("r"))
      const names = records.flatMap(({ delta }) => (delta.answers ?? []).map(({ by }) => by))
      assert.deepStrictEqual(names, ["bob"])
      const replay = yield* Replay.run(clerk, "r")
      assert.strictEqual(replay.runs, 1)
    }).pipe(Effect.provide([kernel(pay), byFinance]))
  )

  it.effect("does not answer the questions of his own run, whatever his role, unless the policy says so", () =>
    Effect.gen(function* () {
      const { answers, by, provider } = yield* asked(bob)
      assert.strictEqual(yield* refusal(by(bob)), "AnswerRefused: not_allowed")
      const resumed = Kernel.resume(clerk, "r", { provider, answers, caller: bob })
      assert.strictEqual(yield* refusal(resumed), "AnswerRefused: not_allowed")
      assert.strictEqual(yield* refusal(by(ada)), "accepted")
    }).pipe(Effect.provide([kernel(pay), byFinance]))
  )

  it.effect("answers the questions of his own run if the policy admits the owner", () =>
    Effect.gen(function* () {
      const { by } = yield* asked(eva)
      assert.strictEqual(yield* refusal(by({ id: "carl" })), "AnswerRefused: not_allowed")
      assert.strictEqual(yield* refusal(by(eva)), "accepted")
    }).pipe(
      Effect.provide([
        kernel(pay),
        Policy.layer(() => Effect.succeed(Policy.confirm("?", { by: { callers: ["bob"], owner: true } })))
      ])
    )
  )

  it.effect("needs the consent of every policy that asks", () =>
    Effect.gen(function* () {
      const { by, question } = yield* asked(eva)
      assert.deepStrictEqual(question?.answerers?.length, 2)
      assert.strictEqual(yield* refusal(by(bob)), "AnswerRefused: not_allowed")
      assert.strictEqual(yield* refusal(by(ada)), "accepted")
    }).pipe(
      Effect.provide([
        kernel(pay),
        byFinance,
        Policy.layer(() => Effect.succeed(Policy.confirm("law", { by: { roles: ["legal"] } })))
      ])
    )
  )

  it.effect("is known to policies, also in the agents that a run calls", () => {
    const seen: Array<string | undefined> = []
    const below = Agent.make({ name: "payer", description: "Pays", instructions: "", model: "m", skills: [pay] })
    const boss = Agent.make({ name: "boss", instructions: "", model: "m", agents: [below] })
    const provider = MockProvider.make(
      `<block type="command" name="payer">Pay.</block>`,
      command("pay", { amount: 5 }),
      final("Paid."),
      final("Done.")
    )
    return Effect.gen(function* () {
      const error = yield* Effect.flip(Kernel.run(boss, "Pay.", { provider, runId: "r", caller: eva }))
      assert.strictEqual(error._tag, "RunPaused")
      assert.deepStrictEqual([...new Set(seen)], ["eva"])
      const [question] = yield* Kernel.questions("r")
      const answers = [{ callId: question?.callId ?? "", approved: true }]
      for (const id of ["r", question?.runId ?? ""]) {
        assert.strictEqual(yield* refusal(Kernel.answer(id, answers, { caller: eva })), "AnswerRefused: not_allowed")
      }
      assert.strictEqual(yield* refusal(Kernel.answer("r", answers, { caller: bob })), "accepted")
    }).pipe(
      Effect.provide([
        kernel(pay),
        Policy.layer(({ caller, name }) => {
          seen.push(caller?.id)
          return Effect.succeed(name === "pay" ? Policy.confirm("?", { by: {} }) : Policy.allowed)
        })
      ])
    )
  })

  it.effect("is not needed when the time for an answer is over", () =>
    Effect.gen(function* () {
      const { provider } = yield* asked(eva)
      yield* TestClock.adjust("5 minutes")
      yield* Effect.provideService(RunWorker.runOnce({ agents: [clerk] }), Provider.Provider, provider)
      assert.deepStrictEqual(yield* Kernel.questions("r"), [])
      const records = yield* Stream.runCollect((yield* RunStore.RunStore).read("r"))
      assert.strictEqual(records.flatMap(({ delta }) => delta.answers ?? [])[0]?.by, "deadline")
    }).pipe(
      Effect.provide([
        kernel(pay),
        Policy.layer(() => Effect.succeed(Policy.confirm("?", { within: "5 minutes", by: { roles: ["finance"] } })))
      ])
    )
  )
})

describe("the values of a form", () => {
  const received: Array<unknown> = []
  const book = Skill.make("pay", {
    description: "Asks for a seat",
    input: Schema.Struct({ amount: Schema.Finite }),
    execute: (_, { ask }) =>
      Effect.gen(function* () {
        const reply = yield* ask?.({ message: "Which seat?", form }) ?? Effect.die("nobody")
        received.push(reply._tag === "Accepted" ? reply.values : reply._tag)
        return "booked"
      })
  })
  const form = {
    type: "object",
    properties: {
      seat: { type: "string", minLength: 2, pattern: "^[0-9]+[A-F]$" },
      class: { type: "string", enum: ["economy", "business"], default: "economy" },
      bags: { type: "integer", minimum: 0, maximum: 3 }
    },
    required: ["seat"]
  }
  const booker = Agent.make({ instructions: "", model: "m", skills: [book] })

  it.effect("are decoded by its schema before the skill receives them", () =>
    Effect.gen(function* () {
      const { answers, provider } = yield* asked(eva, booker)
      const give = (values: Record<string, Schema.Json>) =>
        refusal(
          Kernel.answer(
            "r",
            answers.map((answer) => ({ ...answer, values }))
          )
        )
      for (const values of [
        {},
        { seat: 5 },
        { seat: "1" },
        { seat: "window" },
        { seat: "12A", class: "first" },
        { seat: "12A", bags: 9 },
        { seat: "12A", bags: "two" }
      ]) {
        assert.strictEqual(yield* give(values), "AnswerRefused: invalid", JSON.stringify(values))
      }
      assert.strictEqual(yield* give({ seat: "12A", bags: 2, other: "x" }), "accepted")
      assert.strictEqual((yield* Kernel.resume(booker, "r", { provider })).text, "Done.")
      assert.deepStrictEqual(received, [{ seat: "12A", class: "economy", bags: 2 }])
    }).pipe(Effect.provide(kernel(book)))
  )
})
