/**
 * A skill that is called in another way and is the same in all else.
 */

import type { AnySkill, Source } from "../../Skill.ts"

/** The same skill with another `call` and `normalize`, and with another source if one is given. */
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
  // These two are computed when first read.
  get inputSchema() {
    return skill.inputSchema
  },
  get listing() {
    return skill.listing
  },
  parameters: skill.parameters,
  ...(normalize === undefined ? {} : { normalize }),
  call
})
