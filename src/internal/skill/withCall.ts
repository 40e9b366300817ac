/**
 * Replaces how a skill is called.
 */

import type * as Effect from "effect/Effect"
import type { AnySkill, CallScope, Source } from "../../Skill.ts"
import type { JsonObject } from "../base/json.ts"

/** Returns a skill with its services provided by `provide`. */
export const closedSkill = <R>(
  skill: AnySkill<R>,
  provide: <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E>,
  source: Source = skill.source
): AnySkill => {
  const { normalize } = skill
  const calls = {
    call: (input: JsonObject, scope: CallScope) => provide(skill.call(input, scope)),
    ...(normalize === undefined ? {} : { normalize: (input: JsonObject) => provide(normalize(input)) })
  }
  return withCall(skill, calls, source)
}

/** Returns the same skill with another `call` and `normalize`, and optionally another source. */
export const withCall = (
  skill: AnySkill<unknown>,
  { call, normalize }: Pick<AnySkill, "call" | "normalize">,
  source: Source = skill.source
): AnySkill => ({
  name: skill.name,
  description: skill.description,
  effects: skill.effects,
  annotations: skill.annotations,
  requires: skill.requires,
  produces: skill.produces,
  source,
  ...(skill.timeout === undefined ? {} : { timeout: skill.timeout }),
  // Getters, because both are computed on first access.
  get inputSchema() {
    return skill.inputSchema
  },
  get lostPatterns() {
    return skill.lostPatterns ?? []
  },
  get listing() {
    return skill.listing
  },
  parameters: skill.parameters,
  ...(skill.hosted === undefined ? {} : { hosted: skill.hosted }),
  ...(normalize === undefined ? {} : { normalize }),
  ...(skill.encodeFailure === undefined ? {} : { encodeFailure: skill.encodeFailure }),
  call
})
