/**
 * An agent as the command line describes it, with its model, skills and kernel.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Agent from "../Agent.ts"
import type { Call } from "../Call.ts"
import { RunStore } from "../RunStore.ts"
import { SkillRegistry } from "../SkillRegistry.ts"
import * as Session from "./chat/chatSession.ts"
import * as KernelLayer from "./kernelLayer.ts"
import * as Models from "./models.ts"
import type { Store } from "./storeFlag.ts"
import { excerpt } from "./terminalText.ts"

/** The flags of an agent. A store keeps only its name: a process that continues a run gets them again. */
export interface Options {
  readonly source: Models.ModelSource
  readonly instructions: string
  readonly skills: KernelLayer.Skills
  readonly maxSteps: number
  readonly dialect: Agent.DialectName
  /** Whether calls that may change something run without asking. */
  readonly yes: boolean
}

/** Returns the agent under any name, its model, and the kernel that runs it. `mcp` is a config of servers. */
export const make = Effect.fnUntraced(function* (options: Options, store: Store, mcp?: string) {
  const { instructions, maxSteps, dialect, skills } = options
  const { model, provider } = yield* Models.open(options.source)
  const agent = (name: string) =>
    Agent.make({
      name,
      instructions,
      model,
      maxSteps,
      dialect,
      ...(skills === "none" && mcp === undefined ? {} : { skills: "all" as const })
    })
  const registries = mcp === undefined ? KernelLayer.registriesOf(skills) : yield* withServers(mcp, skills)
  return { agent, model, kernel: KernelLayer.make({ provider, registries, store, asks: !options.yes }) }
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
  { skills }: Pick<Options, "skills">,
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
