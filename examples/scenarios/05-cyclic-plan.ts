/** Cyclic plan: two tasks that wait for each other are rejected, and the correction names them. */
import { Scenario } from "kernai/testing"

const circle = {
  goal: "The egg and the hen",
  strategy: "parallel",
  tasks: [
    { id: "egg", input: "Describe the egg.", depends_on: ["hen"] },
    { id: "hen", input: "Describe the hen.", depends_on: ["egg"] }
  ]
}

const mended = { ...circle, tasks: [circle.tasks[0], { id: "hen", input: "Describe the hen." }] }

const says = (text: string) => [`<block type="final">${text}</block>`]

export default Scenario.make({
  name: "cyclic-plan",
  description: "A plan with a circle is refused with its reason; the model mends it",
  instructions:
    "You describe things. Start a workflow in which egg waits for hen and hen waits for egg. If it is refused, mend it.",
  skills: [],
  input: "Describe the egg and the hen, each from the other.",
  offline: {
    root: [
      `<block type="plan">${JSON.stringify(circle)}</block>`,
      `<block type="plan">${JSON.stringify(mended)}</block>`,
      '<block type="final">First the hen, then the egg she laid.</block>'
    ],
    tasks: { egg: says("It is hers."), hen: says("She was first.") }
  },
  expect: ({ provider, recording }) => {
    const refused = recording.find((entry) => entry.event === "plan_rejected")
    const isTold = JSON.stringify(recording).includes("wait for each other in a circle")
    // A live model may notice the cycle itself and never send it.
    return provider !== "script" || (refused !== undefined && isTold) ? [] : ["the refusal was not told"]
  }
})
