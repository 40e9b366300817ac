/** The decisions of a policy in the journal. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Kernel, Policy, RunStore, Skill } from "kernai"
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
        deny: [{ tool: "x" }, { tool: "drop", reason: "nothing is dropped" }],
        confirm: [{ tool: "send" }]
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
})
