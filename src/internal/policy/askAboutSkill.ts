/**
 * Asks a policy about a call of a skill: about the input as the model wrote it, and about the input the skill will run
 * with.
 *
 * A schema may trim a path or add a default, so rules apply to both forms.
 */

import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import type { Limits } from "../../Limits.ts"
import * as Policy from "../../Policy.ts"
import type { AnySkill } from "../../Skill.ts"
import { askPolicy, decided } from "./decision.ts"
import { inTime } from "../base/foreignCode.ts"
import { paramsOf } from "../skill/skillInput.ts"

/**
 * Asks about both forms if they differ; the stricter decision wins. Invalid input is not asked about. Input that cannot
 * be decoded in time is denied.
 */
export const askAboutSkill = (
  policy: Policy.PolicyShape,
  call: Policy.PolicyCall,
  skill: AnySkill,
  { skillTimeout }: Limits
): Effect.Effect<Policy.Decision> =>
  Effect.flatMap(askPolicy(policy, call), (written) => {
    const { normalize, timeout } = skill
    if (normalize === undefined || written._tag === "Denied") return Effect.succeed(written)
    const { input: given, name } = call
    const read = inTime(normalize(paramsOf(skill, given)), timeout ?? skillTimeout, () => Effect.undefined)
    return decided(
      Effect.matchEffect(read, {
        onFailure: ({ message }) => Effect.succeed(written._tag === "Confirm" ? Policy.denied(message) : written),
        onSuccess: (run) => {
          if (run === undefined) {
            return Effect.succeed(Policy.denied(`The arguments of skill '${name}' could not be read in time.`))
          }
          return Equal.equals(run, given)
            ? Effect.succeed(written)
            : Effect.map(askPolicy(policy, { ...call, input: run }), (other) => Policy.stricter(written, other))
        }
      })
    )
  })
