/**
 * The types of policies.
 */

import type * as Effect from "effect/Effect"
import type { CallKind } from "../../Call.ts"
import type { Json, JsonObject } from "../base/json.ts"
import type { Effects } from "../../Skill.ts"

/**
 * What a policy says about one call.
 *
 * @category models
 * @since 0.1.0
 */
export type Decision =
  | { readonly _tag: "Allowed"; readonly reason?: string }
  | { readonly _tag: "Denied"; readonly reason: string }
  | { readonly _tag: "Confirm"; readonly reason: string }

/**
 * Where a decision is asked for.
 *
 * @category models
 * @since 0.1.0
 */
export interface PolicyScope {
  readonly runId: string
  readonly rootRunId: string
  readonly agent: string
  readonly depth: number
  readonly context: JsonObject
}

/**
 * The call to decide about, with the arguments it will run with. Where the schema of a skill changes what the model
 * wrote, a policy is asked about both, and the stricter word holds (AC-19).
 *
 * @category models
 * @since 0.1.0
 */
export interface PolicyCall extends PolicyScope {
  readonly callId: string
  readonly name: string
  readonly kind: CallKind
  readonly input: Json
  /** What the skill or protocol says of its own effects; `write` when unknown. */
  readonly effects: Effects
}

/**
 * Whether calls may run and are shown.
 *
 * @category models
 * @since 0.1.0
 */
export interface PolicyShape {
  /** Whether the skill or protocol of this name is shown to the model; one that is not cannot be called. */
  readonly visible?: ((name: string, scope: PolicyScope) => boolean) | undefined
  readonly authorize: (call: PolicyCall) => Effect.Effect<Decision>
}

/**
 * Which calls a rule is about.
 *
 * @category models
 * @since 0.1.0
 */
export interface Rule {
  /** A glob over the whole name: `*`, `?`, `[a-z]`, `{a,b}`. */
  readonly tool: string
  /**
   * Regular expressions by argument; all must match somewhere in its value. A
   * value that is no text is looked at as JSON, a list item by item. They are
   * JavaScript's without lookaround and backreferences, matched in linear time
   * (S-12). A protocol's request is the argument `request`.
   */
  readonly where?: { readonly [argument: string]: string } | ReadonlyMap<string, string> | undefined
  /** Told to the model, or to the person who is asked. */
  readonly reason?: string | undefined
}

/**
 * What is to happen to a call.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome = "allow" | "confirm" | "deny"

/**
 * Rules, of which deny comes before confirm and confirm before allow (AC-19).
 *
 * @category models
 * @since 0.1.0
 */
export interface Rules {
  readonly deny?: ReadonlyArray<Rule> | undefined
  readonly confirm?: ReadonlyArray<Rule> | undefined
  readonly allow?: ReadonlyArray<Rule> | undefined
  /**
   * What happens to calls no rule is about. `effects` lets reading calls run and asks about all others. A record says
   * it for each kind of effects; those it does not name are allowed. Default: `allow`.
   */
  readonly default?: Outcome | "effects" | { readonly [E in Effects]?: Outcome } | undefined
  /** Globs of names that are not shown, and denied when guessed (AC-18). */
  readonly hide?: ReadonlyArray<string> | undefined
}
