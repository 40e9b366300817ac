import { Effect, Schema } from "effect"
import { Agent, Skill } from "kernai"

export const population = Skill.make("population", {
  description: "Tells how many people live in a city",
  input: Schema.Struct({ city: Schema.String }),
  effects: "read",
  execute: ({ city }) => Effect.succeed(city === "Oslo" ? 717_710 : 2_746_984)
})

export const agent = Agent.make({
  instructions: "You compare cities.",
  model: "scripted",
  // Plans are written in blocks, by any model.
  dialect: "blocks",
  skills: [population]
})

/** A plan by which a model splits a goal into tasks; each is done by a run of its own. */
export const plan = JSON.stringify({
  goal: "compare two cities",
  strategy: "mixed",
  tasks: [
    { id: "oslo", input: "Find the population of Oslo.", parallel: true },
    { id: "rome", input: "Find the population of Rome.", parallel: true },
    { id: "compare", input: "Say which city is larger.", depends_on: ["oslo", "rome"] }
  ]
})
