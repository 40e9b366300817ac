/**
 * Misspelt options. Each message of the compiler holds the words in quotes; `test/misspelt.test.ts` compiles this file
 * without the directives and looks for them.
 */
import { Effect, Schema } from "effect"
import { Agent, Kernel, Protocol, Skill } from "kernai"
import { AnthropicProvider, OpenAiCompatibleProvider } from "kernai/provider"

const agent = Agent.make({ instructions: "", model: "m" })
const input = Schema.Struct({ query: Schema.String })
const output = Schema.Struct({ answer: Schema.String })
const search = Skill.make("search", { description: "", input, execute: ({ query }) => Effect.succeed(query) })

// @ts-expect-error "parameters" "MakeOptions"
Skill.make("search", { description: "", parameters: input, execute: () => Effect.void })
// @ts-expect-error "efects" "effects" "MakeOptions"
Skill.make("search", { description: "", input, efects: "read", execute: () => Effect.void })
// @ts-expect-error "handler" "MakeOptions"
Skill.make("search", { description: "", input, handler: () => Effect.void })
// @ts-expect-error "progres" "progress" "MakeOptions"
Skill.make("search", { description: "", input, progres: Schema.String, execute: () => Effect.void })
// @ts-expect-error "description" "MakeOptions"
Skill.make("search", { input, execute: () => Effect.void })
// @ts-expect-error "query"
Skill.make("search", { description: "", input: { query: Schema.String }, execute: () => Effect.void })

// @ts-expect-error "output" "Schema.Struct"
Agent.make({ instructions: "", model: "m", output: { answer: Schema.String } })
// @ts-expect-error "maxStep" "maxSteps"
Agent.make({ instructions: "", model: "m", maxStep: 3 })
// @ts-expect-error "instruction" "instructions"
Agent.make({ instruction: "", model: "m" })
// @ts-expect-error "maxTurns"
Agent.make({ instructions: "", model: "m", output, maxTurns: 3 })
// @ts-expect-error "tools"
Agent.make({ instructions: "", model: "m", skills: [search], output, tools: [] })

// @ts-expect-error "handler" "handle"
Protocol.make("ask", { handler: () => Effect.void })
// @ts-expect-error "docs"
Protocol.make("ask", { docs: "", handle: () => Effect.void })

// @ts-expect-error "runID" "runId"
export const run = Kernel.run(agent, "", { runID: "r" })
// @ts-expect-error "onTaskDone"
export const stream = Kernel.stream(agent, "", { onTaskDone: () => Effect.void })
// @ts-expect-error "approvals"
export const resume = Kernel.resume(agent, "r", { approvals: [] })

// @ts-expect-error "string" "Redacted"
export const plain = AnthropicProvider.make({ apiKey: "sk-ant-…" })
// @ts-expect-error "string" "Redacted"
export const compatible = OpenAiCompatibleProvider.make({ name: "mine", baseUrl: "https://llm.example", apiKey: "k" })
