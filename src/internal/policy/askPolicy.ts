/**
 * Asks a policy, and denies whenever it misbehaves.
 *
 * A policy is foreign code: if it fails or returns something else than a decision, the call is denied and the reason is
 * logged. No mistake of a policy can allow a call.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { Decision, PolicyCall, PolicyScope, PolicyShape } from "./decision.ts"
import { passedOver } from "../base/foreignCode.ts"

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
