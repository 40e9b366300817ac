/**
 * May this call run, and is it shown at all (AC-18, AC-19).
 *
 * A policy hides callables from the model (`filter`) and decides about each call
 * (`authorize`). What is hidden is denied too, even when the model guesses its
 * name. Several policies combine: the strictest decision wins. A policy that
 * fails denies.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Json, JsonObject } from "./internal/json.ts"
import type { CallKind } from "./Call.ts"

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

/** @category constructors @since 0.1.0 */
export const allowed: Decision = { _tag: "Allowed" }
/** @category constructors @since 0.1.0 */
export const denied = (reason: string): Decision => ({ _tag: "Denied", reason })
/**
 * The run pauses until a person answers (DR-22).
 *
 * @category constructors
 * @since 0.1.0
 */
export const confirm = (reason: string): Decision => ({ _tag: "Confirm", reason })

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
 * The call to decide about, with the arguments it will run with.
 *
 * @category models
 * @since 0.1.0
 */
export interface PolicyCall extends PolicyScope {
  readonly toolCallId: string
  readonly name: string
  readonly kind: CallKind
  readonly arguments: Json
  /** The skill's own word about its effects; `write` when unknown. */
  readonly effects: "read" | "idempotent" | "write"
}

/**
 * @category models
 * @since 0.1.0
 */
export interface PolicyShape {
  /** Whether the callable of this name is shown to the model. */
  readonly visible?: (name: string, scope: PolicyScope) => boolean
  readonly authorize: (call: PolicyCall) => Effect.Effect<Decision>
}

/**
 * The policy of a run: everything is allowed by default.
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

const rank = { Allowed: 0, Confirm: 1, Denied: 2 }

/**
 * The stricter of two decisions; of two alike the first keeps its reason.
 *
 * @category combinators
 * @since 0.1.0
 */
export const stricter = (a: Decision, b: Decision): Decision => (rank[b._tag] > rank[a._tag] ? b : a)

/**
 * Asks both and takes the stricter answer.
 *
 * @category combinators
 * @since 0.1.0
 */
export const combine = (a: PolicyShape | undefined, b: PolicyShape | undefined): PolicyShape | undefined => {
  if (a === undefined || b === undefined || a === b) return a ?? b
  return {
    visible: (name, scope) => (a.visible?.(name, scope) ?? true) && (b.visible?.(name, scope) ?? true),
    authorize: (call) =>
      Effect.flatMap(a.authorize(call), (first) =>
        first._tag === "Denied"
          ? Effect.succeed(first)
          : Effect.map(b.authorize(call), (second) => stricter(first, second))
      )
  }
}

/**
 * Makes a policy of a decision with services and failures of its own; a failure denies with `policy_error`.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <E, R>(
  authorize: (call: PolicyCall) => Effect.Effect<Decision, E, R>,
  visible?: (name: string, scope: PolicyScope) => boolean
): Layer.Layer<never, never, R> =>
  Layer.effect(
    Policy,
    Effect.gen(function* () {
      const services = yield* Effect.context<R>()
      const outer = yield* Policy
      const shape: PolicyShape = {
        ...(visible === undefined ? {} : { visible }),
        authorize: (call) =>
          authorize(call).pipe(
            Effect.updateContext((current: Context.Context<never>) => Context.merge(services, current)),
            Effect.catchCause(() => Effect.succeed(denied("policy_error")))
          )
      }
      return combine(outer, shape)
    })
  )
