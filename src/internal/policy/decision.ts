/**
 * The decision of a policy about a call: its types, and how a policy is asked.
 *
 * A policy is foreign code: if it fails or returns something else than a decision, the call is denied and the reason is
 * logged. No mistake of a policy can allow a call.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { CallKind } from "../../Call.ts"
import type { Effects } from "../../Skill.ts"
import { passedOver } from "../base/foreignCode.ts"
import type { Json, JsonObject } from "../base/json.ts"

/**
 * The decision of a policy about one call.
 *
 * @category models
 * @since 0.1.0
 */
export type Decision =
  | { readonly _tag: "Allowed"; readonly reason?: string }
  | { readonly _tag: "Denied"; readonly reason: string }
  | {
      readonly _tag: "Confirm"
      readonly reason: string
      /** How long a person has to answer. Then the call is declined. */
      readonly within?: Duration.Duration
    }

/**
 * The run and agent a decision is made for.
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
 * The call to decide about, with the input it will run with. If the schema of a skill changes what the model wrote, the
 * policy is asked about both forms, and the stricter decision wins.
 *
 * @category models
 * @since 0.1.0
 */
export interface PolicyCall extends PolicyScope {
  readonly callId: string
  readonly name: string
  readonly kind: CallKind
  readonly input: Json
  /** The declared effects of the skill or protocol; `write` if unknown. */
  readonly effects: Effects
}

/**
 * Decides which calls may run, and which callables the model sees.
 *
 * @category models
 * @since 0.1.0
 */
export interface PolicyShape {
  /** Returns whether the model sees the skill or protocol of this name. A hidden one cannot be called. */
  readonly visible?: ((name: string, scope: PolicyScope) => boolean) | undefined
  readonly authorize: (call: PolicyCall) => Effect.Effect<Decision>
}

/**
 * Selects calls.
 *
 * @category models
 * @since 0.1.0
 */
export interface Rule {
  /** A glob that matches the whole name: `*`, `?`, `[a-z]`, `{a,b}`. */
  readonly tool: string
  /**
   * Regular expressions by field of the input. Each must match somewhere in the value of its field. A value that is not
   * text is matched as JSON, a list item by item. The syntax is that of JavaScript without lookaround and
   * backreferences, matched in linear time. The request of a protocol is the field `request`.
   */
  readonly where?: { readonly [argument: string]: string } | ReadonlyMap<string, string> | undefined
  /** The reason, sent to the model when the call is denied, or shown to the person who is asked. */
  readonly reason?: string | undefined
}

/**
 * The outcome for a call.
 *
 * @category models
 * @since 0.1.0
 */
export type Outcome = "allow" | "confirm" | "deny"

/**
 * The rules of a policy. `deny` comes before `confirm`, and `confirm` before `allow`.
 *
 * @category models
 * @since 0.1.0
 */
export interface Rules {
  readonly deny?: ReadonlyArray<Rule> | undefined
  readonly confirm?: ReadonlyArray<Rule> | undefined
  readonly allow?: ReadonlyArray<Rule> | undefined
  /**
   * The outcome for calls that no rule selects. `effects` allows `read` calls and asks about all others. A record gives
   * the outcome for each kind of effects; kinds it leaves out are allowed. Default: `allow`.
   */
  readonly default?: Outcome | "effects" | { readonly [E in Effects]?: Outcome } | undefined
  /** Globs of names to hide from the model. Hidden callables are also denied when the model guesses their name. */
  readonly hide?: ReadonlyArray<string> | undefined
}

/** Asks a policy about a call. */
export const askPolicy = (policy: Pick<PolicyShape, "authorize">, call: PolicyCall): Effect.Effect<Decision> =>
  decided(Effect.suspend(() => effectOf(policy.authorize(call))))

/** Whether a policy shows the callable of this name. A policy that throws shows none. */
export const shows = (policy: PolicyShape | undefined, name: string, scope: PolicyScope): boolean => {
  try {
    return policy?.visible === undefined || Boolean(policy.visible(name, scope))
  } catch {
    return false
  }
}

/** Runs the decision of a policy. Denies with `policy_error` if it fails or is not a decision, and logs the reason. */
export const decided = <E, R>(said: Effect.Effect<Decision, E, R>): Effect.Effect<Decision, never, R> =>
  Effect.catchCause(
    Effect.flatMap(said, (decision) => (isDecision(decision) ? Effect.succeed(decision) : Effect.die("no decision"))),
    (cause) => Effect.as(passedOver("a policy failed")(cause), refused)
  )

/** Untyped code may return a value where an Effect belongs. */
export const effectOf = <A, E, R>(given: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.isEffect(given) ? given : Effect.die("no effect")

const refused: Decision = { _tag: "Denied", reason: "policy_error" }

/** Whether a value is a span of time that ends. */
const isTime = (value: unknown): boolean =>
  Duration.isDuration(value) && Duration.isFinite(value) && !Duration.isNegative(value)

const isDecision = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null || !("_tag" in value)) return false
  const reason = "reason" in value ? value.reason : undefined
  switch (value._tag) {
    case "Allowed":
      return reason === undefined || typeof reason === "string"
    case "Confirm":
      return typeof reason === "string" && (!("within" in value) || isTime(value.within))
    case "Denied":
      return typeof reason === "string"
    default:
      return false
  }
}
