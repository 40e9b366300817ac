/**
 * Triage: read the tickets, sort them by urgency, say what to do first.
 */
import { Effect, Schema } from "effect"
import { Skill } from "kernai"
import { Scenario } from "kernai/testing"

const tickets = Skill.make("open_tickets", {
  description: "The tickets nobody has answered yet",
  input: Schema.Struct({}),
  effects: "read",
  execute: () =>
    Effect.succeed([
      { id: 7, from: "a shop", text: "Checkout fails for all customers since 9:00." },
      { id: 8, from: "a student", text: "Could the logo be a little larger?" },
      { id: 9, from: "a bank", text: "One export is missing its last row." }
    ])
})

const label = Skill.make("label", {
  description: "Labels a ticket",
  input: Schema.Struct({ id: Schema.Int, urgency: Schema.Literals(["now", "today", "later"]) }),
  effects: "idempotent",
  execute: ({ id, urgency }) => Effect.succeed(`ticket ${id} is for ${urgency}`)
})

export default Scenario.make({
  name: "triage",
  description: "Reads tickets, labels each, names the first",
  instructions: "You sort support tickets. Label every ticket, then say which one is first and why.",
  skills: [tickets, label],
  input: "Sort what came in today.",
  offline: {
    root: [
      '<block type="command" name="open_tickets"></block>',
      `<block type="command" name="label">{"id": 7, "urgency": "now"}</block>
<block type="command" name="label">{"id": 8, "urgency": "later"}</block>
<block type="command" name="label">{"id": 9, "urgency": "today"}</block>`,
      '<block type="final">Ticket 7 first: no customer of the shop can pay. Then 9, then 8.</block>'
    ]
  },
  expect: ({ recording, result }) => [
    ...(recording.filter((entry) => entry.event === "skill_result").length === 4
      ? []
      : ["not every ticket is labelled"]),
    ...(/7/.test(result ?? "") ? [] : ["the outage is not named"])
  ]
})
