import { Effect, Schema } from "effect"
import { Agent, Skill } from "kernai"
import { Code } from "kernai/code"

export const cities = Skill.make("cities", {
  description: "Lists the cities of a country",
  input: Schema.Struct({ country: Schema.String }),
  output: Schema.Struct({ names: Schema.Array(Schema.String) }),
  effects: "read",
  execute: ({ country }) => Effect.succeed({ names: country === "Norway" ? ["Oslo", "Bergen", "Hamar"] : [] })
})

export const population = Skill.make("population", {
  description: "Tells how many people live in a city",
  input: Schema.Struct({ city: Schema.String }),
  output: Schema.Int,
  effects: "read",
  execute: ({ city }) => Effect.succeed(city === "Oslo" ? 717_710 : city.length * 50_000)
})

export const agent = Agent.make({
  instructions: "You compare cities.",
  model: "scripted",
  dialect: "auto",
  agents: [Code.agent({ skills: [cities, population] })]
})
