/**
 * What a policy says of a call, whatever it does (AC-19).
 *
 * A policy is somebody else's code: one that fails, or gives what is no
 * decision, denies. So nothing it does can let a call through by accident, and
 * the log tells why nothing goes through.
 */

import * as Effect from "effect/Effect"
import type { Decision, PolicyCall, PolicyScope, PolicyShape } from "./decision.ts"
import { passedOver } from "../base/effects.ts"

/** Asks a policy about a call. */
export const askPolicy = (policy: Pick<PolicyShape, "authorize">, call: PolicyCall): Effect.Effect<Decision> =>
  decided(Effect.suspend(() => effectOf(policy.authorize(call))))

/** Whether a policy shows the callable of this name; one that throws shows none. */
export const shows = (policy: PolicyShape | undefined, name: string, scope: PolicyScope): boolean => {
  try {
    return policy?.visible === undefined || Boolean(policy.visible(name, scope))
  } catch {
    return false
  }
}

/** The decision of an effect; `policy_error` when it fails or gives none, and why is for the log. */
export const decided = <E, R>(said: Effect.Effect<Decision, E, R>): Effect.Effect<Decision, never, R> =>
  Effect.catchCause(
    Effect.flatMap(said, (decision) => (isDecision(decision) ? Effect.succeed(decision) : Effect.die("no decision"))),
    (cause) => Effect.as(passedOver("a policy failed")(cause), refused)
  )

/** Without types, code may give a value where an effect belongs. */
export const effectOf = <A, E, R>(given: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.isEffect(given) ? given : Effect.die("no effect")

const refused: Decision = { _tag: "Denied", reason: "policy_error" }

const isDecision = (value: unknown): boolean => {
  if (typeof value !== "object" || value === null || !("_tag" in value)) return false
  const reason = "reason" in value ? value.reason : undefined
  switch (value._tag) {
    case "Allowed":
      return reason === undefined || typeof reason === "string"
    case "Confirm":
    case "Denied":
      return typeof reason === "string"
    default:
      return false
  }
}
