/**
 * How a reply is to be generated (BP-111).
 *
 * A plain value: what is absent is left to the model, and what a model does
 * not take is left out by its adapter.
 *
 * @since 0.1.0
 */

import type { Json } from "effect/Schema"

/**
 * Options of one reply, in words that all vendors share.
 *
 * @category models
 * @since 0.1.0
 */
export interface Generation {
  /** From 0 on; how far it may go is the vendor's to say. */
  readonly temperature?: number
  /**
   * Upper bound of the reply, in tokens. Anthropic has to be given one: by default 4096 plus the `budget` of thinking.
   */
  readonly maxTokens?: number
  /** From 0 to 1. */
  readonly topP?: number
  /** Texts at which the reply ends; they are not part of it. */
  readonly stopSequences?: ReadonlyArray<string>
  /** A whole number. */
  readonly seed?: number
  /**
   * `budget` in tokens where the vendor counts them (Anthropic, and Gemini, which thinks as much as it likes at -1),
   * `effort` as the vendor words it (`low`, `medium`, `high`). Ollama is told neither (BP-106); it thinks with
   * `extra: { ollama: { think: true } }`.
   */
  readonly thinking?: { readonly budget?: number; readonly effort?: string }
  /**
   * Vendor options by the name of the provider, such as `{ anthropic: { top_k: 5 } }`: sent as they are, over what
   * stands above. Those of other providers are not sent.
   */
  readonly extra?: { readonly [key: string]: Json }
}

/**
 * Nothing set.
 *
 * @category constructors
 * @since 0.1.0
 */
export const empty: Generation = {}

/**
 * Lays `over` on top of `base`; extras are merged by key, and what is not given changes nothing (BP-111).
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
