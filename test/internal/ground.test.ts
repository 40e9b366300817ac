import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted, Schema } from "effect"
import { Agent, Kernel, Recorder, Redaction, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"

const skill = (name: string) =>
  Skill.make(name, { description: "", input: Schema.Struct({}), execute: () => Effect.succeed(name) })
const [known, forgotten] = [skill("known"), skill("forgotten")]

const kernel = Kernel.layerMemory.pipe(
  Layer.provide([SkillRegistry.layer(known), MockProvider.layer("<final>done</final>")])
)

/** What is logged while an agent runs twice. */
const logged = (agent: Agent.Agent) => {
  const lines: Array<string> = []
  return Kernel.run(agent, "go").pipe(
    Effect.andThen(Kernel.run(agent, "go")),
    Effect.as(lines),
    Effect.provide([kernel, Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])])
  )
}

describe("the ground of a run", () => {
  it.effect("tells once of skills given as values that no registry has, for only the model would hear of it", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ name: "desk", instructions: "", model: "m", skills: [known, forgotten] })
      assert.deepStrictEqual(yield* logged(agent), ["the agent 'desk' lists 'forgotten', which no SkillRegistry has"])
    })
  )

  it.effect("says nothing of names, which may come later, nor of what is there", () =>
    Effect.gen(function* () {
      for (const skills of [[known], ["forgotten"], [known, "forgotten"], "all"] as const) {
        assert.deepStrictEqual(yield* logged(Agent.make({ instructions: "", model: "m", skills })), [])
      }
      assert.deepStrictEqual(yield* logged(Agent.make({ instructions: "", model: "m" })), [])
    })
  )

  it.effect(
    "is the provider of the layer where a model is named with its vendor and there is no registry (BP-31)",
    () =>
      Effect.gen(function* () {
        const agent = Agent.make({ instructions: "", model: "openai/gpt-4o" })
        assert.strictEqual((yield* Kernel.run(agent, "go")).text, "done")
      }).pipe(Effect.provide(kernel))
  )

  it.effect("hands a recorder nothing of a secret that somebody knows (S-7)", () =>
    Effect.gen(function* () {
      const secret = "open-sesame"
      const told: Array<string> = []
      yield* Kernel.run(Agent.make({ instructions: "", model: "m" }), `the word is ${secret}`).pipe(
        Effect.provideService(Redaction.Redaction, Redaction.make({ secrets: [Redacted.make(secret)] })),
        Effect.provideService(Recorder.Recorder, { record: (event) => void told.push(JSON.stringify(event)) })
      )
      assert.include(told.join(), "the word is <redacted>")
      assert.notInclude(told.join(), secret)
    }).pipe(Effect.provide(kernel))
  )

  it.effect("has a price where a budget has a limit of cost, also when the model is only named (CP-15)", () =>
    Effect.gen(function* () {
      const limited = (model: string) => Agent.make({ instructions: "", model, budget: { maxCostUsd: 1 } })
      const error = yield* Effect.flip(Kernel.run(limited("m"), "go"))
      assert.strictEqual(error.message, "invalid agent at 'budget.maxCostUsd': the model 'm' has no price")
      const priced = { ...MockProvider.make("<final>done</final>"), name: "openai" }
      const result = yield* Kernel.run(limited("openai/gpt-4o"), "go", { provider: priced })
      assert.strictEqual(result.text, "done")
    }).pipe(Effect.provide(kernel))
  )
})
