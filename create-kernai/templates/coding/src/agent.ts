import { Agent } from "kernai"

export const agent = Agent.make({
  instructions: `You repair code in a folder.
Run the tests first, look before you change something, and keep changes small.`,
  model: "scripted",
  dialect: "tools",
  skills: "all"
})
