import { Effect, Schema } from "effect"
import { Agent, Skill } from "kernai"

/** A skill that the model may call. Its input is a Schema; `read` means that calling it twice does no harm. */
export const population = Skill.make("population", {
  description: "Tells how many people live in a city",
  input: Schema.Struct({ city: Schema.String }),
  effects: "read",
  execute: ({ city }) => Effect.succeed(city === "Oslo" ? 717_710 : 0)
})

export const agent = Agent.make({
  instructions: "You answer questions about cities.",
  model: "scripted",
  dialect: "auto",
  skills: [population]
})
