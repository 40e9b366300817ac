/**
 * The declared effects of calls.
 */

import * as Option from "effect/Option"
import type { Call, Effects } from "../../Call.ts"
import type { ProtocolRegistry } from "../../ProtocolRegistry.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"

/** Returns the effects of a call, which decide about resume, retry and the default policy. */
export const effectsOf = (
  {
    protocols,
    skills
  }: {
    readonly skills: Pick<SkillRegistry["Service"], "find">
    readonly protocols: Pick<ProtocolRegistry["Service"], "find">
  },
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
