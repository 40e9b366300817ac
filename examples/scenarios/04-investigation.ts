/**
 * DAG investigation: two searches at once, a comparison of both, a report from that.
 */
import { Effect, Schema } from "effect"
import { Skill } from "kernai"
import { Scenario } from "kernai/testing"

const logs = Skill.make("search_logs", {
  description: "Searches the logs of a service",
  input: Schema.Struct({ service: Schema.String }),
  effects: "read",
  execute: ({ service }) =>
    Effect.succeed(service === "payments" ? "09:02 connection pool exhausted" : "09:01 retries doubled")
})

const plan = {
  goal: "Why checkout failed",
  strategy: "mixed",
  tasks: [
    { id: "payments", input: "Search the logs of payments.", parallel: true },
    { id: "gateway", input: "Search the logs of gateway.", parallel: true },
    { id: "order", input: "Say what came first and what it caused.", depends_on: ["gateway", "payments"] },
    { id: "report", input: "Write one sentence for the status page.", depends_on: ["order"] }
  ]
}

const search = (service: string, found: string) => [
  { text: `<block type="command" name="search_logs">{"service": "${service}"}</block>`, delay: 15 },
  { text: `<block type="final">${found}</block>`, delay: 15 }
]

export default Scenario.make({
  name: "investigation",
  description: "A graph of four tasks: two at once, then one of both, then one of that",
  instructions: "You investigate outages. Let sub-agents search, then compare, then report.",
  skills: [logs],
  input: "Why did checkout fail this morning?",
  offline: {
    root: [
      `<block type="plan">${JSON.stringify(plan)}</block>`,
      '<block type="final">The gateway doubled its retries at 9:01, which exhausted the pool of payments at 9:02.</block>'
    ],
    tasks: {
      payments: search("payments", "pool exhausted at 09:02"),
      gateway: search("gateway", "retries doubled at 09:01"),
      order: [{ text: '<block type="final">retries first, then the pool</block>', delay: 15 }],
      report: [{ text: '<block type="final">Doubled retries exhausted a pool.</block>', delay: 15 }]
    }
  },
  expect: ({ recording, result, tasks }) => {
    const at = (event: string, id: string) =>
      recording.findIndex((entry) => entry.event === event && JSON.stringify(entry.data).includes(`"task_id":"${id}"`))
    return [
      ...(tasks === 0 || at("task_complete", "payments") < at("task_start", "order") ? [] : ["a task began too early"]),
      ...(/retr/i.test(result ?? "") ? [] : ["the cause is not named"])
    ]
  }
})
