/**
 * The agents that an agent can call, and those it can hand the conversation over to.
 *
 * To the model they are skills: they have a name, a description and a schema of their input.
 */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Skills from "../../Skill.ts"
import type { AnySkill } from "../../Skill.ts"
import { nameOf, transferTo } from "../agent/team.ts"
import type { AnyAgent, Callable, Callables } from "./run.ts"

/** Finds the agents that an agent lists in its team. */
export const callablesOf = (agent: AnyAgent, team: ReadonlyMap<string, AnyAgent>): Callables => {
  if (agent.agents.length + agent.handoffs.length === 0) return none
  const found = new Map<string, Callable>()
  for (const entry of agent.agents) {
    const other = team.get(nameOf(entry))
    if (other !== undefined) found.set(other.name, { kind: "agent", agent: other, skill: asSkill(other) })
  }
  for (const entry of agent.handoffs) {
    const other = team.get(nameOf(entry))
    if (other !== undefined) {
      found.set(transferTo(other.name), { kind: "handoff", agent: other, skill: asTransfer(other) })
    }
  }
  return found
}

const none: Callables = new Map()

/** One skill per agent, so that the schema of its input is written once. */
const perAgent = (make: (agent: AnyAgent) => AnySkill): ((agent: AnyAgent) => AnySkill) => {
  const made = new WeakMap<AnyAgent, AnySkill>()
  return (agent) => {
    let skill = made.get(agent)
    if (skill === undefined) made.set(agent, (skill = make(agent)))
    return skill
  }
}

const asSkill = perAgent((agent) => {
  const input = agent.input ?? Schema.String
  const encode = Schema.encodeUnknownEffect(Schema.toCodecJson(input))
  return Skills.make(agent.name, {
    description: agent.description ?? `Asks the agent '${agent.name}' and returns its answer.`,
    input,
    effects: "idempotent",
    execute: (value) =>
      typeof value === "string" ? Effect.succeed(value) : Effect.map(encode(value), (json) => JSON.stringify(json))
  })
})

const asTransfer = perAgent(({ description, name }) =>
  Skills.make(transferTo(name), {
    description: `Hands the conversation over to the agent '${name}', who answers from then on.${description === undefined ? "" : ` ${description}`}`,
    input: Schema.Struct({ reason: Schema.optionalKey(Schema.String) }),
    effects: "idempotent",
    execute: () => Effect.succeed(`The conversation is handed over to '${name}'.`)
  })
)
