import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted, Schema, Stream } from "effect"
import {
  Agent,
  Kernel,
  MediaStore,
  ModelRegistry,
  ProtocolRegistry,
  type Provider,
  Recorder,
  Redaction,
  RunStore,
  Skill,
  SkillRegistry
} from "kernai"
import { MockProvider } from "kernai/testing"

const skill = (name: string) =>
  Skill.make(name, { description: "", input: Schema.Struct({}), execute: () => Effect.succeed(name) })
const known = skill("known")

const kernel = Kernel.layerMemory.pipe(
  Layer.provide([SkillRegistry.layer(known), MockProvider.layer("<final>done</final>")])
)

/** A kernel without a provider, and its store. */
const ported = Kernel.layerNoProvider.pipe(
  Layer.provide([SkillRegistry.layer(known), ProtocolRegistry.layer(), MediaStore.layerMemory]),
  Layer.provideMerge(RunStore.layerMemory)
)

/** What is logged while an agent runs twice. */
const logged = (agent: Agent.Agent) => {
  const lines: Array<string> = []
  return Effect.all([Kernel.run(agent, "go"), Kernel.run(agent, "go")]).pipe(
    Effect.map((results) => {
      assert.deepStrictEqual(
        results.map(({ text }) => text),
        ["done", "done"]
      )
      return lines
    }),
    Effect.provide([kernel, Logger.layer([Logger.make(({ message }) => void lines.push(String(message)))])])
  )
}

describe("the provider, worker and recorder of a run", () => {
  it.effect("warns of no skill in the agent's list", () =>
    Effect.gen(function* () {
      for (const skills of [[known], "all"] as const) {
        assert.deepStrictEqual(yield* logged(Agent.make({ instructions: "", model: "m", skills })), [])
      }
      assert.deepStrictEqual(yield* logged(Agent.make({ instructions: "", model: "m" })), [])
    })
  )

  it.effect("uses the provider of the layer for a model named with its vendor when there is no registry (BP-31)", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: "openai/gpt-4o" })
      assert.strictEqual((yield* Kernel.run(agent, "go")).text, "done")
    }).pipe(Effect.provide(kernel))
  )

  it.effect("uses the provider of the layer for a model without a vendor, also beside a registry (BP-31)", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: "m" })
      assert.strictEqual((yield* Kernel.run(agent, "go")).text, "done")
    }).pipe(Effect.provide(kernel.pipe(Layer.provide(ModelRegistry.layer({})))))
  )

  it.effect("fails with `not_configured` for the model of a provider when there is no registry (BP-31)", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: { id: "m", provider: "openai", capabilities: ["text"] } })
      const error = yield* Effect.flip(Kernel.run(agent, "go"))
      assert.strictEqual(error._tag === "ProviderError" ? error.reason : error._tag, "not_configured")
    }).pipe(Effect.provide(ported))
  )

  it.effect("removes only the provider's own name from the start of a model's name", () =>
    Effect.gen(function* () {
      const names: Array<string> = []
      for (const model of ["mine/m", "other/mine/m", "mine/mine/m"]) {
        const provider = { ...MockProvider.make("<final>done</final>"), name: "mine" }
        const asked = {
          ...provider,
          stream: (request: Provider.Request) => (names.push(request.model.id), provider.stream(request))
        }
        yield* Kernel.run(Agent.make({ instructions: "", model }), "go", { provider: asked })
      }
      assert.deepStrictEqual(names, ["m", "other/mine/m", "mine/m"])
    }).pipe(Effect.provide(kernel))
  )

  it.effect("stores records under the id of its worker, or of this process (R-5)", () =>
    Effect.gen(function* () {
      const agent = Agent.make({ instructions: "", model: "m" })
      yield* Kernel.run(agent, "go", { runId: "own" })
      yield* Kernel.run(agent, "go", { runId: "lent", workerId: "ada" })
      const writers = yield* RunStore.RunStore.use((store) =>
        Effect.forEach(["own", "lent"], (runId) => Stream.runCollect(store.read(runId)))
      )
      const names = writers.map((records) => [...new Set(records.map(({ workerId }) => workerId.split("#")[0]))])
      assert.deepStrictEqual(names, [["local"], ["ada"]])
    }).pipe(Effect.provide(ported.pipe(Layer.provide(MockProvider.layer("<final>done</final>")))))
  )

  it.effect("hides known secrets from the recorder (S-7)", () =>
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

  it.effect("knows the price of a model given by name when the budget limits cost (CP-15)", () =>
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
