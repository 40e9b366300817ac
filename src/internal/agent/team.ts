/**
 * The agents of a run: the one it is started with, and all that it reaches through `agents` and `handoffs`.
 *
 * A journal knows an agent by its name, so each name stands for one agent. A name in a list stands for an agent that is
 * given as a value somewhere in the team.
 */

import { misnamed } from "../words/ids.ts"

/** The fields of an agent that a team is made of. */
interface Member<A> {
  readonly name: string
  readonly agents: ReadonlyArray<A | string>
  readonly handoffs: ReadonlyArray<A | string>
}

/** The agents of a run by their names, or the first entry of a list that cannot be. */
export interface Team<out A> {
  readonly members: ReadonlyMap<string, A>
  readonly problem: { readonly path: string; readonly reason: string } | undefined
}

/** The name of the call that hands a conversation over to an agent. */
export const transferTo = (agent: string): string => `transfer_to_${agent}`

/** Collects the team of an agent. Agents that refer to each other are read once. */
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

const listsOf = <A extends Member<A>>({ agents, handoffs }: A) =>
  [
    ["agents", agents],
    ["handoffs", handoffs]
  ] as const

const misnaming = (name: string): string | undefined => misnamed(name)?.reason

/** Every name stands for a member, and every call of a member for one thing. */
const nameProblem = <A extends Member<A>>(first: A, members: ReadonlyMap<string, A>): Team<A>["problem"] => {
  for (const member of members.values()) {
    const calls = new Set<string>()
    for (const [list, entries] of listsOf(member)) {
      for (const [index, entry] of entries.entries()) {
        const name = nameOf(entry)
        const path = pathOf(first, member, list, index)
        if (!members.has(name)) {
          const known = [...members.keys()].map((name) => `'${name}'`).join(", ")
          return { path, reason: `the agent '${name}' is not known; known are ${known}` }
        }
        const call = list === "agents" ? name : transferTo(name)
        if (calls.has(call)) return { path, reason: `'${name}' is listed twice` }
        calls.add(call)
      }
    }
  }
  return undefined
}

/** The name of an agent that is given as a value or by its name. */
export const nameOf = (entry: { readonly name: string } | string): string =>
  typeof entry === "string" ? entry : entry.name

const pathOf = <A extends Member<A>>(first: A, member: A, list: "agents" | "handoffs", index: number): string =>
  `${member === first ? "" : `${member.name}.`}${list}[${index}]`

/** How many levels of agents call each other through values. An agent that calls itself adds none. */
export const levelsOf = <A extends Member<A>>(agent: A, above: ReadonlySet<A> = new Set()): number => {
  if (above.has(agent) || agent.agents.length + agent.handoffs.length === 0) return 0
  const path = new Set(above).add(agent)
  const below = (entries: ReadonlyArray<A | string>, step: number) =>
    Math.max(0, ...entries.map((entry) => (typeof entry === "string" ? 0 : step + levelsOf(entry, path))))
  return Math.max(below(agent.agents, 1), below(agent.handoffs, 0))
}
