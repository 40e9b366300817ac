/**
 * Fan-out and aggregation: the same question about three regions at once, then one answer from all.
 */
import { Effect, Schema } from "effect"
import { Skill } from "kernai"
import { Scenario } from "kernai/testing"

const sales = Skill.make("sales", {
  description: "Sales of a region in the last quarter, in thousands",
  input: Schema.Struct({ region: Schema.String }),
  effects: "read",
  execute: ({ region }) => Effect.succeed({ north: 120, south: 95, west: 140 }[region] ?? 0)
})

const plan = {
  goal: "Sales of the quarter",
  strategy: "parallel",
  tasks: ["north", "south", "west"].map((region) => ({ id: region, input: `Find the sales of the region ${region}.` }))
}

const region = (name: string, amount: number) => [
  { text: `<block type="command" name="sales">{"region": "${name}"}</block>`, delay: 20 },
  { text: `<block type="final">${amount}</block>`, delay: 20 }
]

export default Scenario.make({
  name: "fan-out",
  description: "Three tasks at once, one sum",
  instructions: "You report sales. Ask one sub-agent for each region, then add up.",
  skills: [sales],
  input: "How much did we sell in north, south and west together?",
  offline: {
    root: [
      `<block type="plan">${JSON.stringify(plan)}</block>`,
      '<block type="final">355 thousand: north 120, south 95, west 140.</block>'
    ],
    tasks: { north: region("north", 120), south: region("south", 95), west: region("west", 140) }
  },
  expect: ({ result, tasks }) => [
    ...(tasks >= 3 ? [] : ["it did not ask one sub-agent for each region"]),
    ...(result?.includes("355") === true ? [] : ["the sum is wrong"])
  ]
})
