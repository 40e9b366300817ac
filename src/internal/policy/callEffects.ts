/**
 * The declared effects of calls, and the other terms of their targets. For a call that was launched, the stricter of what
 * was stored with it and what its target declares by now counts.
 */

import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import type { Call, Effects } from "../../Call.ts"
import type { ProtocolRegistry } from "../../ProtocolRegistry.ts"
import type { AnySkill } from "../../Skill.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"

/** The registries that declare effects. A type alias, so that declarations of a project can inline it. */
type Registries = {
  readonly skills: Pick<SkillRegistry["Service"], "find">
  readonly protocols: Pick<ProtocolRegistry["Service"], "find">
}

/**
 * Returns the effects of a call, which decide about resume, retry and the default policy. A call that was launched keeps
 * the effects that were stored with it, unless its skill has stricter ones by now. One that can be repeated counts as
 * `write` if its skill has other credentials by now: they may be those of another account, which does not know it.
 */
export const effectsOf = (registries: Registries, call: Pick<Call, "kind" | "name" | "effects" | "terms">): Effects => {
  const declared = declaredEffects(registries, call)
  const { effects = declared, terms } = call
  const stricter = strictness[effects] > strictness[declared] ? effects : declared
  if (stricter !== "idempotent" || terms?.credentials === undefined) return stricter
  const { credentialKeys = [] } = skillOf(registries, call) ?? {}
  return terms.credentials.join("\n") === credentialKeys.join("\n") ? stricter : "write"
}

/** Returns what is stored with the launch of a call, if its target declares anything of it. */
export const termsOf = (registries: Registries, call: Call): { readonly terms?: NonNullable<Call["terms"]> } => {
  const { credentialKeys: credentials, timeout } = skillOf(registries, call) ?? {}
  if (credentials === undefined && timeout === undefined) return {}
  return {
    terms: {
      ...(timeout === undefined ? {} : { timeoutMillis: Duration.toMillis(timeoutOf(call, timeout)) }),
      ...(credentials === undefined ? {} : { credentials })
    }
  }
}

/** Returns the time limit of a call: that of its skill, unless it was launched with a shorter one. */
export const timeoutOf = ({ terms }: Pick<Call, "terms">, declared: Duration.Duration): Duration.Duration =>
  terms?.timeoutMillis === undefined ? declared : Duration.min(declared, Duration.millis(terms.timeoutMillis))

const skillOf = ({ skills }: Registries, { kind, name }: Pick<Call, "kind" | "name">): AnySkill | undefined =>
  kind === "skill" ? Option.getOrUndefined(skills.find(name ?? "")) : undefined

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
