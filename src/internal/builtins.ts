/**
 * The words of the kernel itself: /skills, /workflow, /tasks, /protocols (BP-70, BP-71).
 *
 * They ignore their content and every allow list.
 *
 * @since 0.1.0
 */
import * as Effect from "effect/Effect"
import * as Block from "../Block.ts"
import type { Call, CallError } from "../Call.ts"
import * as Calls from "../Call.ts"
import * as InstructionBuilder from "../InstructionBuilder.ts"
import * as Plan from "../Plan.ts"
import type { Turn } from "../RunState.ts"
import * as SkillRegistry from "../SkillRegistry.ts"
import type { Run } from "./run.ts"
import { visibleProtocols, visibleSkills } from "./view.ts"

/** What a word answers: a text, or that there is no such word. */
export interface Answer {
  readonly text: string
  /** What the model reads, where the text quotes others and not only the kernel. */
  readonly shown?: string
  readonly error?: CallError
}

/** Answers a word of the kernel. */
export const builtin = (run: Run, call: Call): Effect.Effect<Answer> => {
  switch (call.toolName) {
    case "/skills":
      return Effect.map(visibleSkills(run), (skills) => ({ text: SkillRegistry.listing(skills) }))
    case "/protocols":
      return Effect.map(visibleProtocols(run), (protocols) => ({
        text: JSON.stringify(protocols.map(({ documentation, name }) => ({ name, documentation })))
      }))
    case "/workflow":
      return Effect.succeed({ text: InstructionBuilder.workflowDocumentation })
    case "/tasks":
      return Effect.sync(() => {
        const text = tasks(run)
        return { text, shown: Block.escape(text) }
      })
    default:
      return Effect.succeed({
        text: "",
        error: Calls.error("UnknownCommand", `Unknown command '${call.toolName ?? ""}'`)
      })
  }
}

/** The last workflow of this run, never that of its parent. Written pair by pair to keep the order of ids. */
const tasks = (run: Run): string => {
  const turn = lastWorkflow(run)
  if (turn?.outcome?.type !== "workflow") {
    return `{"depth":${run.state.depth},"goal":null,"strategy":null,"tasks":[],"task_results":{}}`
  }
  const { goal, strategy, tasks } = Plan.pending(turn.outcome.plan)
  const results = new Map(
    Calls.inOrder(turn.order, turn.completed).map((result) => [result.toolName, Calls.textOf(result)])
  )
  const running = new Set(turn.inFlight.map((call) => call.toolName))
  const listed = tasks.map((task) => {
    const result = results.get(task.id)
    const status = result !== undefined ? "done" : running.has(task.id) ? "running" : "pending"
    return { ...Plan.taskToJson({ ...task, status }), ...(result === undefined ? {} : { result }) }
  })
  const pairs = [...results].map(([id, text]) => `${JSON.stringify(id)}:${JSON.stringify(text)}`)
  const head = `"depth":${run.state.depth},"goal":${JSON.stringify(goal)},"strategy":${JSON.stringify(strategy)}`
  return `{${head},"tasks":${JSON.stringify(listed)},"task_results":{${pairs.join(",")}}}`
}

const lastWorkflow = (run: Run): Turn | undefined => {
  const turns = run.state.currentTurn === undefined ? run.state.turns : [...run.state.turns, run.state.currentTurn]
  return turns.findLast((turn) => turn.outcome?.type === "workflow")
}
