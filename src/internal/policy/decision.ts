/**
 * Decisions of policies: their types, and how a policy is asked.
 *
 * A policy is foreign code. If it fails or returns anything but a decision, the call is denied and the reason is
 * logged, so a faulty policy never allows a call.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Schema from "effect/Schema"
import type { CallKind } from "../../Call.ts"
import type { Limits } from "../../Limits.ts"
import type { AnySkill, Effects } from "../../Skill.ts"
import { inTime, logIgnored } from "../../kit/foreignCode.ts"
import type { Json } from "../../kit/json.ts"
import { lazily } from "../../kit/schemas.ts"
import { paramsOf } from "../skill/skillInput.ts"
import { Answerers, type Scope } from "../../Caller.ts"

/**
 * The decision of a policy about one call.
 *
 * @category models
 * @since 0.1.0
 */
export type Decision =
  | { readonly _tag: "Allowed"; readonly reason?: string | undefined; readonly rule?: string | undefined }
  | { readonly _tag: "Denied"; readonly reason: string; readonly rule?: string | undefined }
  | {
      readonly _tag: "Confirm"
      readonly reason: string
      /** The name of the rule that decided, for the journal. */
      readonly rule?: string | undefined
      /** How long a person has to answer. After that the call is declined. */
      readonly within?: Duration.Duration | undefined
      /** Rules about who may answer; each must admit the caller. Absent: everyone who may see the run. */
      readonly by?: ReadonlyArray<Answerers> | undefined
    }

/**
 * The call to decide about, with the input it will run with. If the schema of a skill changes the input of the model,
 * the policy is asked about both forms, and the stricter decision wins.
 *
 * @category models
 * @since 0.1.0
 */
export interface PolicyCall extends Scope {
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
  readonly visible?: ((name: string, scope: Scope) => boolean) | undefined
  readonly authorize: (call: PolicyCall) => Effect.Effect<Decision>
  /** Returns the name of the rule that decides about a call, for the journal. A `rule` of the decision comes before it. */
  readonly ruleOf?: ((call: PolicyCall) => string | undefined) | undefined
}

/**
 * Selects calls.
 *
 * @category models
 * @since 0.1.0
 */
export interface Rule {
  /** A glob that matches the whole name of what is called: `*`, `?`, `[a-z]`, `{a,b}`. */
  readonly name: string
  /**
   * Regular expressions by field of the input. Each must match somewhere in the value of its field. A value that is not
   * text is matched as JSON, a list item by item. The syntax is that of JavaScript without lookaround and
   * backreferences, matched in linear time. The request of a protocol is the field `request`.
   */
  readonly where?: { readonly [argument: string]: string } | ReadonlyMap<string, string> | undefined
  /** The reason that the model gets if the call is denied, or that is shown to the person who is asked. */
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

/** Denies a call. */
export const denied = (reason: string): Decision => ({ _tag: "Denied", reason })

/**
 * Returns the stricter of two decisions, or the first if both are equally strict. A question that two policies ask is
 * answered by those whom both of them admit.
 */
export const stricter = (a: Decision, b: Decision): Decision => {
  if (rank[b._tag] !== rank[a._tag]) return rank[b._tag] > rank[a._tag] ? b : a
  if (a._tag !== "Confirm" || b._tag !== "Confirm" || b.by === undefined) return a
  const known = a.by ?? []
  return { ...a, by: known.concat(b.by.filter((rule) => !known.some((other) => Equal.equals(other, rule)))) }
}

/** Asks a policy about a call. */
export const askPolicy = (policy: Pick<PolicyShape, "authorize">, call: PolicyCall): Effect.Effect<Decision> =>
  decided(Effect.suspend(() => effectOf(policy.authorize(call))))

/** Returns whether a policy shows the callable with this name. If the policy throws, the callable is hidden. */
export const shows = (policy: PolicyShape | undefined, name: string, scope: Scope): boolean => {
  try {
    return policy?.visible === undefined || Boolean(policy.visible(name, scope))
  } catch {
    return false
  }
}

/** Runs the decision of a policy. Denies with `policy_error` if it fails or is not a decision, and logs the reason. */
export const decided = <E, R>(asked: Effect.Effect<Decision, E, R>): Effect.Effect<Decision, never, R> =>
  Effect.catchCause(
    Effect.flatMap(asked, (decision) => (isDecision(decision) ? Effect.succeed(decision) : Effect.die("no decision"))),
    (cause) => Effect.as(logIgnored("a policy failed")(cause), refused)
  )

/** Returns an Effect unchanged. Dies for another value, which untyped code may return. */
export const effectOf = <A, E, R>(given: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.isEffect(given) ? given : Effect.die("no effect")

/**
 * Asks a policy and the skill itself about a call of it. The stricter decision wins.
 *
 * The policy is asked about the input as the model wrote it and as the skill will receive it. A schema may trim a path or
 * add a default, so rules apply to both forms. Invalid input keeps the decision about its written form, but a
 * confirmation becomes a denial. Input that cannot be decoded in time is denied.
 */
export const askAboutSkill = (
  policy: PolicyShape | undefined,
  call: PolicyCall,
  skill: AnySkill,
  limits: Limits
): Effect.Effect<Decision> => {
  const byPolicy = policy === undefined ? Effect.succeed(allowed) : askAboutForms(policy, call, skill, limits)
  return skill.needsApproval === undefined
    ? byPolicy
    : Effect.zipWith(byPolicy, askSkill(skill, call, limits), stricter)
}

/** Asks a skill whether a person must approve a call. The skill itself rejects an input that does not fit. */
const askSkill = (skill: AnySkill, { input, name }: PolicyCall, { skillTimeout }: Limits): Effect.Effect<Decision> => {
  const { needsApproval, timeout = skillTimeout } = skill
  if (needsApproval === undefined) return Effect.succeed(allowed)
  const late = denied(`The arguments of skill '${name}' could not be read in time.`)
  const asked = Effect.matchEager(needsApproval(paramsOf(skill, input)), {
    onFailure: (): Decision => allowed,
    onSuccess: (reason): Decision => (reason === undefined ? allowed : { _tag: "Confirm", reason, rule: "approval" })
  })
  return decided(Effect.suspend(() => inTime(asked, timeout, () => Effect.succeed(late))))
}

const askAboutForms = (
  policy: PolicyShape,
  call: PolicyCall,
  skill: AnySkill,
  { skillTimeout }: Limits
): Effect.Effect<Decision> =>
  Effect.flatMap(askPolicy(policy, call), (written) => {
    const { normalize, timeout } = skill
    if (normalize === undefined || written._tag === "Denied") return Effect.succeed(written)
    const { input: given, name } = call
    const read = inTime(normalize(paramsOf(skill, given)), timeout ?? skillTimeout, () => Effect.undefined)
    return decided(
      Effect.matchEffect(read, {
        onFailure: ({ message }) => Effect.succeed(written._tag === "Confirm" ? denied(message) : written),
        onSuccess: (run) => {
          if (run === undefined) {
            return Effect.succeed(denied(`The arguments of skill '${name}' could not be read in time.`))
          }
          return Equal.equals(run, given)
            ? Effect.succeed(written)
            : Effect.map(askPolicy(policy, { ...call, input: run }), (other) => stricter(written, other))
        }
      })
    )
  })

const rank = { Allowed: 0, Confirm: 1, Denied: 2 }

const allowed: Decision = { _tag: "Allowed" }

const refused: Decision = { _tag: "Denied", reason: "policy_error" }

/** Returns whether a value is a finite duration. */
const isTime = (value: unknown): boolean =>
  Duration.isDuration(value) && Duration.isFinite(value) && !Duration.isNegative(value)

const answerersGuard = lazily(() => Schema.is(Schema.Array(Answerers)))

const isDecision = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null || !("_tag" in value)) return false
  const reason = "reason" in value ? value.reason : undefined
  if ("rule" in value && value.rule !== undefined && typeof value.rule !== "string") return false
  switch (value._tag) {
    case "Allowed":
      return reason === undefined || typeof reason === "string"
    case "Confirm":
      return (
        typeof reason === "string" &&
        (!("within" in value) || value.within === undefined || isTime(value.within)) &&
        (!("by" in value) || value.by === undefined || answerersGuard()(value.by))
      )
    case "Denied":
      return typeof reason === "string"
    default:
      return false
  }
}
