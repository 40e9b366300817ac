/**
 * The declared effects of calls.
 */

import * as Option from "effect/Option"
import type { Call, Effects } from "../../Call.ts"
import type { ProtocolRegistry } from "../../ProtocolRegistry.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"

/** The registries that declare effects. A type alias, so that declarations of a project can inline it. */
type Registries = {
  readonly skills: Pick<SkillRegistry["Service"], "find">
  readonly protocols: Pick<ProtocolRegistry["Service"], "find">
}

/**
 * Returns the effects of a call, which decide about resume, retry and the default policy. A call that was launched keeps
 * the effects that were stored with it, unless its skill has stricter ones by now.
 */
export const effectsOf = (registries: Registries, call: Pick<Call, "kind" | "name" | "effects">): Effects => {
  const declared = declaredEffects(registries, call)
  const { effects = declared } = call
  return strictness[effects] > strictness[declared] ? effects : declared
}

const strictness = { read: 0, idempotent: 1, write: 2 } as const

const declaredEffects = (
  { protocols, skills }: Registries,
  { kind, name: called }: Pick<Call, "kind" | "name">
): Effects => {
  const name = called ?? ""
  switch (kind) {
    case "skill":
      return Option.match(skills.find(name), { onNone: () => "write", onSome: effects })
    case "protocol":
      return Option.match(protocols.find(name), { onNone: () => "write", onSome: effects })
    // A child run has its own journal, so running it again resumes it.
    case "task":
    case "agent":
      return "idempotent"
    case "handoff":
    case "builtin":
      return "read"
  }
}

const effects = (target: { readonly effects: Effects }): Effects => target.effects
