/**
 * What a policy says of a call of a skill: of the arguments as they were
 * written, and of those the skill will be run with (AC-19).
 *
 * A schema may trim a path or put in a default: a rule about either form holds.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Policy from "../Policy.ts"
import type { AnySkill } from "../Skill.ts"
import { askPolicy, decided } from "./askPolicy.ts"
import { isJsonObject } from "./json.ts"

/** Asks about both forms where they differ: the stricter word holds. Nobody is asked about arguments that do not fit (AC-18). */
export const askAboutSkill = (
  policy: Policy.PolicyShape,
  call: Policy.PolicyCall,
  { normalize, parameters }: Pick<AnySkill, "normalize" | "parameters">
): Effect.Effect<Policy.Decision> => {
  const written = askPolicy(policy, call)
  if (normalize === undefined) return written
  const { arguments: given } = call
  const params = isJsonObject(given) ? given : parameters(typeof given === "string" ? given : "")
  return decided(
    Effect.matchEffect(normalize(params), {
      onFailure: ({ message }) =>
        Effect.map(written, (decision) => (decision._tag === "Confirm" ? Policy.denied(message) : decision)),
      onSuccess: (run) =>
        Equal.equals(run, given)
          ? written
          : Effect.zipWith(written, askPolicy(policy, { ...call, arguments: run }), Policy.stricter)
    })
  )
}
