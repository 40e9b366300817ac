/** The decisions of a policy in the journal. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Hooks, Kernel, Policy, RunStore, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { kernel } from "../support/kernel.ts"

const skill = (name: string) =>
  Skill.make(name, { description: name, input: Schema.Struct({}), execute: () => Effect.succeed("done") })

const agent = Agent.make({ instructions: "", model: "m", skills: [skill("look"), skill("send"), skill("drop")] })

const decisions = Effect.map(RunStore.recordsOf("r"), (records) =>
  records.flatMap(({ events }) =>
    events.flatMap((event) =>
      event.type === "tool_calls_started"
        ? (event.decisions ?? []).map(({ decision, reason = "", rule = "" }) => [decision, rule, reason])
        : []
    )
  )
)

const decided = (policy: Layer.Layer<never>, ...names: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const provider = MockProvider.make(names.map((name) => command(name)).join("\n"), final("done"))
    yield* Effect.ignore(Kernel.run(agent, "go", { runId: "r", provider }))
    return yield* decisions
  }).pipe(Effect.provide(Layer.provideMerge(kernel(), policy)))

describe("a decision of a policy", () => {
  it.effect("is stored with its rule, also when it allowed the call", () =>
    Effect.gen(function* () {
      const rules = Policy.layerRules({
        deny: [{ name: "x" }, { name: "drop", reason: "nothing is dropped" }],
        confirm: [{ name: "send" }]
      })
      assert.deepStrictEqual(yield* decided(Layer.orDie(rules), "look", "send", "drop"), [
        ["allowed", "default", ""],
        ["confirm", "confirm[0]", "'send' has to be confirmed"],
        ["denied", "deny[1]", "nothing is dropped"]
      ])
    })
  )

  it.effect("is stored with the rule that code names", () =>
    Effect.gen(function* () {
      const policy = Policy.layer(() => Effect.succeed({ ...Policy.allowed, rule: "weekday" }))
      assert.deepStrictEqual(yield* decided(policy, "look"), [["allowed", "weekday", ""]])
    })
  )

  it.effect("is stored again for the input that a hook or a person put in place of the model's", () =>
    Effect.gen(function* () {
      const pay = Skill.dynamic("pay", {
        description: "pays",
        inputSchema: { type: "object" },
        execute: () => Effect.succeed("paid")
      })
      const clerk = Agent.make({ instructions: "", model: "m", skills: [pay] })
      const rules = Policy.layerRules({
        deny: [{ name: "pay", where: { amount: "^9" }, reason: "too much" }],
        confirm: [{ name: "pay", where: { amount: "^5" } }]
      })
      const changed = (to: number) =>
        Hooks.layer({ onToolCallStarted: () => Effect.succeed(Hooks.rewrite({ amount: to })) })
      const again = Effect.map(RunStore.recordsOf("r"), (records) =>
        records.flatMap(({ events }) =>
          events.flatMap((event) => (event.type === "tool_call_started" ? [event.decision] : []))
        )
      )
      const run = (amount: number) =>
        Effect.suspend(() => {
          const provider = MockProvider.make(command("pay", { amount }), final("done"))
          return Effect.ignore(Kernel.run(clerk, "go", { runId: "r", provider }))
        })
      const live = (more: Layer.Layer<never> = Layer.empty) =>
        Layer.provideMerge(kernel(), Layer.merge(Layer.orDie(rules), more))
      const answered = (amount: number) =>
        Effect.gen(function* () {
          yield* run(5)
          const [question] = yield* Kernel.questions("r")
          const answers = [{ callId: question?.callId ?? "", approved: true, input: { amount } }]
          yield* Effect.ignore(Kernel.resume(clerk, "r", { answers, provider: MockProvider.make(final("done")) }))
          return yield* again
        }).pipe(Effect.provide(live()))
      const callId = "r:t1.0"
      assert.deepStrictEqual(yield* answered(1), [{ callId, decision: "allowed", rule: "default" }])
      const rewritten = Effect.provide(Effect.andThen(run(1), again), live(changed(9)))
      assert.deepStrictEqual(yield* rewritten, [{ callId, decision: "denied", rule: "deny[0]", reason: "too much" }])
      assert.deepStrictEqual(yield* answered(9), [{ callId, decision: "denied", rule: "deny[0]", reason: "too much" }])
    })
  )
})
