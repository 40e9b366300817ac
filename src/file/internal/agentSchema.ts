/**
 * The JSON Schema of an agent file, with a description of every key.
 */

import * as Schema from "effect/Schema"
import { Config } from "../../internal/agent/agentConfig.ts"
import type { JsonObject } from "../../internal/base/json.ts"
import { jsonObject } from "../../internal/base/json.ts"

const words: { readonly [K in keyof typeof Config.fields]: string } = {
  version: "The version of this format",
  name: "Who the agent is in logs and events",
  description: "What it is for",
  system_prompt: "Its instructions",
  model: "`<provider>/<model>`, or all that is known of a model",
  skills: "The skills it may call: `all`, or a list of names; none when null or left out",
  protocols: "The protocols it may speak; all that are registered when null or left out",
  gate: "Whether `skills` is enforced when a call runs, or only listed",
  max_steps: "Turns before the run stops without an answer",
  max_turns: "Another name of max_steps",
  prose: "What text without blocks means",
  dialect: "Blocks in text, native tool calls, or as the model is best asked (`auto`)",
  markups: "Other markup its model's calls are understood in",
  grammar: "Whether its replies are held to the grammar of its dialect, where a provider can",
  concurrency: "Calls of one reply that may run at once",
  task_concurrency: "Tasks of a workflow that may run at once",
  max_repeats: "How often the same calls may give the same results in a row",
  temperature: "How freely the model chooses",
  max_tokens: "The longest reply, in tokens",
  top_p: "The share of the likeliest tokens to choose from",
  stop_sequences: "Texts that end a reply",
  seed: "Makes choices repeatable, where a provider can",
  thinking: "How much the model may think before it answers",
  provider_options: "Further options, by the name of the provider",
  budget: "What a run may spend",
  spawn: "How many runs it may start, and how deep",
  context_window: "Tokens of a prompt and of reserved_output_tokens, together",
  reserved_output_tokens: "Tokens kept free for the reply",
  output_schema: "JSON Schema of a typed answer, without patterns",
  mcpServers: "MCP servers whose tools it may call, as other programs write them: command, args, env; or url, headers"
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
