/**
 * The builtin commands /skills, /workflow, /tasks, /calls and /protocols, and the native tools like them. Allow lists do not
 * apply to them, and all but the searches ignore their content.
 */

import * as Effect from "effect/Effect"
import * as Calls from "../../Call.ts"
import * as InstructionBuilder from "../../InstructionBuilder.ts"
import * as Plan from "../../Plan.ts"
import { isJsonObject, type Json, requestOf } from "../../kit/json.ts"
import {
  agentNames,
  answerSearch,
  answerSkills,
  isCallList,
  isSearch,
  visibleProtocols,
  visibleSkills
} from "../model/permissions.ts"
import type { Run } from "../run/run.ts"
import { cancelCall, listed } from "./background.ts"

/** Runs a builtin and returns its text. Fails if there is no builtin with this name. */
export const builtin = (run: Run, command: string, input: Json): Effect.Effect<string, "unknown"> => {
  if (isSearch(run, command)) return Effect.map(visibleSkills(run), (skills) => answerSearch(skills, input))
  if (command === "/calls" || isCallList(run, command)) return openCalls(run, input)
  switch (command) {
    case "/skills":
      return Effect.map(visibleSkills(run), (skills) => answerSkills(run, skills, input))
    case "/protocols":
      return Effect.map(visibleProtocols(run), (protocols) =>
        JSON.stringify(protocols.map(({ documentation, name }) => ({ name, documentation })))
      )
    case "/workflow":
      return Effect.sync(() => workflow(agentNames(run)))
    case "/tasks":
      return Effect.sync(() => tasks(run))
    default:
      return Effect.fail("unknown")
  }
}

/** Lists the background calls, or cancels the one that is named. A block says `cancel` and the id. */
const openCalls = (run: Run, input: Json) => {
  const named = isJsonObject(input) ? input["cancel"] : /^\s*cancel\s+(\S+)\s*$/.exec(requestOf(input))?.[1]
  return typeof named === "string" ? cancelCall(run, named) : Effect.sync(() => listed(run))
}

const workflow = (agents: ReadonlyArray<string>): string =>
  agents.length === 0
    ? InstructionBuilder.workflowDocumentation
    : `${InstructionBuilder.workflowDocumentation}\n\n${InstructionBuilder.workflowAgents(agents)}`

/** Returns the last plan of this run, never that of its parent. Written pair by pair to keep the order of ids. */
const tasks = (run: Run): string => {
  // A builtin runs in a later turn than the plan.
  const turn = run.state.turns.findLast((turn) => turn.outcome?.type === "workflow")
  if (turn?.outcome?.type !== "workflow") {
    return `{"depth":${run.state.depth},"goal":null,"strategy":null,"tasks":[],"task_results":{}}`
  }
  const { goal, strategy, tasks } = turn.outcome.plan
  const results = new Map(
    Calls.inOrder(turn.order, turn.completed).map((result) => [result.name, Calls.textOf(result)])
  )
  const failed = new Set(turn.completed.flatMap(({ error, name }) => (error === undefined ? [] : [name])))
  const running = new Set(turn.inFlight.map(({ name }) => name))
  const listed = tasks.map((task) => {
    const result = results.get(task.id)
    const isWaiting = running.has(task.id) ? "running" : "pending"
    const status = result === undefined ? isWaiting : failed.has(task.id) ? "failed" : "done"
    return { ...Plan.taskToJson({ ...task, status }), result }
  })
  const pairs = [...results].map(([id, text]) => `${JSON.stringify(id)}:${JSON.stringify(text)}`)
  const head = `"depth":${run.state.depth},"goal":${JSON.stringify(goal)},"strategy":${JSON.stringify(strategy)}`
  return `{${head},"tasks":${JSON.stringify(listed)},"task_results":{${pairs.join(",")}}}`
}
