/**
 * Decides which callables a model sees and which of its calls may run.
 *
 * `visible` hides callables from the model; hidden ones are also denied when the model guesses a name. `authorize`
 * decides about each call. Policies combine wherever they are provided: the strictest decision wins. A policy that
 * fails denies the call.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Decisions from "./internal/policy/decision.ts"
import type { Decision, Outcome, PolicyCall, PolicyShape, Rule, Rules } from "./internal/policy/decision.ts"
import { askPolicy, decided, effectOf, shows } from "./internal/policy/decision.ts"
import * as AddedParts from "./kit/addedParts.ts"
import { closeOver } from "./kit/foreignCode.ts"
import { compile } from "./internal/policy/rules.ts"
import { paramsOf } from "./internal/skill/skillInput.ts"
import type { Answerers, Caller, Scope } from "./Caller.ts"
import { ConfigInvalid } from "./KernelError.ts"
import type { Made } from "./Skill.ts"

export type { Answerers, Caller, Decision, Outcome, PolicyCall, PolicyShape, Rule, Rules }

export { ConfigInvalid }

/**
 * Runs the call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const allowed: Decision = { _tag: "Allowed" }

/**
 * Denies the call. The model is sent the reason as the error of the call.
 *
 * @category constructors
 * @since 0.1.0
 */
export const denied: (reason: string) => Decision = Decisions.denied

/**
 * Pauses the run until a person answers. See `Kernel.questions` and `Kernel.answer`.
 *
 * A question that is not answered `within` this time is declined, and the run continues. Any `RunWorker` or cluster
 * runner (see `kernai/cluster`) that has the agent of the run declines it, whichever process asked. Without either, the
 * question stays open.
 *
 * `by` decides who may answer, and is stored with the question: a policy can make it of the call and of the run it is
 * asked about. With `by`, the caller who started the run may answer only if it has `owner: true`. Without `by`, everyone
 * who may see the run may answer.
 *
 * @example
 * Policy.confirm("it costs money", { within: "1 day", by: { roles: ["finance"] } })
 *
 * @category constructors
 * @since 0.1.0
 */
export const confirm = (
  reason: string,
  { by, within }: { readonly within?: Duration.Input | undefined; readonly by?: Answerers | undefined } = {}
): Decision => ({
  _tag: "Confirm",
  reason,
  ...(within === undefined ? {} : { within: Duration.fromInputUnsafe(within) }),
  ...(by === undefined ? {} : { by: [by] })
})

/**
 * A policy given as a value. Default: everything is allowed. Policies of layers are kept beside it (see `current`).
 *
 * @category references
 * @since 0.1.0
 */
export const Policy: Context.Reference<PolicyShape | undefined> = Context.Reference<PolicyShape | undefined>(
  "kernai/Policy",
  {
    defaultValue: () => undefined
  }
)

const parts = AddedParts.of(Policy)

/**
 * Creates a policy from at most 1,000 rules. Fails if a pattern is invalid or cannot be matched in linear time.
 *
 * @example
 * Policy.rules({
 *   deny: [{ name: "shell", where: { command: "rm -rf" }, reason: "nothing is deleted" }],
 *   confirm: [{ name: "fs_{write,delete}" }],
 *   default: "effects"
 * })
 *
 * @category constructors
 * @since 0.1.0
 */
export const rules = (rules: Rules): Result.Result<PolicyShape, ConfigInvalid> =>
  Result.map(compile(rules), ({ decide, ruleOf, visible }) => ({
    visible,
    ruleOf,
    authorize: (call) => Effect.sync(() => decide(call))
  }))

/**
 * Returns the stricter of two decisions, or the first if both are equally strict.
 *
 * @category combinators
 * @since 0.1.0
 */
export const stricter: {
  (b: Decision): (a: Decision) => Decision
  (a: Decision, b: Decision): Decision
} = /* @__PURE__ */ dual(2, Decisions.stricter)

/**
 * Combines two policies: a callable is hidden if either hides it, and the stricter decision wins. The second policy is
 * not asked about a call that the first denies.
 *
 * @category combinators
 * @since 0.1.0
 */
export const combine: {
  (b: PolicyShape | undefined): (a: PolicyShape | undefined) => PolicyShape | undefined
  (a: PolicyShape | undefined, b: PolicyShape | undefined): PolicyShape | undefined
} = /* @__PURE__ */ dual(2, (a: PolicyShape | undefined, b: PolicyShape | undefined): PolicyShape | undefined => {
  if (a === undefined || b === undefined || a === b) return a ?? b
  return {
    visible: (name, scope) => shows(a, name, scope) && shows(b, name, scope),
    ruleOf: (call) => {
      const rules = [a.ruleOf?.(call), b.ruleOf?.(call)].filter((rule) => rule !== undefined)
      return rules.length === 0 ? undefined : rules.join(", ")
    },
    authorize: (call) =>
      Effect.flatMap(askPolicy(a, call), (first) =>
        first._tag === "Denied"
          ? Effect.succeed(first)
          : Effect.map(askPolicy(b, call), (second) => stricter(first, second))
      )
  }
})

/**
 * Combines all policies of the given contexts. Each policy is asked once, and the strictest decision wins.
 *
 * @category getters
 * @since 0.1.0
 */
export const among = (...contexts: ReadonlyArray<Context.Context<never>>): PolicyShape | undefined =>
  parts.among(...contexts).reduce(combine, undefined)

/**
 * Returns all policies of the running fiber, combined.
 *
 * @category getters
 * @since 0.1.0
 */
export const current: Effect.Effect<PolicyShape | undefined> = Effect.contextWith((context: Context.Context<never>) =>
  Effect.succeed(among(context))
)

export {
  /**
   * Returns the declared effects of a call: those of its skill or protocol, and `write` for a name that the registries do
   * not hold.
   *
   * @category getters
   * @since 0.1.0
   */
  effectsOf
} from "./internal/policy/callEffects.ts"

export {
  /**
   * Returns whether a policy shows the callable with this name. If the policy throws, the callable is hidden.
   *
   * @category getters
   * @since 0.1.0
   */
  shows,
  /**
   * Asks a policy, if there is one, and the skill itself about a call outside of a run, as a server of tools does.
   *
   * The policy is asked about the input as it was written and as the skill will receive it, because a schema may trim a
   * path or add a default. If the forms differ, the stricter decision wins. A policy that fails denies the call.
   *
   * @category running
   * @since 0.1.0
   */
  askAboutSkill
} from "./internal/policy/decision.ts"

/**
 * Adds a policy to the existing ones, including those beside it in the same list of layers.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerShape = <E, R>(shape: Effect.Effect<PolicyShape, E, R>): Layer.Layer<never, E, R> =>
  parts.layer(shape)

/**
 * Creates a policy from a decision that may need services and may fail. A failure or an invalid decision denies the
 * call with `policy_error`, and the reason is logged.
 *
 * The policy combines with the existing ones and with those beside it in the same list of layers.
 *
 * @example
 * const Both = Kernel.layerMemory.pipe(Layer.provide([Policy.layer(first), Policy.layer(second)]))
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E, R>(
  authorize: (call: PolicyCall) => Effect.Effect<Decision, E, R>,
  visible?: (name: string, scope: Scope) => boolean
): Layer.Layer<never, never, R> =>
  layerShape(
    Effect.map(Effect.context<R>(), (context) => {
      const provide = closeOver(context)
      return {
        visible,
        authorize: (call) => decided(provide(Effect.suspend(() => effectOf(authorize(call)))))
      }
    })
  )

/**
 * Decides about the calls of one skill, with its input decoded, and allows all others. An input that does not fit the
 * skill is allowed, because the skill rejects it. Pass the result to `layer`.
 *
 * @example
 * const limit = Policy.for(pay, ({ amount }, { context }) =>
 *   amount > 100 ? Policy.confirm("it costs much", { by: { roles: ["finance"] } }) : Policy.allowed
 * )
 * const PolicyLive = Policy.layer(limit)
 *
 * @category constructors
 * @since 0.1.0
 */
const for_ = <Name extends string, I, O, S, P, D, E = never, R = never>(
  skill: Made<Name, I, O, S, P, D>,
  decide: (input: I, call: PolicyCall) => Decision | Effect.Effect<Decision, E, R>
): ((call: PolicyCall) => Effect.Effect<Decision, E, R | D>) => {
  return (call) =>
    call.kind !== "skill" || call.name !== skill.name
      ? Effect.succeed(allowed)
      : Effect.matchEffect(skill.decode(paramsOf(skill, call.input)), {
          onFailure: () => Effect.succeed(allowed),
          onSuccess: (input) => {
            const decision = decide(input, call)
            return Effect.isEffect(decision) ? decision : Effect.succeed(decision)
          }
        })
}

export { for_ as for }

/**
 * Creates a policy from rules. It combines with others, as `layer` does.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRules = (given: Rules): Layer.Layer<never, ConfigInvalid> =>
  layerShape(Effect.suspend(() => Effect.fromResult(rules(given))))
