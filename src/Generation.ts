/**
 * Options for generating a reply.
 *
 * A plain value. Absent options are left to the model. Options that a model does not take are not sent, and
 * `dropped` of the event `llm_response` names them.
 *
 * @since 0.1.0
 */

import type { Json } from "effect/Schema"

/**
 * Options of one reply, common to all vendors.
 *
 * @category models
 * @since 0.1.0
 */
export interface Generation {
  /** At least 0. The maximum depends on the vendor. */
  readonly temperature?: number
  /** Maximum length of the reply in tokens. Anthropic requires one: by default 4096 plus the `budget` of thinking. */
  readonly maxTokens?: number
  /** From 0 to 1. */
  readonly topP?: number
  /** Texts that end the reply. They are not part of it. */
  readonly stopSequences?: ReadonlyArray<string>
  /** A whole number. */
  readonly seed?: number
  /**
   * The amount of thinking: `budget` in tokens for vendors that count them (Anthropic, and Gemini, where -1 leaves it
   * to the model), `effort` by the vendor's names (`low`, `medium`, `high`). Ollama receives neither; it thinks with
   * `extra: { ollama: { think: true } }`.
   */
  readonly thinking?: { readonly budget?: number; readonly effort?: string }
  /**
   * Options of single vendors by provider name, such as `{ anthropic: { top_k: 5 } }`. They are sent unchanged to that
   * provider only, and override the options above.
   */
  readonly extra?: { readonly [key: string]: Json }
}

/**
 * No options.
 *
 * @category constructors
 * @since 0.1.0
 */
export const empty: Generation = {}

/**
 * Merges two sets of options. Those of `over` take precedence; `extra` is merged by key.
 *
 * @category combinators
 * @since 0.1.0
 */
export const merge = (base: Generation, over: Generation): Generation => {
  if (over === empty) return base
  const given = Object.fromEntries(Object.entries(over).filter(([, value]) => value !== undefined && value !== null))
  const extra = { ...base.extra, ...over.extra }
  return { ...base, ...given, ...(Object.keys(extra).length > 0 ? { extra } : {}) }
}
