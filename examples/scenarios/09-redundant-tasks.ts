/**
 * Redundant tasks: the same question under several ids runs once under each, and one answer comes back.
 */
import { Scenario } from "kernai/testing"

const plan = {
  goal: "Be sure",
  strategy: "parallel",
  tasks: ["first", "second", "third"].map((id) => ({ id, input: `What is 17 times 3? You are the ${id} to be asked.` }))
}

export default Scenario.make({
  name: "redundant-tasks",
  description: "Three sub-agents answer one question; the majority wins",
  instructions: "You never trust one opinion: ask three sub-agents the same and give the majority.",
  skills: [],
  input: "What is 17 times 3?",
  offline: {
    root: [`<block type="plan">${JSON.stringify(plan)}</block>`, '<block type="final">51, by two of three.</block>'],
    tasks: {
      first: ['<block type="final">51</block>'],
      second: ['<block type="final">41</block>'],
      third: ['<block type="final">51</block>']
    }
  },
  expect: ({ result }) => (result?.includes("51") === true ? [] : ["the majority lost"])
})
