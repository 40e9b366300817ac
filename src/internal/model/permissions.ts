/**
 * Decides which skills, protocols and agents a run may see and use, and which tools and grammar its requests have.
 *
 * Listing and dispatch use the same checks, so a hidden callable cannot be called.
 */

import * as Effect from "effect/Effect"
import * as Hash from "effect/Hash"
import * as Option from "effect/Option"
import type { Json } from "effect/Schema"
import * as Agents from "../../Agent.ts"
import type { Call } from "../../Call.ts"
import * as Models from "../../Model.ts"
import type { PromptContext } from "../../PromptPipeline.ts"
import type { AnyProtocol } from "../../Protocol.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import type { ReplyGrammar, ToolDefinition } from "../../Provider.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import type { AnySkill } from "../../Skill.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import { type JsonObject, isJsonObject, jsonObject } from "../../kit/json.ts"
import { perObject } from "../../kit/perObject.ts"
import { transferTo } from "../agent/team.ts"
import { askPolicy, shows } from "../policy/decision.ts"
import { ofText } from "../prompt/tokenEstimate.ts"
import { type AnyAgent, type Callable, type Offer, type Run, policyScope } from "../run/run.ts"
import { turnLog } from "../state/state.ts"

/**
 * Returns the skills the agent may call in listing order, then its agents. An agent hides a skill with the same name.
 */
export const visibleSkills = (run: Run): Effect.Effect<ReadonlyArray<AnySkill>> =>
  Effect.map(run.skills.all, (all) => visibleOf(run, all))

const visibleOf = (run: Run, all: ReadonlyArray<AnySkill>): ReadonlyArray<AnySkill> => {
  const visible = listedOf(run, all).filter(({ hosted }) => hosted === undefined)
  const { callables } = run
  if (callables.size === 0) return visible.filter((skill) => isShown(run, skill))
  const own = visible.filter(({ name }) => !callables.has(name))
  return [...own, ...Array.from(callables.values(), ({ skill }) => skill)].filter((skill) => isShown(run, skill))
}

/** Filters skills by the agent's list, the capabilities of its model and the host's allow list. */
const listedOf = (run: Run, skills: ReadonlyArray<AnySkill>): ReadonlyArray<AnySkill> =>
  skills.length === 0
    ? none
    : SkillRegistry.visible(skills, {
        agentSkills: Agents.skillNames(run.agent),
        model: run.model,
        allowed: run.allowed
      })

/**
 * Returns the tools that the vendor runs itself and that the policy allows. The policy decides in advance, because the
 * vendor runs them during the reply.
 */
const hostedTools = (run: Run, all: ReadonlyArray<AnySkill>): Effect.Effect<ReadonlyArray<ToolDefinition>> => {
  const { name } = run.provider
  const skills = all.filter(({ hosted }) => hosted?.[name] !== undefined)
  if (skills.length === 0) return noTools
  const hosted = listedOf(run, skills).filter((skill) => isShown(run, skill))
  return hosted.length === 0 ? noTools : Effect.map(Effect.filter(hosted, allowsHosted(run)), hostedOf)
}

const noTools: Effect.Effect<ReadonlyArray<never>> = Effect.succeed([])

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

/** Returns whether a name is that of an agent which this one may call in the background. */
export const mayBackground = ({ callables }: Run, name: string): boolean => {
  const callable = callables.get(name)
  return callable?.kind === "agent" && callable.agent.background
}

/** Returns the names of the agents that the agent may call. */
export const agentNames = (run: Run): ReadonlyArray<string> =>
  Array.from(run.callables.values()).flatMap(({ agent, kind, skill }) =>
    kind === "agent" && isShown(run, skill) ? [agent.name] : []
  )

/** Returns the agent that a call names. Undefined if this agent may not call it. */
export const callableOf = (run: Run, name: string): Callable | undefined => {
  const callable = run.callables.get(name) ?? formerly(run, name)
  return callable !== undefined && isShown(run, callable.skill) ? callable : undefined
}

/** Returns the agent that a stored call names by one of its aliases. */
const formerly = ({ callables }: Run, name: string): Callable | undefined =>
  Array.from(callables.values()).find(({ agent, kind }) =>
    agent.aliases.some((alias) => name === (kind === "handoff" ? transferTo(alias) : alias))
  )

/** Returns why the agent may not call a skill. Undefined if it may. */
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

/** Returns whether the policy of the run shows a skill or a protocol. */
const isShown = (run: Run, { name }: { readonly name: string }): boolean =>
  run.policy === undefined || shows(run.policy, name, policyScope(run))

/** Returns a check that a protocol makes before it calls a skill for the agent; see `Protocol.ProtocolScope`. */
export const refusalThrough = (run: Run, call: Call): ((name: string) => string | undefined) => {
  const listed = Agents.skillNames(run.agent) ?? "all"
  // A list of tools checks thousands of names.
  const names = new Set(listed)
  return (name) => {
    const skill = run.skills.find(name)
    // The block may now stand for another skill than the one the policy judged.
    if (Option.isNone(skill) || (call.skill ?? name) !== name) return "is not available"
    const { source } = skill.value
    // A name without a registered skill may belong to this source, too.
    const isOfThese = (other: string) => {
      const found = run.skills.find(other)
      return Option.isNone(found) ? other.startsWith(`${source}_`) : found.value.source === source
    }
    const isThere =
      listed === "all" || names.has(name) || (run.agent.protocols?.includes(call.name ?? "") && !listed.some(isOfThese))
    return refusalBy(run, skill.value, isThere ? "all" : [])
  }
}

/**
 * Returns whether a block type belongs to a registered protocol. Such a block is a call, even if the agent may not make
 * it.
 */
export const isProtocol = (run: Run, type: string): boolean => Option.isSome(run.protocols.find(type))

/** Returns the protocols that the agent may use, in order of registration. */
export const visibleProtocols = (run: Run): Effect.Effect<ReadonlyArray<AnyProtocol>> =>
  Effect.map(run.protocols.all, (all) => (all.length === 0 ? none : all.filter((protocol) => maySpeak(run, protocol))))

/** Returns whether the agent may use a protocol and its policy shows it. */
export const maySpeak = (run: Run, protocol: AnyProtocol): boolean =>
  ProtocolRegistry.visible([protocol], run.agent.protocols).some((protocol) => isShown(run, protocol))

/** Returns whether the agent can make any calls. Decides both its instructions and how its replies are read. */
export const canAct = (run: Run, protocols: ReadonlyArray<AnyProtocol>): boolean =>
  run.agent.skills !== undefined || protocols.length > 0 || run.callables.size > 0

/** Parses the text of a command block as the parameters that its skill declares. */
export const parametersOf = (run: Run, name: string, text: string): JsonObject => {
  const callable = run.callables.get(name)
  if (callable !== undefined) return callable.skill.parameters(text)
  const skill = run.skills.find(name)
  return Option.isSome(skill) ? skill.value.parameters(text) : { input: text }
}

/**
 * Returns what a turn offers its model. The same object as long as no skill or protocol comes or goes, unless a policy
 * or a search decides about each turn.
 */
export const offerOf = (
  run: Run,
  skills: ReadonlyArray<AnySkill>,
  protocols: ReadonlyArray<AnyProtocol>
): Effect.Effect<Offer> => {
  const { offer } = run
  return offer !== undefined && isSame(offer.skills, skills) && isSame(offer.protocols, protocols)
    ? Effect.succeed(offer)
    : makeOffer(run, skills, protocols)
}

const makeOffer = Effect.fnUntraced(function* (
  run: Run,
  skills: ReadonlyArray<AnySkill>,
  protocols: ReadonlyArray<AnyProtocol>
): Effect.fn.Return<Offer> {
  const visible = visibleOf(run, skills)
  const spoken = protocols.filter((protocol) => maySpeak(run, protocol))
  const hosted = yield* hostedTools(run, skills)
  const isNative = run.agent.dialect === "tools"
  const offer: Offer = {
    skills,
    protocols,
    spoken,
    tools: isNative ? [...toolsOf(run, visible), ...spoken.map(protocolTool), ...hosted] : hosted,
    digest: visible.reduce((sum, skill) => Hash.combine(digestOf(skill, isNative))(sum), 0),
    listing: run.isListed ? listingOf(run, visible) : undefined
  }
  run.offer = run.policy === undefined && !(isNative && isSearched(run, visible)) ? offer : undefined
  return offer
})

/** Returns a digest of a skill. In blocks the model reads no schemas, and making one takes time. */
const digestOf = (skill: AnySkill, isNative: boolean): number =>
  isNative ? Hash.combine(digestOfSchema(skill.inputSchema))(Hash.string(skill.name)) : Hash.string(skill.name)

const digestOfSchema = perObject((schema: JsonObject): number => Hash.string(JSON.stringify(schema)))

/** Returns a protocol as a native tool, which takes the content of its block as `request`. */
const protocolTool = ({ documentation, name }: AnyProtocol): ToolDefinition => ({
  name,
  description: documentation ?? `Sends a request to ${name}.`,
  inputSchema: requestSchema
})

const requestSchema: JsonObject = {
  type: "object",
  properties: { request: { type: "string" } },
  required: ["request"],
  additionalProperties: false
}

// ---------------------------------------------------------------- the grammar

/**
 * Returns the grammar of the next reply. For native calls, which follow the vendor's format, it is the schema of a typed
 * answer, if the vendor can hold the model to it.
 */
export const grammarOf = (
  run: Run,
  model: Models.Model,
  tools: ReadonlyArray<ToolDefinition>
): Effect.Effect<ReplyGrammar | undefined> =>
  run.agent.dialect === "tools"
    ? Effect.succeed(
        !run.state.outputRefused && Models.holdsSchema(model, tools.length > 0)
          ? answerOf(run.agent).grammar
          : undefined
      )
    : !run.agent.grammar
      ? Effect.succeed(undefined)
      : Effect.map(Effect.zip(visibleSkills(run), visibleProtocols(run)), ([skills, protocols]) =>
          grammarFor(run, skills, protocols)
        )

/** Returns the schema of an agent's typed answer, the same object for each request. */
const answerOf = perObject((agent: AnyAgent): { readonly grammar: ReplyGrammar | undefined } => ({
  grammar: agent.typed ? { _tag: "Json", schema: jsonObject(agent.outputJsonSchema?.()) } : undefined
}))

interface KnownGrammar {
  readonly skills: ReadonlyArray<AnySkill>
  readonly protocols: ReadonlyArray<AnyProtocol>
  readonly root: boolean
  readonly grammar: ReplyGrammar | undefined
}

const lastGrammars = new WeakMap<AnyAgent, KnownGrammar>()

/** Returns the same value for the same skills and protocols, so that adapters encode a grammar once. */
const grammarFor = (
  run: Run,
  skills: ReadonlyArray<AnySkill>,
  protocols: ReadonlyArray<AnyProtocol>
): ReplyGrammar | undefined => {
  const root = run.state.depth === 0
  const last = lastGrammars.get(run.agent)
  if (last?.root === root && isSame(last.skills, skills) && isSame(last.protocols, protocols)) return last.grammar
  const output = run.agent.typed ? jsonObject(run.agent.outputJsonSchema?.()) : undefined
  const grammar: ReplyGrammar | undefined = canAct(run, protocols)
    ? { _tag: "Blocks", skills, protocols, workflows: root, agents: agentNames(run), output }
    : output === undefined
      ? undefined
      : { _tag: "Json", schema: output }
  lastGrammars.set(run.agent, { skills, protocols, root, grammar })
  return grammar
}

const isSame = <A>(a: ReadonlyArray<A>, b: ReadonlyArray<A>): boolean =>
  a.length === b.length && a.every((item, index) => item === b[index])

// ---------------------------------------------------------------- the skills shown

/** The native tool that searches skills. */
const searchTool = "search_skills"

/** Returns whether a native call is the search, not a skill or agent with the same name. */
export const isSearch = (run: Run, name: string): boolean =>
  name === searchTool && Option.isNone(run.skills.find(name)) && !run.callables.has(name)

/** The native tool that lists and cancels background calls. */
const callList = "background_calls"

/** Returns whether a native call lists background calls, and is not a skill or agent with the same name. */
export const isCallList = (run: Run, name: string): boolean =>
  name === callList &&
  Array.from(run.callables.keys()).some((name) => mayBackground(run, name)) &&
  Option.isNone(run.skills.find(name)) &&
  !run.callables.has(name)

/** Returns whether there are more skills than a request may offer, so that the model searches them. */
const isSearched = (run: Run, skills: ReadonlyArray<AnySkill>): boolean =>
  skills.length > run.limits.nativeSkills && isSearch(run, searchTool)

/** Returns the native tools of skills: all of them, or the search and the skills that it found last. */
const toolsOf = (run: Run, skills: ReadonlyArray<AnySkill>): ReadonlyArray<ToolDefinition> => {
  const tools = isCallList(run, callList) ? [callListDefinition] : none
  if (!isSearched(run, skills)) return skills.map(toolOf).concat(tools)
  const { nativeSkills } = run.limits
  const byName = new Map(skills.map((skill) => [skill.name, skill]))
  const called = skills.filter(({ name }) => run.callables.has(name))
  const found = foundBefore(run, skills)
    .flatMap((name) => byName.get(name) ?? [])
    .filter((skill) => !called.includes(skill))
  return [searchDefinition(skills.length), ...[...called, ...found.slice(-nativeSkills)].map(toolOf), ...tools]
}

/** Returns the names that the last turn offered, in order, then those that its searches found. */
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

const callListDefinition: ToolDefinition = {
  name: callList,
  description: "Lists the calls that work in the background, or cancels one of them.",
  inputSchema: {
    type: "object",
    properties: { cancel: { type: "string", description: "The id of the call to cancel." } },
    additionalProperties: false
  }
}

const inputSchema: JsonObject = {
  type: "object",
  properties: {
    words: { type: "string", description: "Words of what the skill does, such as: create calendar event" }
  },
  required: ["words"],
  additionalProperties: false
}

/**
 * Returns the listing for a prompt of blocks. Undefined if the model requests it with `/skills`, as with a fixed
 * dialect.
 */
const listingOf = (run: Run, skills: ReadonlyArray<AnySkill>): PromptContext["listing"] => {
  if (!run.isListed || run.agent.dialect === "tools" || run.agent.skills === undefined) return undefined
  const text = SkillRegistry.listing(skills)
  if (!isLong(run, text)) return { _tag: "Whole", text }
  // A grammar does not allow search words in the command.
  return run.agent.grammar ? undefined : { _tag: "Searched", count: skills.length }
}

/**
 * Answers `/skills` with the listing. If it is long, answers with the skills that match its words, or without words with
 * the first ones and how to find the others.
 */
export const answerSkills = (run: Run, skills: ReadonlyArray<AnySkill>, input: Json): string => {
  const words = wordsIn(input).trim()
  const listing = SkillRegistry.listing(skills)
  // A grammar does not allow search words in the command.
  if (!isLong(run, listing) || (words === "" && run.agent.grammar)) return listing
  return words === "" ? firstOf(run, skills) : withHits(skills, words, SkillRegistry.listing)
}

const firstOf = ({ limits }: Run, skills: ReadonlyArray<AnySkill>): string => {
  let tokens = 0
  const end = skills.findIndex(({ listing }) => (tokens += ofText(listing)) > limits.listedTokens)
  const first = skills.slice(0, end)
  return `${SkillRegistry.listing(first)}\n${InstructionBuilder.moreSkills(first.length, skills.length)}`
}

/** Answers a native search. The skills it found are offered as tools on the next turn. */
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

/** Returns the search words of a command or a native call. */
const wordsIn = (input: Json): string => {
  const words = isJsonObject(input) ? (input["words"] ?? "") : input
  return typeof words === "string" ? words : JSON.stringify(words)
}
