/**
 * Task failure and recovery: one source is down, the others answer, a second plan asks elsewhere.
 */
import { Effect, Schema } from "effect"
import { Skill } from "kernai"
import { Scenario } from "kernai/testing"

const rate = Skill.make("exchange_rate", {
  description: "The euro in dollars, from a source: bank, market or mirror",
  input: Schema.Struct({ source: Schema.String }),
  effects: "read",
  execute: ({ source }) => (source === "market" ? Effect.fail("market is closed") : Effect.succeed(1.08))
})

const plan = (sources: ReadonlyArray<string>) =>
  `<block type="plan">${JSON.stringify({
    goal: "Two opinions",
    strategy: "parallel",
    tasks: sources.map((source) => ({ id: source, input: `Ask ${source} for the rate.` }))
  })}</block>`

const ask = (source: string) => `<block type="command" name="exchange_rate">{"source": "${source}"}</block>`

export default Scenario.make({
  name: "recovery",
  description: "A task gives up, its sibling does not, and the model asks another source",
  instructions: "You compare exchange rates of two sources by sub-agents. When one fails, ask another one.",
  skills: [rate],
  maxSteps: 4,
  input: "What is the euro in dollars? Compare bank and market.",
  offline: {
    root: [
      plan(["bank", "market"]),
      plan(["mirror"]),
      '<block type="final">1.08 by bank and mirror; the market is closed.</block>'
    ],
    tasks: {
      bank: [ask("bank"), '<block type="final">1.08</block>'],
      market: [ask("market")],
      mirror: [ask("mirror"), '<block type="final">1.08</block>']
    }
  },
  expect: ({ provider, recording, result }) => [
    ...(provider !== "script" || recording.some((entry) => entry.event === "task_error") ? [] : ["no task failed"]),
    ...(result?.includes("1.08") === true ? [] : ["the rate is missing"])
  ]
})
