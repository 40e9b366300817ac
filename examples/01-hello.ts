/**
 * One skill, one agent, one run.
 *
 * The model is scripted, so this runs without a key:
 * npm run example -- examples/01-hello.ts
 */
import { Console, Effect, Layer, Schema } from "effect"
import { Agent, Kernel, Skill, SkillRegistry } from "kernai"
import { MockProvider } from "kernai/testing"

// A skill that the model may call. Its input is a Schema, so `execute` only receives decoded input.
const population = Skill.make("population", {
  description: "Tells how many people live in a city",
  input: Schema.Struct({ city: Schema.String }),
  effects: "read",
  execute: ({ city }) => Effect.succeed(city === "Oslo" ? "717710" : "unknown")
})

// An agent is a plain value.
const agent = Agent.make({
  instructions: "You answer questions about cities.",
  model: "scripted",
  skills: [population]
})

const program = Effect.gen(function* () {
  const result = yield* Kernel.run(agent, "How many people live in Oslo?")
  yield* Console.log(result.text)
  yield* Console.log(`${result.turns} turns, ${result.calls.length} call`)
})

// Composed once, at the edge. For a real model, replace the mock by `AnthropicProvider.layer`.
const KernelLive = Kernel.layerMemory.pipe(
  Layer.provide([
    SkillRegistry.layer(population),
    MockProvider.layer(
      `<block type="command" name="population">{"city": "Oslo"}</block>`,
      `<block type="final">Oslo has 717,710 inhabitants.</block>`
    )
  ])
)

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// Oslo has 717,710 inhabitants.
// 2 turns, 1 call
