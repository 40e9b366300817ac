/**
 * What a run may see and use: its skills, its protocols, its answer's shape.
 *
 * Listing and dispatch ask the same questions here, so what is hidden cannot be
 * called either (AC-18, S-15).
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Agents from "../../Agent.ts"
import type { ReplyGrammar, ToolDefinition } from "../../Provider.ts"
import type { Call } from "../../Call.ts"
import type { AnyProtocol } from "../../Protocol.ts"
import * as ProtocolRegistry from "../../ProtocolRegistry.ts"
import type { AnySkill } from "../../Skill.ts"
import * as SkillRegistry from "../../SkillRegistry.ts"
import { shows } from "../policy/askPolicy.ts"
import { jsonObject, type JsonObject } from "../base/json.ts"
import { policyScope, type AnyAgent, type Run } from "./run.ts"

/** The skills the agent may call, in listing order. */
export const visibleSkills = (run: Run): Effect.Effect<ReadonlyArray<AnySkill>> =>
  Effect.map(run.skills.all, (skills) =>
    SkillRegistry.visible(skills, {
      agentSkills: Agents.skillNames(run.agent),
      model: run.model,
      allowed: run.allowed
    }).filter((skill) => isShown(run, skill))
  )

/** Why the agent may not call a skill, if it may not (BP-65, BP-66). */
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

/** Whether the policy of the run shows a skill or a protocol; most runs have none to be told of them. */
const isShown = (run: Run, { name }: { readonly name: string }): boolean =>
  run.policy === undefined || shows(run.policy, name, policyScope(run))

/** Tells why a protocol may not call a skill for the agent, if it may not (S-15); see `Protocol.ProtocolScope`. */
export const refusalThrough = (run: Run, call: Call): ((name: string) => string | undefined) => {
  const listed = Agents.skillNames(run.agent) ?? "all"
  // A list of tools asks for each of thousands.
  const names = new Set(listed)
  return (name) => {
    const skill = run.skills.find(name)
    // The same block may mean another skill by now than what was judged (AC-19, R-25).
    if (Option.isNone(skill) || (call.skill ?? name) !== name) return "is not available"
    const { source } = skill.value
    // A name that nobody has at the moment may be one of these skills all the same.
    const isOfThese = (other: string) => {
      const found = run.skills.find(other)
      return Option.isNone(found) ? other.startsWith(`${source}_`) : found.value.source === source
    }
    const isThere =
      listed === "all" || names.has(name) || (run.agent.protocols?.includes(call.name ?? "") && !listed.some(isOfThese))
    return refusalBy(run, skill.value, isThere ? "all" : [])
  }
}

/** Any registered protocol makes a block an act, even one the agent may not speak (BP-78). */
export const isProtocol = (run: Run, type: string): boolean => Option.isSome(run.protocols.find(type))

/** The protocols the agent may speak, as registered (BP-161). */
export const visibleProtocols = (run: Run): Effect.Effect<ReadonlyArray<AnyProtocol>> =>
  Effect.map(run.protocols.all, (all) => all.filter((protocol) => maySpeak(run, protocol)))

/** Whether the agent may speak a protocol (BP-78), and its policy shows it (AC-18). */
export const maySpeak = (run: Run, protocol: AnyProtocol): boolean =>
  ProtocolRegistry.visible([protocol], run.agent.protocols).some((protocol) => isShown(run, protocol))

/** Whether the agent can act (BP-42): one predicate for its rules and for the stall. */
export const canAct = (run: Run, protocols: ReadonlyArray<AnyProtocol>): boolean =>
  run.agent.skills !== undefined || protocols.length > 0

/** The parameters of a command's text, by what its skill declares (BP-68). */
export const parametersOf = (run: Run, name: string, text: string): JsonObject => {
  const skill = run.skills.find(name)
  return Option.isSome(skill) ? skill.value.parameters(text) : { input: text }
}

/** Skills and protocols as native tools. A protocol takes its block's content as `request`. */
export const definitions = (run: Run): Effect.Effect<ReadonlyArray<ToolDefinition>> =>
  Effect.map(Effect.zip(visibleSkills(run), visibleProtocols(run)), ([skills, protocols]) => [
    ...skills.map((skill) => ({
      name: skill.name,
      description: skill.description,
      inputSchema: skill.inputSchema
    })),
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

/** What the next reply has to fit. Native calls have the vendor's own rules. */
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

/** The same skills and protocols give the same value: what is written of it is written once. */
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
    ? { _tag: "Blocks", skills, protocols, workflows: root, output }
    : output === undefined
      ? undefined
      : { _tag: "Json", schema: output }
  spoken.set(run.agent, { skills, protocols, root, grammar })
  return grammar
}

const isSame = <A>(a: ReadonlyArray<A>, b: ReadonlyArray<A>): boolean =>
  a.length === b.length && a.every((item, index) => item === b[index])

// ---------------------------------------------------------------- the answer

/** Why a text does not fit the agent's output schema, if it does not; keeps what it decoded to. */
export const misfit = (run: Run, text: string): string | undefined => {
  if (!run.agent.typed) {
    run.output = text
    return undefined
  }
  const decoded = decoderOf(run.agent)(text.trim())
  if (Result.isFailure(decoded)) return decoded.failure
  run.output = decoded.success
  return undefined
}

const decoders = new WeakMap<AnyAgent, (text: string) => Result.Result<unknown, string>>()

const decoderOf = (agent: AnyAgent) => {
  let decoder = decoders.get(agent)
  if (decoder === undefined) {
    const decode = Schema.decodeUnknownResult(agent.output)
    const read = (text: string) =>
      Result.flatMap(
        // A schema may speak of itself: what nests too deeply for it must not end the process.
        Result.try({ try: () => decode(text), catch: () => "It cannot be read: it nests too deeply." }),
        Result.mapError((error) => error.message)
      )
    // A word or a sentence may leave its quotes out. What sets out to be JSON has to be it.
    decoder = (text) =>
      Result.orElse(read(text), (reason) =>
        /^["{[]/.test(text) ? Result.fail(reason) : Result.mapError(read(JSON.stringify(text)), () => reason)
      )
    decoders.set(agent, decoder)
  }
  return decoder
}

const schemas = new WeakMap<AnyAgent, string>()

/** The JSON Schema text of a typed answer; nothing for plain text. */
export const outputSchema = (agent: AnyAgent): string | undefined => {
  if (!agent.typed) return undefined
  let text = schemas.get(agent)
  if (text === undefined) {
    text = JSON.stringify(agent.outputJsonSchema?.() ?? {})
    schemas.set(agent, text)
  }
  return text
}
