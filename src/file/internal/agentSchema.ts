/**
 * The JSON Schema of an agent file, with a description of every key.
 */

import * as Schema from "effect/Schema"
import { Config } from "../../Agent.ts"
import type { JsonObject } from "../../kit/json.ts"
import { jsonObject } from "../../kit/json.ts"

const words: { readonly [K in keyof typeof Config.fields]: string } = {
  version: "The version of this format",
  name: "The name of the agent in logs and events",
  aliases: "The names it had before, under which stored runs belong to it",
  agent_version: "Its version, stored with its runs",
  description: "The purpose of the agent",
  system_prompt: "Its instructions",
  model: "`<provider>/<model>`, or the facts of a model",
  skills: "The skills it may call: `all`, or a list of names; none when null or omitted",
  protocols: "The protocols it may use; all registered ones when null or omitted",
  gate: "Whether `skills` is enforced when a call runs, or only listed",
  max_steps: "Maximum number of turns",
  max_turns: "Another name for max_steps",
  prose: "How text without blocks is understood",
  dialect: "Blocks in text, native tool calls, or whichever suits the model (`auto`)",
  markups: "Other markups in which its model may write calls",
  grammar: "Whether replies are constrained by the grammar of the dialect, with providers that support it",
  concurrency: "Calls of one reply that may run at once",
  task_concurrency: "Tasks of a workflow that may run at once",
  background: "Whether agents that call it may do so in the background",
  max_repeats: "How often the same calls may give the same results in a row",
  temperature: "The sampling temperature",
  max_tokens: "Maximum length of a reply in tokens",
  top_p: "The probability mass of the tokens to sample from",
  stop_sequences: "Texts that end a reply",
  seed: "Makes sampling repeatable, with providers that support it",
  thinking: "How much the model may think before it answers",
  provider_options: "Further options by provider name",
  budget: "Limits on tokens, cost and time of a run",
  spawn: "Limits on the number and depth of runs below it",
  context_window: "Maximum tokens of a prompt plus reserved_output_tokens",
  reserved_output_tokens: "Tokens reserved for the reply",
  output_schema: "JSON Schema of a typed answer, without patterns",
  mcpServers: "MCP servers whose tools it may call, in the usual format: command, args, env; or url, headers"
}

/** The schema with which an editor checks a file. */
export const jsonSchema = (): JsonObject => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(Config)
  const { properties, ...plain } = jsonObject(JSON.parse(JSON.stringify(schema)))
  const all = jsonObject(properties)
  const described = Object.entries(words).map(([key, description]) => [key, { ...jsonObject(all[key]), description }])
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "kernai agent",
    description: "An agent: who runs, with which model and rights",
    ...plain,
    properties: Object.fromEntries(described),
    // The user's own keys are kept.
    patternProperties: { "^(?:x[-_].*|\\$schema)$": {} },
    additionalProperties: false,
    ...(Object.keys(definitions).length === 0 ? {} : { $defs: jsonObject(JSON.parse(JSON.stringify(definitions))) })
  }
}
