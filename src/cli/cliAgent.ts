/** Creates an agent from settings, with its model, skills and kernel. */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Agents from "../Agent.ts"
import type { Call } from "../Call.ts"
import type { RunState } from "../RunState.ts"
import { RunStore } from "../RunStore.ts"
import { SkillRegistry } from "../SkillRegistry.ts"
import * as Session from "./chat/chatSession.ts"
import { asUsage, usage } from "./exit.ts"
import * as KernelLayer from "./kernelLayer.ts"
import * as Models from "./models.ts"
import type { SessionServers } from "./mcp/servers.ts"
import { isOfCommand, ofRun, type Settings } from "./settings.ts"
import type { Store } from "./storeFlag.ts"
import { excerpt } from "./terminalText.ts"
import type { WorkOptions } from "./workspace/openWorkspace.ts"

/** The defaults of a command for omitted settings. */
export interface Usual {
  /** The name of an agent without a file: `agent`. */
  readonly name?: string
  /** The turns of an agent without a file: 10. */
  readonly maxSteps?: number
  /** The skills to offer: those that fit any question. */
  readonly examples?: "all" | "general"
  /** Whether calls that may change something run without asking. */
  readonly yes?: boolean
  /** The id of the model, for a command that calls none. */
  readonly unused?: string
  /** The MCP servers of a session, besides those of the settings. */
  readonly servers?: SessionServers
  /** The names of the agents to run, of which a module may have several. None means all of it. */
  readonly names?: ReadonlyArray<string>
  /** Changes for an agent that works in a folder. */
  readonly work?: WorkOptions
}

/** The names of agents that commands make without a file. */
const usualNames: ReadonlyArray<string> = ["agent", "chat", "kernai"]

const instructions = "You are a helpful assistant. Use a skill where one helps, and answer briefly."

/**
 * Returns a function that creates the agent under a name, its model, and the kernel that runs it, with all agents to
 * run if their names are asked for.
 */
export const make = Effect.fnUntraced(function* (settings: Settings, store: Store, usual: Usual = {}) {
  const loaded = settings.agent === undefined ? undefined : yield* load(settings.agent, usual.names !== undefined)
  const [file, ...others] = loaded?.agents ?? []
  const { model, provider } = yield* usual.unused === undefined
    ? Models.open(settings, file)
    : Models.unused(usual.unused)
  // An agent file is also the config of its MCP servers. An agent without a list of skills may call their tools.
  const servers = settings.mcp ?? (file?.mcpServers === undefined ? undefined : settings.agent)
  const isOfServers = file?.mcpServers !== undefined && file.skills === undefined && settings.skillsFrom === undefined
  const work = settings.workspace === undefined ? undefined : yield* openWork(settings.workspace, settings, usual.work)
  // A module has its own skills.
  const hasOwn = loaded?.services !== undefined && settings.skills !== false
  const isAlone = (work !== undefined || hasOwn) && settings.skillsFrom === undefined
  const skills = isOfServers || isAlone ? "none" : skillsOf(settings, usual)
  const ofSession: SessionServers = usual.servers ?? new Map()
  const hasServers = servers !== undefined || ofSession.size > 0
  const hasSkills = skills !== "none" || hasServers || work !== undefined || hasOwn
  const base =
    file ??
    Agents.make({
      name: usual.name ?? "agent",
      instructions: work?.instructions ?? instructions,
      model,
      maxSteps: work === undefined ? (usual.maxSteps ?? 10) : workSteps,
      skills: hasSkills ? "all" : undefined
    })
  const changed = (base: Agents.Agent<unknown>, name: string): Agents.Agent<unknown> => ({
    ...base,
    name,
    instructions: settings.system ?? base.instructions,
    maxSteps: settings.maxSteps ?? base.maxSteps,
    dialect: settings.dialect ?? base.dialect,
    skills: !hasSkills ? undefined : isOfServers ? "all" : base.skills
  })
  const agent = (name = base.name): Agents.Agent<unknown> => ({ ...changed(base, name), model })
  const agents = yield* ofNames(usual.names ?? [], settings, agent, [
    ...(loaded === undefined || loaded.services === undefined ? [] : [agent()]),
    ...(yield* Effect.forEach(others, (other) => withProvider(settings, changed(other, other.name))))
  ])
  const known = hasServers ? yield* withServers(servers, ofSession, skills) : KernelLayer.registriesOf(skills)
  const registries = work === undefined ? known : Layer.provideMerge(work.skills, known)
  const asks = !(usual.yes ?? settings.yes ?? false)
  const references = work?.references ?? (asks ? KernelLayer.askBeforeWrites : Layer.empty)
  // The agents that an agent calls have models of their own, unless a script speaks for all.
  const models = settings.script === undefined && usual.unused === undefined ? Models.registry : Layer.empty
  const kernel = KernelLayer.make({ provider, registries, store, references: Layer.merge(references, models) })
  const services = loaded?.services ?? Layer.empty
  return { agent, agents, model, rules: work?.rules, kernel: Layer.provideMerge(kernel, services) }
})

/** Returns an agent with its provider, since the kernel has that of another agent. */
const withProvider = Effect.fnUntraced(function* (settings: Settings, agent: Agents.Agent<unknown>) {
  const { model, provider } = yield* Models.open(settings, agent)
  return { ...agent, model, provider: agent.provider ?? Effect.succeed(provider) }
})

/** Returns the agents of these names, or all of a module. A file or a flag describes an agent of any name. */
const ofNames = (
  names: ReadonlyArray<string>,
  { agent: place = "" }: Settings,
  agent: (name?: string) => Agents.Agent<unknown>,
  ofModule: ReadonlyArray<Agents.Agent<unknown>>
) => {
  if (ofModule.length === 0) return Effect.succeed(names.length === 0 ? [agent()] : names.map((name) => agent(name)))
  const missing = names.find((name) => !ofModule.some((one) => one.name === name))
  return missing === undefined
    ? Effect.succeed(ofModule.filter(({ name }) => names.length === 0 || names.includes(name)))
    : Effect.fail(usage(`${excerpt(place, 200)} has no agent of the name '${excerpt(missing, 80)}'`))
}

/** The turns of an agent that works in a folder. */
const workSteps = 100

const openWork = Effect.fnUntraced(function* (root: string, settings: Settings, options: Usual["work"]) {
  const { open } = yield* Effect.promise(() => import("./workspace/openWorkspace.ts"))
  return open(root, settings, options)
})

/**
 * Returns a function that lets an agent call its skills from programs instead of one by one, if the settings say so.
 * Otherwise it returns the agent as it is.
 */
export const programs = Effect.fnUntraced(function* ({ code }: Settings) {
  if (code !== true) return (agent: Agents.Agent<unknown>) => agent
  const registered = yield* (yield* SkillRegistry).all
  const { agent: make, layerQuickJs } = yield* Effect.promise(() => import("../code/Code.ts"))
  const interpreter = yield* Layer.build(layerQuickJs())
  return (agent: Agents.Agent<unknown>): Agents.Agent<unknown> => {
    if (agent.skills === undefined) return agent
    const skills =
      agent.skills === "all"
        ? registered
        : agent.skills.flatMap((skill) =>
            typeof skill === "string" ? registered.filter(({ name }) => name === skill) : [skill]
          )
    const program = make({ skills })
    const provider = program.provider && Effect.provideContext(program.provider, interpreter)
    const member = { ...program, instructions: "", agents: [], handoffs: [], until: undefined, provider }
    return { ...agent, skills: undefined, agents: [...agent.agents, member] }
  }
})

const load = Effect.fnUntraced(function* (file: string, several: boolean) {
  if (/\.[cm]?[jt]s(#.*)?$/s.test(file)) {
    const AgentModule = yield* Effect.promise(() => import("./agentModule.ts"))
    return yield* AgentModule.load(file, several)
  }
  const AgentFile = yield* Effect.promise(() => import("../file/AgentFile.ts"))
  const agent = yield* Effect.mapError(AgentFile.load(file), (error) => asUsage(error))
  return { agents: [agent], services: undefined }
})

/** Returns the skills to offer. */
export const skillsOf = (
  { skills = true, skillsFrom }: Settings,
  { examples = "general" }: Usual = {}
): KernelLayer.Skills => {
  if (skillsFrom !== undefined) return { directory: skillsFrom }
  return skills ? examples : "none"
}

const withServers = Effect.fnUntraced(function* (
  file: string | undefined,
  session: SessionServers,
  skills: KernelLayer.Skills
) {
  const { registries } = yield* Effect.promise(() => import("./mcp/servers.ts"))
  return yield* registries(file, session, KernelLayer.skillsOf(skills))
})

/**
 * Returns the name of a skill that a person allowed but that is not offered here. The run is then not continued, since
 * the answer would be spent on a call that cannot run. Without skills, or at another revision, nothing is missing.
 */
export const missingSkill = Effect.fnUntraced(function* (
  { skills }: Settings,
  agent: Agents.Agent<unknown>,
  runId: string,
  revision?: number | undefined
) {
  if (skills === false) return undefined
  const registry = yield* SkillRegistry
  const state = Option.getOrUndefined(yield* RunStore.use((runs) => runs.load(runId)))
  if (state === undefined || (revision !== undefined && revision !== state.revision)) return undefined
  const own = new Set([...Agents.team(agent).values()].flatMap(({ skills }) => ownNames(skills)))
  const isMissing = ({ kind, name }: Call) =>
    kind === "skill" && !own.has(name ?? "") && Option.isNone(registry.find(name ?? ""))
  return (yield* Session.allowed(state)).find(isMissing)?.name ?? undefined
})

const ownNames = (skills: Agents.Agent<unknown>["skills"]): ReadonlyArray<string> =>
  skills === undefined || skills === "all"
    ? []
    : skills.flatMap((skill) => (typeof skill === "string" ? [] : [skill.name]))

/**
 * Returns true if no flag names the agent of a run of a program or a file, so that it would run under an agent that
 * only has its name.
 */
export const isStandIn = (run: Pick<RunState, "agent" | "context">, settings: Settings): boolean =>
  settings.agent === undefined &&
  (ofRun(run).agent !== undefined || !(isOfCommand(run) || usualNames.includes(run.agent)))

/** Returns the message about an agent that no flag names. */
export const unnamed = (name: string): string =>
  `the run belongs to the agent '${excerpt(name, 80)}' of a program: name it by --agent <module>#<export>, such as ./agents.ts#${excerpt(name, 80)}`

/** Returns the message for a missing skill. */
export const missing = (name: string): string =>
  `the skill '${excerpt(name, 80)}' was allowed but is not here: give its folder with --skills-from, or continue without it with --no-skills`
