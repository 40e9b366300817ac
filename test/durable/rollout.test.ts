/** A run that waits for an approval while its agent is deployed again. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Option, Schema } from "effect"
import { Agent, Kernel, Policy, RunStore, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { kernel } from "../support/kernel.ts"

const paid: Array<string> = []

const pay = (name: string, input: Schema.Codec<object, object>, aliases?: ReadonlyArray<string>) =>
  Skill.make(name, {
    description: "Pays",
    aliases,
    input,
    execute: (input) => Effect.sync(() => paid.push(`${name} ${JSON.stringify(input)}`)).pipe(Effect.as("paid"))
  })

const amount = Schema.Struct({ amount: Schema.Finite })
const withCurrency = Schema.Struct({ amount: Schema.Finite, currency: Schema.Literals(["EUR", "USD"]) })

const agent = (
  options: Partial<Pick<Agent.Agent, "name" | "aliases" | "version">> & { readonly instructions?: string },
  ...skills: ReadonlyArray<Skill.AnySkill>
) => Agent.make({ name: "payer", instructions: "v1", model: "m", dialect: "tools", skills, ...options })

const provider = MockProvider.make().onCall(({ messages }) =>
  messages.some(({ role }) => role === "assistant")
    ? { text: "done" }
    : { calls: [{ name: "pay", input: { amount: 5 } }] }
)

const live = kernel().pipe(Layer.provideMerge(Policy.layerRules({ confirm: [{ name: "{pay,make_payment}" }] })))

const withNote = Schema.Struct({ amount: Schema.Finite, note: Schema.optionalKey(Schema.String) })

/** Stores a run that waits for an approval, approves it, and continues it with another agent. */
const approved = Effect.fnUntraced(function* (next: Agent.Agent, first = agent({}, pay("pay", amount))) {
  paid.length = 0
  yield* Effect.flip(Kernel.run(first, "pay", { runId: "r", provider }))
  return yield* answered(next)
})

const answered = Effect.fnUntraced(function* (next: Agent.Agent, input?: Schema.Json) {
  const open = yield* Kernel.questions("r")
  const answers = open.map(({ callId }) => ({
    callId,
    approved: true,
    by: "ada",
    ...(input === undefined ? {} : { input })
  }))
  return yield* Effect.exit(Kernel.resume(next, "r", { answers, provider }))
})

const changes = Effect.map(RunStore.recordsOf("r"), (records) =>
  records.flatMap(({ events }) =>
    events.flatMap((event) => (event.type === "turn_prepared" ? (event.changed ?? []) : []))
  )
)

describe("an approval whose call cannot run as approved", () => {
  for (const [what, next, why] of [
    ["skill is gone", agent({}), "'pay' not found"],
    ["skill has another name", agent({}, pay("make_payment", amount)), "'pay' not found"],
    ["skill needs another field", agent({}, pay("pay", withCurrency)), "currency"]
  ] as const) {
    it.effect(`is not spent when its ${what}: the run rests and asks again`, () =>
      Effect.gen(function* () {
        const exit = yield* approved(next)
        const error = Option.getOrThrow(Exit.findErrorOption(exit))
        assert.deepInclude({ ...error }, { _tag: "RunPaused", reason: "approval_not_run" })
        const [question, ...others] = yield* Kernel.questions("r")
        assert.deepStrictEqual([others, paid], [[], []])
        assert.include(question?.reason, "the approved call did not run: ")
        assert.include(question?.reason, why)
        const head = Option.getOrThrow(yield* (yield* RunStore.RunStore).head("r"))
        assert.deepInclude(head.status, { type: "waiting", reason: "approval_not_run" })
      }).pipe(Effect.provide(live))
    )
  }

  it.effect("runs once it is approved with an input that fits, or by code that has its skill", () =>
    Effect.gen(function* () {
      const grown = agent({}, pay("pay", withCurrency))
      yield* approved(grown)
      yield* answered(grown, { amount: 5, currency: "EUR" })
      assert.deepStrictEqual(paid, ['pay {"amount":5,"currency":"EUR"}'])
    }).pipe(Effect.provide(live))
  )

  it.effect("rests with the same reason when it is resumed without another answer", () =>
    Effect.gen(function* () {
      yield* approved(agent({}))
      const error = yield* Effect.flip(Kernel.resume(agent({}), "r", { provider }))
      assert.deepInclude({ ...error }, { _tag: "RunPaused", reason: "approval_not_run" })
    }).pipe(Effect.provide(live))
  )
})

describe("a renamed skill or agent", () => {
  it.effect("runs the calls that were stored under its earlier name", () =>
    Effect.gen(function* () {
      yield* approved(agent({}, pay("make_payment", amount, ["pay"])))
      assert.deepStrictEqual(paid, ['make_payment {"amount":5}'])
    }).pipe(Effect.provide(live))
  )

  it.effect("is judged by its present name when a call names an earlier one", () =>
    Effect.gen(function* () {
      const deny = Policy.layerRules({ deny: [{ name: "make_payment", reason: "no" }] })
      const renamed = agent({}, pay("make_payment", amount, ["pay"]))
      paid.length = 0
      yield* Effect.provide(Kernel.run(renamed, "pay", { runId: "r", provider }), Layer.provideMerge(kernel(), deny))
      assert.deepStrictEqual(paid, [])
    })
  )

  it.effect("continues the runs of its earlier name", () =>
    Effect.gen(function* () {
      const exit = yield* approved(agent({ name: "payments", aliases: ["payer"] }, pay("pay", amount)))
      assert.isTrue(Exit.isSuccess(exit))
      assert.deepStrictEqual(paid, ['pay {"amount":5}'])
    }).pipe(Effect.provide(live))
  )

  it.effect("gets the runs of its earlier name from a worker", () =>
    Effect.gen(function* () {
      const byName = Agent.byName([agent({ name: "payments", aliases: ["payer", "clerk"] }), agent({ name: "clerk" })])
      assert.deepStrictEqual(Array.from(byName, ([name, one]) => `${name}: ${one.name}`).toSorted(), [
        "clerk: clerk",
        "payer: payments",
        "payments: payments"
      ])
    })
  )
})

describe("the version of an agent", () => {
  it.effect("is stored with the run, and with the resume of another version", () =>
    Effect.gen(function* () {
      const skill = pay("pay", amount)
      yield* approved(agent({ version: "2" }, skill), agent({ version: "1" }, skill))
      const head = Option.getOrThrow(yield* (yield* RunStore.RunStore).head("r"))
      assert.strictEqual(head.version, "1")
      const records = yield* RunStore.recordsOf("r")
      assert.deepStrictEqual(
        records.flatMap(({ delta }) => delta.version ?? []),
        ["2"]
      )
    }).pipe(Effect.provide(live))
  )

  for (const [what, next, expected] of [
    ["nothing", agent({}, pay("pay", amount)), []],
    ["its instructions", agent({ instructions: "v2" }, pay("pay", amount)), ["instructions"]],
    ["a schema", agent({}, pay("pay", withNote)), ["schemas"]],
    ["its skills", agent({}, pay("pay", amount), pay("refund", amount)), ["skills"]]
  ] as const) {
    it.effect(`is followed by an event that says what changed: ${what}`, () =>
      Effect.gen(function* () {
        yield* approved(next)
        assert.deepStrictEqual(yield* changes, [...expected])
      }).pipe(Effect.provide(live))
    )
  }
})
