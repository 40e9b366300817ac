import { Effect, Schema } from "effect"
import { Agent, Skill } from "kernai"

const population = Skill.make("population", {
  description: "Tells how many people live in a city",
  input: Schema.Struct({ city: Schema.String }),
  effects: "read",
  execute: ({ city }) => Effect.succeed(city === "Oslo" ? 717_710 : 2_746_984)
})

/** The models by their roles. All are scripted here; name real ones, such as `anthropic/claude-sonnet-4-20250514`. */
const model = (role: string) => `scripted/${role}`

/** Called like a skill: each call is a run of its own below the caller's. */
export const researcher = Agent.make({
  name: "researcher",
  description: "Finds facts about one city.",
  instructions: "You look cities up.",
  model: model("researcher"),
  dialect: "auto",
  input: Schema.Struct({ city: Schema.String }),
  skills: [population]
})

/** Takes over the conversation and gives the final answer. */
export const writer = Agent.make({
  name: "writer",
  description: "Writes the article.",
  instructions: "You write one sentence from what you were given.",
  model: model("writer"),
  dialect: "auto"
})

/** Calls researchers, two at once, then hands over to the writer. */
export const editor = Agent.make({
  name: "editor",
  instructions: "You have facts looked up, and then an article written.",
  model: model("editor"),
  dialect: "auto",
  agents: [researcher],
  handoffs: [writer],
  concurrency: 2
})
