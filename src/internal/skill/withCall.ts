/**
 * Replaces how a skill is called.
 */

import type { AnySkill, Source } from "../../Skill.ts"

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
  get listing() {
    return skill.listing
  },
  parameters: skill.parameters,
  ...(normalize === undefined ? {} : { normalize }),
  ...(skill.encodeFailure === undefined ? {} : { encodeFailure: skill.encodeFailure }),
  call
})
