/**
 * Replaces how a skill is called.
 */

import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type { AnySkill, CallScope, Source } from "../../Skill.ts"
import type { JsonObject } from "../../kit/json.ts"

/** Returns a skill with its services provided by `provide`. */
export const closedSkill = <R>(
  skill: AnySkill<R>,
  provide: <A, E>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E>,
  source: Source = skill.source
): AnySkill => {
  const { needsApproval, normalize } = skill
  const calls = {
    call: (input: JsonObject, scope: CallScope) => provide(skill.call(input, scope)),
    ...(normalize === undefined ? {} : { normalize: (input: JsonObject) => provide(normalize(input)) }),
    ...(needsApproval === undefined ? {} : { needsApproval: (input: JsonObject) => provide(needsApproval(input)) })
  }
  return withCall(skill, calls, source)
}

/** Returns the same skill with other functions that need its services, and optionally another source. */
export const withCall = (skill: AnySkill<unknown>, calls: Calls, source: Source = skill.source): AnySkill =>
  new CalledSkill(skill, calls, source)

type Calls = Pick<AnySkill, "call" | "normalize" | "needsApproval">

/** Its getters are those of a class: each run closes over its skills, and a getter of an object would keep the run. */
class CalledSkill implements AnySkill {
  readonly #skill: AnySkill<unknown>
  readonly name: string
  readonly description: string
  readonly effects: AnySkill["effects"]
  readonly annotations: AnySkill["annotations"]
  readonly requires: AnySkill["requires"]
  readonly produces: AnySkill["produces"]
  readonly source: Source
  declare readonly aliases?: ReadonlyArray<string>
  declare readonly timeout?: Duration.Duration
  declare readonly credentialKeys?: ReadonlyArray<string>
  declare readonly hosted?: NonNullable<AnySkill["hosted"]>
  declare readonly normalize?: NonNullable<AnySkill["normalize"]>
  declare readonly needsApproval?: NonNullable<AnySkill["needsApproval"]>
  declare readonly encodeFailure?: NonNullable<AnySkill["encodeFailure"]>
  readonly parameters: AnySkill["parameters"]
  readonly call: AnySkill["call"]

  constructor(skill: AnySkill<unknown>, { needsApproval, call, normalize }: Calls, source: Source) {
    this.#skill = skill
    this.name = skill.name
    this.description = skill.description
    this.effects = skill.effects
    this.annotations = skill.annotations
    this.requires = skill.requires
    this.produces = skill.produces
    this.source = source
    if (skill.aliases !== undefined) this.aliases = skill.aliases
    if (skill.timeout !== undefined) this.timeout = skill.timeout
    if (skill.credentialKeys !== undefined) this.credentialKeys = skill.credentialKeys
    if (skill.hosted !== undefined) this.hosted = skill.hosted
    if (normalize !== undefined) this.normalize = normalize
    if (needsApproval !== undefined) this.needsApproval = needsApproval
    if (skill.encodeFailure !== undefined) this.encodeFailure = skill.encodeFailure
    this.parameters = skill.parameters
    this.call = call
  }

  get inputSchema(): JsonObject {
    return this.#skill.inputSchema
  }

  get lostPatterns(): ReadonlyArray<string> {
    return this.#skill.lostPatterns ?? []
  }

  get listing(): string {
    return this.#skill.listing
  }
}
