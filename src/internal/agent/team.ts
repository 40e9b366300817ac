/**
 * The team of a run: the agent it starts with, and all agents reachable through `agents` and `handoffs`. Also converts
 * their shared context between the Schema that an agent declares and stored JSON.
 *
 * A journal refers to agents by name, so names are unique in a team. A name in a list refers to an agent that is given
 * as a value elsewhere in the team.
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { AgentConfigInvalid } from "../../KernelError.ts"
import * as Fault from "../../kit/fault.ts"
import { type JsonObject, isJsonObject } from "../../kit/json.ts"
import { misnamed } from "../words/ids.ts"

/** The agents of a run by name, or the first invalid entry of a list. */
export interface Team<out A> {
  readonly members: ReadonlyMap<string, A>
  readonly problem: { readonly path: string; readonly reason: string } | undefined
}

/** Returns the name of the call that hands a conversation over to an agent. */
export const transferTo = (agent: string): string => `transfer_to_${agent}`

/** Collects the team of an agent. Agents may refer to each other in cycles. */
export const of = <A extends Member<A>>(first: A): Team<A> => {
  const members = new Map<string, A>([[first.name, first]])
  for (const member of members.values()) {
    for (const [list, entries] of listsOf(member)) {
      for (const [index, entry] of entries.entries()) {
        if (typeof entry === "string") continue
        const known = members.get(entry.name)
        const reason =
          known === undefined || known === entry ? misnaming(entry.name) : `'${entry.name}' is another agent, too`
        if (reason !== undefined) return { members, problem: { path: pathOf(first, member, list, index), reason } }
        members.set(entry.name, entry)
      }
    }
  }
  return { members, problem: nameProblem(first, members) }
}

/** Returns whether an agent has a name, or had it before. */
export const isNamed = (
  { aliases, name }: { readonly name: string; readonly aliases: ReadonlyArray<string> },
  called: string
): boolean => name === called || aliases.includes(called)

/** Returns agents by their names and by those they had before. The name of an agent comes before another one's alias. */
export const byName = <A extends { readonly name: string; readonly aliases: ReadonlyArray<string> }>(
  agents: ReadonlyArray<A>
): Map<string, A> =>
  new Map([
    ...agents.flatMap((agent) => agent.aliases.map((alias) => [alias, agent] as const)),
    ...agents.map((agent) => [agent.name, agent] as const)
  ])

/** Returns the name of an agent or a skill that is given as a value or by name. */
export const nameOf = (entry: { readonly name: string } | string): string =>
  typeof entry === "string" ? entry : entry.name

/** Returns the depth of agents that call each other. An agent that calls itself adds no level. */
export const levelsOf = <A extends Member<A>>(agent: A, above: ReadonlySet<A> = new Set()): number => {
  if (above.has(agent) || agent.agents.length + agent.handoffs.length === 0) return 0
  const path = new Set(above).add(agent)
  const below = (entries: ReadonlyArray<A | string>, step: number) =>
    Math.max(0, ...entries.map((entry) => (typeof entry === "string" ? 0 : step + levelsOf(entry, path))))
  return Math.max(below(agent.agents, 1), below(agent.handoffs, 0))
}

/** A Schema of a context that encodes to an object. */
export type ContextSchema<C> = Schema.ConstraintCodec<C, object>

/** The stored context of the run whose instructions are being evaluated. */
export const RunContext: Context.Reference<JsonObject> = Context.Reference<JsonObject>("kernai/RunContext", {
  defaultValue: () => ({})
})

/** Encodes the context of a new run, which is JSON already without a schema. Fails if it does not fit the team. */
export const encodeContext = (first: Bearer, given: unknown): Effect.Effect<JsonObject, AgentConfigInvalid> =>
  Effect.tap(encodedContext(first.context, given), (json) => fitsContext(first, json))

/** Decodes a stored context. */
export const decodeContext = <C>(
  schema: ContextSchema<C>,
  stored: JsonObject,
  path = "context"
): Effect.Effect<C, AgentConfigInvalid> =>
  Effect.mapError(Schema.decodeUnknownEffect(Schema.toCodecJson(schema))(stored), (error) => misfit(path, error))

/** Fails if a context does not fit an agent that a run may reach. */
export const fitsContext = (first: Bearer, stored: JsonObject): Effect.Effect<void, AgentConfigInvalid> =>
  Effect.forEach(
    of(first).members.values(),
    ({ context, name }) =>
      context === undefined
        ? Effect.void
        : decodeContext(context, stored, name === first.name ? "context" : `${name}.context`),
    { discard: true }
  )

/** The fields of an agent that define a team. */
interface Member<A> {
  readonly name: string
  readonly skills: Skills
  readonly agents: ReadonlyArray<A | string>
  readonly handoffs: ReadonlyArray<A | string>
}

type Skills = ReadonlyArray<{ readonly name: string } | string> | "all" | undefined

const listsOf = <A extends Member<A>>({ agents, handoffs }: A) =>
  [
    ["agents", agents],
    ["handoffs", handoffs]
  ] as const

const misnaming = (name: string): string | undefined => misnamed(name)?.reason

/** Returns the first name that is not a member, or that is ambiguous among the calls of a member. */
const nameProblem = <A extends Member<A>>(first: A, members: ReadonlyMap<string, A>): Team<A>["problem"] => {
  for (const member of members.values()) {
    const calls = new Set<string>()
    const { skills = [] } = member
    const own = new Set(skills === "all" ? [] : skills.map(nameOf))
    for (const [list, entries] of listsOf(member)) {
      for (const [index, entry] of entries.entries()) {
        const name = nameOf(entry)
        const path = pathOf(first, member, list, index)
        if (!members.has(name)) {
          const known = [...members.keys()].map((name) => `'${name}'`).join(", ")
          return { path, reason: `unknown agent '${name}'; known: ${known}` }
        }
        const call = list === "agents" ? name : transferTo(name)
        if (calls.has(call)) return { path, reason: `'${name}' is listed twice` }
        if (own.has(call)) return { path, reason: `'${call}' is a skill of this agent, too` }
        calls.add(call)
      }
    }
  }
  return undefined
}

const pathOf = <A extends Member<A>>(first: A, member: A, list: "agents" | "handoffs", index: number): string =>
  `${member === first ? "" : `${member.name}.`}${list}[${index}]`

/** The fields of an agent that concern the context of its runs. */
export interface Bearer {
  readonly name: string
  readonly skills: Skills
  readonly context: ContextSchema<unknown> | undefined
  readonly agents: ReadonlyArray<Bearer | string>
  readonly handoffs: ReadonlyArray<Bearer | string>
}

const encodedContext = (
  schema: ContextSchema<unknown> | undefined,
  given: unknown
): Effect.Effect<JsonObject, AgentConfigInvalid> => {
  if (schema === undefined) return objectOf(given ?? {}, "is not a JSON object")
  const json = Schema.encodeUnknownEffect(Schema.toCodecJson(schema))(given)
  return Effect.flatMap(
    Effect.mapError(json, (error) => misfit("context", error)),
    (json) => objectOf(json, "its schema does not encode to an object")
  )
}

const objectOf = (value: unknown, reason: string): Effect.Effect<JsonObject, AgentConfigInvalid> =>
  isJsonObject(value) ? Effect.succeed(value) : Effect.fail(new AgentConfigInvalid({ path: "context", reason }))

const misfit = (path: string, error: Schema.SchemaError): AgentConfigInvalid => {
  const fault = Fault.ofSchema(error)
  return new AgentConfigInvalid({ path: `${path}${fault.path.replaceAll("/", ".")}`, reason: fault.reason })
}
