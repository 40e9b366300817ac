/**
 * May this call run, and is it shown at all (AC-18, AC-19).
 *
 * A policy hides callables from the model (`visible`) and decides about each call
 * (`authorize`). What is hidden is denied too, even when the model guesses its
 * name. Several policies combine, wherever they are provided: the strictest
 * decision wins. A policy that fails denies.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { askPolicy, decided, effectOf, shows } from "./internal/policy/askPolicy.ts"
import { closeOver } from "./internal/base/effects.ts"
import { compile } from "./internal/policy/rules.ts"
import { ConfigInvalid } from "./KernelError.ts"
import type {
  Decision,
  Outcome,
  PolicyCall,
  PolicyScope,
  PolicyShape,
  Rule,
  Rules
} from "./internal/policy/decision.ts"

export type { Decision, Outcome, PolicyCall, PolicyScope, PolicyShape, Rule, Rules }

export { ConfigInvalid }

/**
 * The call runs.
 *
 * @category constructors
 * @since 0.1.0
 */
export const allowed: Decision = { _tag: "Allowed" }

/**
 * The call does not run, and the model is told why.
 *
 * @category constructors
 * @since 0.1.0
 */
export const denied = (reason: string): Decision => ({ _tag: "Denied", reason })

/**
 * The run pauses until a person answers (DR-22).
 *
 * @category constructors
 * @since 0.1.0
 */
export const confirm = (reason: string): Decision => ({ _tag: "Confirm", reason })

/**
 * A policy given as a value: everything is allowed by default. Those of layers stand beside it (see `current`).
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

/**
 * Makes a policy of rules, 1,000 at most. A pattern that cannot be read, or
 * cannot be matched in linear time, fails here (S-12).
 *
 * @example
 * Policy.rules({
 *   deny: [{ tool: "shell", where: { command: "rm -rf" }, reason: "nothing is deleted" }],
 *   confirm: [{ tool: "fs_{write,delete}" }],
 *   default: "effects"
 * })
 *
 * @category constructors
 * @since 0.1.0
 */
export const rules = (rules: Rules): Result.Result<PolicyShape, ConfigInvalid> =>
  Result.map(compile(rules), ({ decide, visible }) => ({
    visible,
    authorize: (call) => Effect.sync(() => decide(call))
  }))

const rank = { Allowed: 0, Confirm: 1, Denied: 2 }

/**
 * The stricter of two decisions; of two alike the first keeps its reason.
 *
 * @category combinators
 * @since 0.1.0
 */
export const stricter = (a: Decision, b: Decision): Decision => (rank[b._tag] > rank[a._tag] ? b : a)

/**
 * Both policies as one: what either hides is hidden, and of two decisions the stricter holds. The second is not asked
 * about what the first denies.
 *
 * @category combinators
 * @since 0.1.0
 */
export const combine = (a: PolicyShape | undefined, b: PolicyShape | undefined): PolicyShape | undefined => {
  if (a === undefined || b === undefined || a === b) return a ?? b
  return {
    visible: (name, scope) => shows(a, name, scope) && shows(b, name, scope),
    authorize: (call) =>
      Effect.flatMap(askPolicy(a, call), (first) =>
        first._tag === "Denied"
          ? Effect.succeed(first)
          : Effect.map(askPolicy(b, call), (second) => stricter(first, second))
      )
  }
}

/**
 * Every policy there is in some contexts, as one: each is asked once, the strictest decision holds.
 *
 * @category combinators
 * @since 0.1.0
 */
export const among = (...contexts: ReadonlyArray<Context.Context<never>>): PolicyShape | undefined =>
  [...new Set(contexts.flatMap(partsOf))].reduce(combine, undefined)

/**
 * Every policy where this runs, as one.
 *
 * @category getters
 * @since 0.1.0
 */
export const current: Effect.Effect<PolicyShape | undefined> = Effect.contextWith((context: Context.Context<never>) =>
  Effect.succeed(among(context))
)

const partsOf = ({ mapUnsafe }: Context.Context<never>): ReadonlyArray<PolicyShape> =>
  [...mapUnsafe].flatMap(([key, given]) => (key.startsWith(Policy.key) && given) || [])

// Another copy of this module counts from somewhere else.
let places = Math.random()

/**
 * Adds a policy to those that are there already, and to those beside it in the same list.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerShape = <E, R>(shape: Effect.Effect<PolicyShape, E, R>): Layer.Layer<never, E, R> => {
  const made = Layer.effectContext(Effect.map(shape, (own) => placed([own])))
  // The policy is made once, like every layer; what is around it is looked at wherever it is provided.
  return Layer.fromBuild((memoMap, scope) =>
    Effect.contextWith((outer: Context.Context<R>) =>
      Effect.map(Layer.buildWithMemoMap(made, memoMap, scope), (own) => placed([...partsOf(outer), ...partsOf(own)]))
    )
  )
}

// In a place of their own, so that of two layers in one list neither takes the place of the other and of those it
// stands for.
const placed = (parts: ReadonlyArray<PolicyShape>): Context.Context<never> =>
  Context.makeUnsafe(new Map([[`${Policy.key}/${places++}`, parts]]))

/**
 * Makes a policy of a decision with services and failures of its own; a failure, or what is
 * no decision, denies with `policy_error`, and the log tells why.
 *
 * It is combined with those that are there already, and with those beside it in the same list: anew wherever it is
 * provided, though it is made once. A layer you make of several is built once with all that is around it, as ever.
 *
 * @example
 * const Both = Kernel.layerMemory.pipe(Layer.provide([Policy.layer(first), Policy.layer(second)]))
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E, R>(
  authorize: (call: PolicyCall) => Effect.Effect<Decision, E, R>,
  visible?: (name: string, scope: PolicyScope) => boolean
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
 * Makes a policy of rules, combined with others as that of `layer` is.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerRules = (given: Rules): Layer.Layer<never, ConfigInvalid> =>
  layerShape(Effect.suspend(() => Effect.fromResult(rules(given))))
