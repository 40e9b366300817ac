/** Finds the first invalid setting of an agent or of its team. */

import type * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import { AgentConfigInvalid } from "../../KernelError.ts"
import { perObject } from "../../kit/perObject.ts"
import { timeSpan } from "../../kit/time.ts"
import type { Model } from "../../Model.ts"
import type { AnySkill } from "../../Skill.ts"
import type { Agent } from "./agentModel.ts"
import { misshapen } from "./agentShape.ts"
import * as Team from "./team.ts"

/** Returns the first invalid setting of an agent or of the agents it reaches, or undefined. */
export const problem = (agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>): AgentConfigInvalid | undefined =>
  checked(agent).problem

/** An agent is checked once, not in each of its runs. */
const checked = perObject((agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>) => ({
  problem: settingProblem(agent) ?? teamProblem(agent)
}))

const teamProblem = (agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>): AgentConfigInvalid | undefined => {
  if (agent.agents.length + agent.handoffs.length === 0) return undefined
  const { members, problem } = Team.of(agent)
  if (problem !== undefined) return invalid(problem.path, problem.reason)
  for (const [name, member] of members) {
    const wrong = member === agent ? undefined : settingProblem(member)
    if (wrong !== undefined) return invalid(`${name}.${wrong.path}`, wrong.reason)
  }
  return undefined
}

const settingProblem = (agent: Agent<unknown, AnySkill<unknown>, unknown, unknown>): AgentConfigInvalid | undefined => {
  const shape = misshapen(agent)
  if (shape !== undefined) return invalid(shape.path, shape.reason)
  const { budget, generation, model, spawn } = agent
  const whole = (path: string, value: number | undefined, minimum: number) =>
    value === undefined || (Number.isSafeInteger(value) && value >= minimum)
      ? undefined
      : invalid(path, `expected a whole number of at least ${minimum}, got ${value}`)
  const most = (path: string, value: number | undefined) => (value === Infinity ? undefined : whole(path, value, 0))
  const within = (path: string, value: number | undefined, maximum = Infinity) =>
    value === undefined || (value >= 0 && value <= maximum)
      ? undefined
      : invalid(path, `expected a number from 0 to ${maximum}, got ${value}`)
  const time = (path: string, value: Duration.Input | undefined) =>
    value === undefined || Option.isSome(timeSpan(value))
      ? undefined
      : invalid(path, `expected a duration of zero or more, got ${String(value)}`)
  return (
    (agent.name === "" ? invalid("name", "is empty") : undefined) ??
    (model === "" ? invalid("model", "is empty") : undefined) ??
    (typeof model !== "string" && model.id === "" ? invalid("model.id", "is empty") : undefined) ??
    whole("maxSteps", agent.maxSteps, 1) ??
    whole("concurrency", agent.concurrency, 1) ??
    whole("taskConcurrency", agent.taskConcurrency, 1) ??
    whole("reservedOutputTokens", agent.reservedOutputTokens, 0) ??
    whole("maxRepeats", agent.maxRepeats, 1) ??
    whole("contextWindow", agent.contextWindow, 1) ??
    within("temperature", generation.temperature, Number.MAX_VALUE) ??
    whole("maxTokens", generation.maxTokens, 1) ??
    within("topP", generation.topP, 1) ??
    whole("seed", generation.seed, 1 - 2 ** 53) ??
    // At -1, Gemini chooses the amount itself.
    whole("thinking.budget", generation.thinking?.budget, -1) ??
    most("budget.maxTokens", budget.maxTokens) ??
    within("budget.maxCostUsd", budget.maxCostUsd) ??
    time("budget.deadline", budget.deadline) ??
    most("spawn.maxAgents", spawn?.maxAgents) ??
    most("spawn.maxConcurrent", spawn?.maxConcurrent) ??
    most("spawn.maxDepth", spawn?.maxDepth) ??
    (budget.maxCostUsd !== undefined && typeof model !== "string" ? unpriced(model) : undefined)
  )
}

/** Returns the error of a model that cannot run under a cost budget because it has no price. */
export const unpriced = (model: Model): AgentConfigInvalid | undefined =>
  Number.isFinite(model.price && model.price.inputPerMillion + model.price.outputPerMillion)
    ? undefined
    : invalid("budget.maxCostUsd", `the model '${model.id}' has no price`)

export const invalid = (path: string, reason: string) => new AgentConfigInvalid({ path, reason })
