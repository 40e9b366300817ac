/**
 * An agent as the command line describes it, with its model, skills and kernel.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Agents from "../Agent.ts"
import type { Call } from "../Call.ts"
import { RunStore } from "../RunStore.ts"
import { SkillRegistry } from "../SkillRegistry.ts"
import * as Session from "./chat/chatSession.ts"
import type { Agent } from "./commands/flags.ts"
import * as KernelLayer from "./kernelLayer.ts"
import * as Models from "./models.ts"
import type { Store } from "./storeFlag.ts"
import { excerpt } from "./terminalText.ts"

/**
 * Returns an agent under any name, its model, and the kernel that runs it. `mcp` is a config of servers.
 *
 * A store keeps only the name of an agent: a process that continues a run describes the agent again.
 */
export const make = Effect.fnUntraced(function* (described: Agent, store: Store, mcp?: string) {
  const { dialect, instructions, maxSteps, skills } = described
  const { model, provider } = yield* Models.open(described.source)
  const offered = skills === "none" && mcp === undefined ? {} : { skills: "all" as const }
  const agent = (name: string) => Agents.make({ name, instructions, model, maxSteps, dialect, ...offered })
  const registries = mcp === undefined ? KernelLayer.registriesOf(skills) : yield* withServers(mcp, skills)
  return { agent, model, kernel: KernelLayer.make({ provider, registries, store, asks: !described.yes }) }
})

const withServers = Effect.fnUntraced(function* (mcp: string, skills: KernelLayer.Skills) {
  const { registries } = yield* Effect.promise(() => import("./mcp/servers.ts"))
  return yield* registries(mcp, KernelLayer.skillsOf(skills))
})

/**
 * Returns the name of a skill that a person allowed and that is not offered here. The run is not continued then: the
 * answer would be spent on a call that cannot run. Without skills, or at another revision, nothing is missing.
 */
export const missingSkill = Effect.fnUntraced(function* (
  { skills }: Pick<Agent, "skills">,
  runId: string,
  revision?: number | undefined
) {
  if (skills === "none") return undefined
  const registry = yield* SkillRegistry
  const state = Option.getOrUndefined(yield* RunStore.use((runs) => runs.load(runId)))
  if (state === undefined || (revision !== undefined && revision !== state.revision)) return undefined
  const isMissing = ({ kind, name }: Call) => kind === "skill" && Option.isNone(registry.find(name ?? ""))
  return (yield* Session.allowed(state)).find(isMissing)?.name ?? undefined
})

/** Says that a skill is missing, and what to do. */
export const missing = (name: string): string =>
  `the skill '${excerpt(name, 80)}' was allowed but is not here: give its folder with --skills-from, or continue without it with --no-skills`
