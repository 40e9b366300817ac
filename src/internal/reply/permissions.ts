/**
 * What a run may see and use: skills, protocols, and the form of its replies.
 *
 * Listing and dispatch ask the same questions here, so whatever is hidden cannot be called either.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Json } from "effect/Schema"
import * as Agents from "../../Agent.ts"
import type { Call } from "../../Call.ts"
import type { PromptContext } from "../../PromptPipeline.ts"
import type { AnyProtocol } from "../../Protocol.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import type { ReplyGrammar, ToolDefinition } from "../../Provider.ts"
import type { AnySkill } from "../../Skill.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import { type JsonObject, isJsonObject, jsonObject } from "../base/json.ts"
import { askPolicy, shows } from "../policy/decision.ts"
import { ofText } from "../prompt/tokenEstimate.ts"
import { type AnyAgent, type Callable, type Run, policyScope } from "../run/run.ts"
import { turnLog } from "../state/state.ts"

/** The skills the agent may call, in listing order, and after them its agents. An agent hides a skill of its name. */
export const visibleSkills = (run: Run): Effect.Effect<ReadonlyArray<AnySkill>> =>
  Effect.map(run.skills.all, (all) => {
    const visible = listedOf(run, all).filter(({ hosted }) => hosted === undefined)
    const { callables } = run
    if (callables.size === 0) return visible.filter((skill) => isShown(run, skill))
    const own = visible.filter(({ name }) => !callables.has(name))
    return [...own, ...Array.from(callables.values(), ({ skill }) => skill)].filter((skill) => isShown(run, skill))
  })

/** Those of some skills that the agent lists, its model can use and the host allows. */
const listedOf = (run: Run, skills: ReadonlyArray<AnySkill>): ReadonlyArray<AnySkill> =>
  skills.length === 0
    ? none
    : SkillRegistry.visible(skills, {
        agentSkills: Agents.skillNames(run.agent),
        model: run.model,
        allowed: run.allowed
      })

/** The tools that the vendor runs itself and that the policy allows. It is asked in advance, since the vendor runs them without asking. */
const hostedTools = (run: Run): Effect.Effect<ReadonlyArray<ToolDefinition>> =>
  Effect.flatMap(run.skills.all, (all) => {
    const { name } = run.provider
    const skills = all.filter(({ hosted }) => hosted?.[name] !== undefined)
    if (skills.length === 0) return Effect.succeed(none)
    const hosted = listedOf(run, skills).filter((skill) => isShown(run, skill))
    return hosted.length === 0 ? Effect.succeed(none) : Effect.map(Effect.filter(hosted, allowsHosted(run)), hostedOf)
  })

const none: ReadonlyArray<never> = []

const hostedOf = (skills: ReadonlyArray<AnySkill>): ReadonlyArray<ToolDefinition> =>
  skills.map(({ description, hosted = {}, inputSchema, name }) => ({ name, description, inputSchema, hosted }))

const allowsHosted =
  (run: Run) =>
  ({ effects, name }: AnySkill): Effect.Effect<boolean> => {
    if (run.policy === undefined) return Effect.succeed(true)
    const callId = `${run.state.currentTurn?.turnId ?? ""}.${name}`
    const call = { ...policyScope(run), callId, name, kind: "skill", input: {}, effects } as const
    return Effect.map(run.restore(askPolicy(run.policy, call)), ({ _tag }) => _tag === "Allowed")
  }

/** The names of the agents that the agent may call. */
export const agentNames = (run: Run): ReadonlyArray<string> =>
  Array.from(run.callables.values()).flatMap(({ agent, kind, skill }) =>
    kind === "agent" && isShown(run, skill) ? [agent.name] : []
  )

/** The agent that a call names, or undefined when this agent may not call it. */
export const callableOf = (run: Run, name: string): Callable | undefined => {
  const callable = run.callables.get(name)
  return callable !== undefined && isShown(run, callable.skill) ? callable : undefined
}

/** Returns why the agent may not call a skill. Undefined when it may. */
export const refusalOf = (run: Run, skill: AnySkill): string | undefined =>
  refusalBy(run, skill, Agents.skillNames(run.agent))

const refusalBy = (run: Run, skill: AnySkill, listed: ReturnType<typeof Agents.skillNames>): string | undefined => {
  const isOpen = run.agent.gate === "listing"
  const reason = SkillRegistry.allowed(skill, {
    agentSkills: isOpen ? "all" : listed,
    model: isOpen ? undefined : run.model,
    allowed: run.allowed
  })
  return reason ?? (isShown(run, skill) ? undefined : "is not available")
}

/** Does the policy of the run show a skill or a protocol? */
const isShown = (run: Run, { name }: { readonly name: string }): boolean =>
  run.policy === undefined || shows(run.policy, name, policyScope(run))

/** Returns a check that a protocol makes before it calls a skill for the agent; see `Protocol.ProtocolScope`. */
export const refusalThrough = (run: Run, call: Call): ((name: string) => string | undefined) => {
  const listed = Agents.skillNames(run.agent) ?? "all"
  // A list of tools checks thousands of names.
  const names = new Set(listed)
  return (name) => {
    const skill = run.skills.find(name)
    // By now the block may stand for another skill than the one that was judged.
    if (Option.isNone(skill) || (call.skill ?? name) !== name) return "is not available"
    const { source } = skill.value
    // A name without a skill at the moment may belong to this source all the same.
    const isOfThese = (other: string) => {
      const found = run.skills.find(other)
      return Option.isNone(found) ? other.startsWith(`${source}_`) : found.value.source === source
    }
    const isThere =
      listed === "all" || names.has(name) || (run.agent.protocols?.includes(call.name ?? "") && !listed.some(isOfThese))
    return refusalBy(run, skill.value, isThere ? "all" : [])
  }
}

/** Does a block type belong to a registered protocol? Such a block is a call, even when the agent may not make it. */
export const isProtocol = (run: Run, type: string): boolean => Option.isSome(run.protocols.find(type))

/** The protocols that the agent may use, in the order of their registration. */
export const visibleProtocols = (run: Run): Effect.Effect<ReadonlyArray<AnyProtocol>> =>
  Effect.map(run.protocols.all, (all) => (all.length === 0 ? none : all.filter((protocol) => maySpeak(run, protocol))))

/** May the agent use a protocol, and does its policy show it? */
export const maySpeak = (run: Run, protocol: AnyProtocol): boolean =>
  ProtocolRegistry.visible([protocol], run.agent.protocols).some((protocol) => isShown(run, protocol))

/** Can the agent act at all? Its instructions and the reading of its replies agree on this. */
export const canAct = (run: Run, protocols: ReadonlyArray<AnyProtocol>): boolean =>
  run.agent.skills !== undefined || protocols.length > 0 || run.callables.size > 0

/** Reads the text of a command block as the parameters that its skill declares. */
export const parametersOf = (run: Run, name: string, text: string): JsonObject => {
  const callable = run.callables.get(name)
  if (callable !== undefined) return callable.skill.parameters(text)
  const skill = run.skills.find(name)
  return Option.isSome(skill) ? skill.value.parameters(text) : { input: text }
}

/** The tools of a request: in the native dialect skills and protocols, and in both those that the vendor runs. */
export const definitions = (run: Run): Effect.Effect<ReadonlyArray<ToolDefinition>> =>
  run.agent.dialect === "tools"
    ? Effect.zipWith(nativeTools(run), hostedTools(run), (native, hosted) => [...native, ...hosted])
    : hostedTools(run)

/** Skills and protocols as native tools. A protocol takes the content of its block as `request`. */
const nativeTools = (run: Run): Effect.Effect<ReadonlyArray<ToolDefinition>> =>
  Effect.map(Effect.zip(visibleSkills(run), visibleProtocols(run)), ([skills, protocols]) => [
    ...toolsOf(run, skills),
    ...protocols.map((protocol) => ({
      name: protocol.name,
      description: protocol.documentation ?? `Sends a request to ${protocol.name}.`,
      inputSchema: requestSchema
    }))
  ])

const requestSchema: JsonObject = {
  type: "object",
  properties: { request: { type: "string" } },
  required: ["request"],
  additionalProperties: false
}

// ---------------------------------------------------------------- the grammar

/** The grammar of the next reply. Undefined for native calls, which follow the vendor's own rules. */
export const grammarOf = (run: Run): Effect.Effect<ReplyGrammar | undefined> =>
  run.agent.dialect === "tools"
    ? Effect.succeed(undefined)
    : Effect.map(Effect.zip(visibleSkills(run), visibleProtocols(run)), ([skills, protocols]) =>
        grammarFor(run, skills, protocols)
      )

interface Spoken {
  readonly skills: ReadonlyArray<AnySkill>
  readonly protocols: ReadonlyArray<AnyProtocol>
  readonly root: boolean
  readonly grammar: ReplyGrammar | undefined
}

const spoken = new WeakMap<AnyAgent, Spoken>()

/** Returns the same value for the same skills and protocols, so that adapters write a grammar once. */
const grammarFor = (
  run: Run,
  skills: ReadonlyArray<AnySkill>,
  protocols: ReadonlyArray<AnyProtocol>
): ReplyGrammar | undefined => {
  const root = run.state.depth === 0
  const last = spoken.get(run.agent)
  if (last?.root === root && isSame(last.skills, skills) && isSame(last.protocols, protocols)) return last.grammar
  const output = run.agent.typed ? jsonObject(run.agent.outputJsonSchema?.()) : undefined
  const grammar: ReplyGrammar | undefined = canAct(run, protocols)
    ? { _tag: "Blocks", skills, protocols, workflows: root, agents: agentNames(run), output }
    : output === undefined
      ? undefined
      : { _tag: "Json", schema: output }
  spoken.set(run.agent, { skills, protocols, root, grammar })
  return grammar
}

const isSame = <A>(a: ReadonlyArray<A>, b: ReadonlyArray<A>): boolean =>
  a.length === b.length && a.every((item, index) => item === b[index])

// ---------------------------------------------------------------- the skills shown

/** The native tool that searches skills. */
const searchTool = "search_skills"

/** Is this native call the search, and no skill or agent of that name? */
export const isSearch = (run: Run, name: string): boolean =>
  name === searchTool && Option.isNone(run.skills.find(name)) && !run.callables.has(name)

/** The native tools of skills: all of them, or the search and the skills that were found last. */
const toolsOf = (run: Run, skills: ReadonlyArray<AnySkill>): ReadonlyArray<ToolDefinition> => {
  const { nativeSkills } = run.limits
  if (skills.length <= nativeSkills || !isSearch(run, searchTool)) return skills.map(toolOf)
  const byName = new Map(skills.map((skill) => [skill.name, skill]))
  const called = skills.filter(({ name }) => run.callables.has(name))
  const found = foundBefore(run, skills)
    .flatMap((name) => byName.get(name) ?? [])
    .filter((skill) => !called.includes(skill))
  return [searchDefinition(skills.length), ...[...called, ...found.slice(-nativeSkills)].map(toolOf)]
}

/** The names that the last turn was offered, in their order, and after them those that its searches found. */
const foundBefore = (run: Run, skills: ReadonlyArray<AnySkill>): ReadonlyArray<string> => {
  const turn = turnLog(run.state).last()
  const searches = turn?.completed.filter(({ kind, name }) => kind === "builtin" && name === searchTool) ?? []
  const found = searches.flatMap(({ input }) => SkillRegistry.search(skills, wordsIn(input)))
  return [...new Set([...(turn?.tools ?? []), ...found.map(({ name }) => name)])]
}

const toolOf = ({ description, inputSchema, name }: AnySkill): ToolDefinition => ({ name, description, inputSchema })

const searchDefinition = (count: number): ToolDefinition => ({
  name: searchTool,
  description: `Finds skills by words. There are ${count}, more than are shown at once: those it finds can be called from the next reply on.`,
  inputSchema
})

const inputSchema: JsonObject = {
  type: "object",
  properties: {
    words: { type: "string", description: "Words of what the skill does, such as: create calendar event" }
  },
  required: ["words"],
  additionalProperties: false
}

/** The listing for a prompt of blocks. Undefined where the model asks for it, as agents of a fixed dialect do. */
export const listingOf = (run: Run, skills: ReadonlyArray<AnySkill>): PromptContext["listing"] => {
  if (!run.isListed || run.agent.dialect === "tools" || run.agent.skills === undefined) return undefined
  const text = SkillRegistry.listing(skills)
  if (!isLong(run, text)) return { _tag: "Whole", text }
  // A grammar leaves no room for words in the command.
  return run.agent.grammar ? undefined : { _tag: "Searched", count: skills.length }
}

/** The answer to `/skills`: the listing, or of a long one what words find in it. */
export const answerSkills = (run: Run, skills: ReadonlyArray<AnySkill>, input: Json): string => {
  const words = wordsIn(input).trim()
  const listing = SkillRegistry.listing(skills)
  if (words === "" || !isLong(run, listing)) return listing
  return withHits(skills, words, SkillRegistry.listing)
}

/** The answer to a native search. What it found is offered on the next turn, with its input. */
export const answerSearch = (skills: ReadonlyArray<AnySkill>, input: Json): string =>
  withHits(skills, wordsIn(input), (found) =>
    found.map(({ description, name }) => (description === "" ? `- ${name}` : `- ${name}: ${description}`)).join("\n")
  )

const withHits = (
  skills: ReadonlyArray<AnySkill>,
  words: string,
  write: (found: ReadonlyArray<AnySkill>) => string
): string => {
  const found = SkillRegistry.search(skills, words)
  return found.length === 0 ? `None of ${skills.length} skills matches these words. Try other words.` : write(found)
}

const isLong = (run: Run, listing: string): boolean => ofText(listing) > run.limits.listedTokens

/** The words of a command, or of a native call. */
const wordsIn = (input: Json): string => {
  const words = isJsonObject(input) ? (input["words"] ?? "") : input
  return typeof words === "string" ? words : JSON.stringify(words)
}
