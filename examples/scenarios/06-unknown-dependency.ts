/** Unknown dependency: a task that depends on a missing task does not wait. */
import { Scenario } from "kernai/testing"

const plan = {
  goal: "A greeting",
  strategy: "parallel",
  tasks: [{ id: "greet", input: "Greet the reader.", depends_on: ["weather", "greet"] }]
}

export default Scenario.make({
  name: "unknown-dependency",
  description: "Dependencies on what is not there, or on itself, are dropped",
  instructions: "You greet. Use one sub-agent.",
  skills: [],
  input: "Greet me.",
  offline: {
    root: [`<block type="plan">${JSON.stringify(plan)}</block>`, '<block type="final">Good morning!</block>'],
    tasks: { greet: ['<block type="final">Good morning!</block>'] }
  },
  expect: ({ provider, recording }) => {
    const started = recording.find((entry) => entry.event === "task_start")
    return provider !== "script" || JSON.stringify(started?.data).includes('"depends_on":[]')
      ? []
      : ["the task waits for something that is not there"]
  }
})
