/**
 * Tools that vendors run themselves, as values for the `skills` of an agent.
 *
 * Each is sent to the vendors that offer it, in both dialects, unless the policy of the run forbids it. Its calls and
 * the pages it found are part of `model_completed`; their cost follows from the price of the model (`Price.hosted`).
 * Use `Skill.hosted` to define others.
 *
 * @since 0.1.0
 */

import type { JsonObject } from "../kit/json.ts"
import * as Skills from "../Skill.ts"

/**
 * A tool that a vendor runs.
 *
 * @category models
 * @since 0.1.0
 */
export type HostedTool<Name extends string> = ReturnType<typeof Skills.hosted<Name>>

/**
 * Creates a web search, for Anthropic, OpenAI (over Responses) and Gemini. `options` are merged into each vendor's
 * definition by provider name, as in `{ anthropic: { max_uses: 3 } }`.
 *
 * Gemini 2 rejects it together with skills.
 *
 * @category constructors
 * @since 0.1.0
 */
export const webSearch = (options: Options = {}): HostedTool<"web_search"> =>
  Skills.hosted("web_search", {
    description: "Searches the web.",
    tools: {
      anthropic: { type: "web_search_20250305", name: "web_search", ...options.anthropic },
      openai: { type: "web_search", ...options.openai },
      google: { google_search: { ...options.google } },
      "google-interactions": { type: "google_search", ...options.google }
    }
  })

/**
 * Creates a sandbox of the vendor in which the model runs code, for Anthropic, OpenAI (over Responses) and Gemini.
 * Anthropic also requires the header `anthropic-beta: code-execution-2025-08-25`.
 *
 * Gemini 2 rejects it together with skills.
 *
 * @category constructors
 * @since 0.1.0
 */
export const codeExecution = (options: Options = {}): HostedTool<"code_execution"> =>
  Skills.hosted("code_execution", {
    description: "Runs code in a sandbox of the vendor.",
    tools: {
      anthropic: { type: "code_execution_20250825", name: "code_execution", ...options.anthropic },
      openai: { type: "code_interpreter", container: { type: "auto" }, ...options.openai },
      google: { code_execution: { ...options.google } },
      "google-interactions": { type: "code_execution", ...options.google }
    }
  })

/**
 * A vendor's own options for a tool.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly anthropic?: JsonObject
  readonly openai?: JsonObject
  readonly google?: JsonObject
}
