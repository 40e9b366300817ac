/** Sequential pipeline: each task works on the result of the one before it. */
import { Scenario } from "kernai/testing"

const plan = {
  goal: "A headline for the release",
  strategy: "sequential",
  tasks: [
    { id: "facts", input: "List the facts in: 'Version 2 starts in 80 ms, needs no key and keeps every run.'" },
    { id: "draft", input: "Write a sentence from these facts.", depends_on: ["facts"] },
    { id: "headline", input: "Shorten the sentence to six words.", depends_on: ["draft"] }
  ]
}

const says = (text: string) => [{ text: `<block type="final">${text}</block>`, delay: 10 }]

export default Scenario.make({
  name: "pipeline",
  description: "Three tasks, one after the other, each on the result before it",
  instructions: "You edit texts in steps: facts, draft, headline. Give each step to a sub-agent, in sequence.",
  skills: [],
  input: "Make a headline of: 'Version 2 starts in 80 ms, needs no key and keeps every run.'",
  offline: {
    root: [
      `<block type="plan">${JSON.stringify(plan)}</block>`,
      '<block type="final">Starts fast, keeps every run</block>'
    ],
    tasks: {
      facts: says("80 ms to start; no key; every run is kept"),
      draft: says("Version 2 starts in 80 ms without a key and keeps every run."),
      headline: says("Starts fast, keeps every run")
    }
  },
  expect: ({ recording, result }) => {
    const inputs = recording.filter((entry) => entry.event === "messages_sent" && entry.taskId === "headline")
    return [
      ...(JSON.stringify(inputs).includes("without a key") || inputs.length === 0
        ? []
        : ["the last task did not read the draft"]),
      ...(result === null || result === "" ? ["there is no headline"] : [])
    ]
  }
})
