/**
 * A workflow: the model splits its goal into tasks, and each is done by a sub-agent.
 *
 * `rome` and `oslo` run at once; `compare` waits for both and reads their
 * results. Every sub-agent is a run of its own, with the same instructions and
 * skills, and never with more rights. The model is scripted:
 * npm run example -- examples/07-workflow.ts
 */
import { Console, Effect, Layer, Schema, Stream } from "effect"
import { Agent, Kernel, Provider, Skill, SkillRegistry } from "kernai"
import { Scenario } from "kernai/testing"

const population = Skill.make("population", {
  description: "Tells how many people live in a city",
  input: Schema.Struct({ city: Schema.String }),
  effects: "read",
  execute: ({ city }) => Effect.succeed(city === "Rome" ? "2.8 million" : "0.7 million")
})

const agent = Agent.make({
  instructions: "You compare cities. Ask one sub-agent for each.",
  model: "scripted",
  skills: [population],
  // Limits of the whole tree: two sub-agents at a time besides the root, ten in total, and tokens for all of them
  // together.
  spawn: { maxAgents: 10, maxConcurrent: 3, maxDepth: 1 },
  budget: { maxTokens: 50_000 }
})

// The replies of the model: first a plan, finally an answer. The replies of tasks are by id.
const plan = {
  goal: "Which city is larger?",
  strategy: "mixed",
  tasks: [
    { id: "rome", input: "Find the population of Rome.", parallel: true },
    { id: "oslo", input: "Find the population of Oslo.", parallel: true },
    { id: "compare", input: "Say which city is larger.", depends_on: ["rome", "oslo"] }
  ]
}
const look = (city: string) => `<block type="command" name="population">{"city": "${city}"}</block>`
const model = Scenario.scripted({
  root: [`<block type="plan">${JSON.stringify(plan)}</block>`, '<block type="final">Rome is larger than Oslo.</block>'],
  tasks: {
    rome: [look("Rome"), { text: '<block type="final">2.8 million</block>', delay: 10 }],
    oslo: [look("Oslo"), { text: '<block type="final">0.7 million</block>', delay: 40 }],
    compare: ['<block type="final">Rome</block>']
  }
})

// One stream has the events of the whole tree. Each one names its run: `depth`, `taskId`, `runId`.
const program = Kernel.stream(agent, "Is Rome larger than Oslo?").pipe(
  Stream.runForEach((event) => {
    switch (event.type) {
      case "task_start":
        return Console.log(`${event.id} starts`)
      case "skill_result":
        return Console.log(`  ${event.taskId} used ${event.skill}: ${event.output}`)
      case "task_complete":
        return Console.log(`${event.id} is done: ${event.result}`)
      case "run_completed":
        return event.depth === 0 ? Console.log(`answer: ${event.result?.text}`) : Effect.void
      default:
        return Effect.void
    }
  })
)

const KernelLive = Kernel.layerMemory.pipe(
  Layer.provide([SkillRegistry.layer(population), Layer.succeed(Provider.Provider, model)])
)

await Effect.runPromise(Effect.provide(program, KernelLive))

// Prints:
// rome starts
//   rome used population: 2.8 million
// oslo starts
//   oslo used population: 0.7 million
// rome is done: 2.8 million
// oslo is done: 0.7 million
// compare starts
// compare is done: Rome
// answer: Rome is larger than Oslo.
