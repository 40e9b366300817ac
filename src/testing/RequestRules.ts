/**
 * Checks that a vendor would accept a request, from the rules that vendors publish.
 *
 * A request is checked as data, so nothing is sent. The adapters of `kernai/provider` pass for every conversation; a
 * provider of your own that speaks one of these formats can be held against the same rules.
 *
 * @since 0.1.0
 */

import { vendorRules, type Source, type Wire } from "../kit/vendorRules.ts"
import { violationsIn } from "./internal/wireChecks.ts"

export type {
  /**
   * A format of requests: `chat` is Chat Completions, and `mistral` the same with the rules of Mistral. `ai-sdk` and
   * `effect-ai` are prompts for models of other packages.
   *
   * @category models
   * @since 0.1.0
   */
  Wire
}

/**
 * A rule of a vendor: well-formed text, names and ids it accepts, results in their place. `shape` is what every
 * format requires, such as a known role, content in each message, and JSON as the input of a call.
 *
 * @category models
 * @since 0.1.0
 */
export type Rule = Source["rule"] | "shape"

/**
 * One thing that a vendor would refuse.
 *
 * @category models
 * @since 0.1.0
 */
export interface Violation {
  readonly rule: Rule
  /** Where it stands in the body, as in `messages[2].content[0]`. */
  readonly path: string
  readonly detail: string
}

/**
 * The formats that can be checked.
 *
 * @category models
 * @since 0.1.0
 */
export const wires: ReadonlyArray<Wire> = [
  "anthropic",
  "chat",
  "mistral",
  "responses",
  "gemini",
  "gemini-interactions",
  "ollama",
  "ai-sdk",
  "effect-ai"
]

/**
 * Returns what a vendor would refuse in a body, which is parsed JSON. For `ai-sdk` and `effect-ai` it is an object with
 * the `prompt` and the `tools`. An empty list means that the request satisfies every rule.
 *
 * @example
 * RequestRules.check("chat", { messages: [{ role: "user", content: "hi" }] }) // []
 *
 * @category checks
 * @since 0.1.0
 */
export const check = (wire: Wire, body: unknown): ReadonlyArray<Violation> => violationsIn(wire, body)

/**
 * Returns where a rule of a format is published, or a thread that shows the refusal.
 *
 * @category models
 * @since 0.1.0
 */
export const sourcesOf = (wire: Wire, rule: Rule): ReadonlyArray<string> =>
  vendorRules[wire].sources.flatMap((source) => (source.rule === rule ? [source.url] : []))
