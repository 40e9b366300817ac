/** Kernels and conversations for tests of prompts. */
import { Effect, Layer, Schema } from "effect"
import { Agent, Kernel, Message, ModelRegistry, PromptPipeline, Skill } from "kernai"
import { MockProvider } from "kernai/testing"
import { command, final } from "./blocks.ts"
import { ports } from "./kernel.ts"

export const model = { id: "m", capabilities: ["text"] } as const

export const look = Skill.make("look", {
  description: "Looks",
  input: Schema.Struct({ size: Schema.optionalKey(Schema.Int) }),
  execute: ({ size = 5 }) => Effect.succeed("x".repeat(size))
})

export const looks = (input: unknown) => command("look", input)

export const done = final("done")

export const world = (
  mock: MockProvider.Mock,
  ...more: ReadonlyArray<Layer.Layer<never> | Layer.Layer<ModelRegistry.ModelRegistry>>
) =>
  Kernel.layer.pipe(
    Layer.provide(Layer.mergeAll(Layer.empty, ...more)),
    Layer.provideMerge(Layer.merge(MockProvider.layerOf(mock), ports(look)))
  )

export const said = (mock: MockProvider.Mock, call: number) => (mock.messagesAt(call) ?? []).map(Message.text)

export const compacting = (compaction: PromptPipeline.Compaction = {}) => PromptPipeline.layer({ compaction })

export const small = (dialect: "blocks" | "tools", contextWindow = 3_000) =>
  Agent.make({
    instructions: "",
    model,
    skills: "all",
    dialect,
    contextWindow,
    reservedOutputTokens: 500,
    maxSteps: 50
  })

export const bulky = (turns: number, size: number) => {
  const mock = MockProvider.make()
  mock.onCall((_, call) => (call >= turns ? "done" : { calls: [{ id: `c${call}`, name: "look", input: { size } }] }))
  return mock
}
