/** Nested plan: a sub-agent may not start a workflow of its own. It receives a correction, and does the work itself. */
import { Scenario } from "kernai/testing"

const plan = (id: string, input: string) =>
  `<block type="plan">${JSON.stringify({ goal: "count", strategy: "parallel", tasks: [{ id, input }] })}</block>`

export default Scenario.make({
  name: "nested-plan",
  description: "The plan of a sub-agent is refused as nested; its task ends all the same",
  instructions: "You count letters. Give the counting to one sub-agent.",
  skills: [],
  input: "How many letters has 'effect'?",
  offline: {
    root: [plan("count", "Count the letters of 'effect'."), '<block type="final">Six.</block>'],
    tasks: { count: [plan("again", "Count them for me."), '<block type="final">6</block>'] }
  },
  expect: ({ provider, recording, result }) => {
    const refused = recording.find((entry) => entry.event === "plan_rejected" && entry.depth === 1)
    return [
      ...(provider !== "script" || JSON.stringify(refused?.data).includes("nested")
        ? []
        : ["the nested plan was not refused"]),
      ...(Math.max(...recording.map((entry) => entry.depth)) <= 1 ? [] : ["a run is two levels deep"]),
      ...(/six|6/i.test(result ?? "") ? [] : ["the count is wrong"])
    ]
  }
})
