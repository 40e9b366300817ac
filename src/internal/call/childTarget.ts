/**
 * Targets of calls that start a child run: a task of a plan, or another agent.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Call, CallError, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { ExtensionFailed, type ResumeError } from "../../KernelError.ts"
import type * as Plan from "../../Plan.ts"
import type { TaskRef } from "../../RunEvent.ts"
import type { CallScope } from "../../Skill.ts"
import { causeText, failureIn, isA, logged as log, messageOf, observed } from "../../kit/foreignCode.ts"
import { type Json, jsonObject } from "../../kit/json.ts"
import { spentBy } from "../state/state.ts"
import { childRunId } from "../../Call.ts"
import { TimedOut, explain, short } from "../skill/failureText.ts"
import { type Callable, type Child, type Run, type TaskError, isTaskError } from "../run/run.ts"
import * as Budget from "../run/treeBudget.ts"
import type { Target } from "./targets.ts"

/** The report about a child run. */
interface Report {
  readonly input: Json
  readonly dependsOn: ReadonlyArray<string>
  readonly explain: (cause: Cause.Cause<unknown>) => Effect.Effect<CallError>
  /** Runs after the event. */
  readonly after?: (result: CallResult, durationMs: number) => Effect.Effect<unknown>
}

/** Returns the target of a task: a child run within the limits of the tree and its own timeout. */
export const taskTarget = (
  run: Run,
  call: Call,
  task: Plan.Task,
  input: ReadonlyArray<Content>
): Target<CallResult, TaskError> => {
  const { id } = task
  const agent = task.agent === undefined ? undefined : run.callables.get(task.agent)?.agent
  const { callId } = call
  const ref: TaskRef = { id, callId, childRunId: idOf(run, call), ...(task.agent && { agent: task.agent }) }
  return childTarget(run, call, id, startChild(run, call, { agent, taskId: id, input }), ref, {
    input: task.input,
    dependsOn: task.dependsOn,
    explain: (cause) => Effect.as(logged(call, cause), Calls.error("TaskFailed", taskError(cause))),
    after: (result, durationMs) => report(run, task, result, durationMs)
  })
}

/** Returns the target of another agent: a child run in a slot of the tree. Its input is validated like a skill's. */
export const agentTarget = (
  run: Run,
  call: Call,
  { agent, skill }: Callable,
  scope: CallScope
): Target<CallResult, TaskError> => {
  const { callId, input } = call
  const ref: TaskRef = { id: callId, callId, childRunId: idOf(run, call), agent: agent.name }
  const child = Effect.flatMap(skill.call(jsonObject(input), scope), (given) => {
    const [text = "", ...media] = Array.isArray(given) ? given.map(String) : [String(given)]
    return Effect.flatMap(Effect.forEach(media, run.media.content), (media) =>
      startChild(run, call, { agent, taskId: undefined, input: [Contents.text(text), ...media] })
    )
  })
  return childTarget(run, call, agent.name, Budget.inSlot(run.budget, child), ref, {
    input,
    dependsOn: [],
    explain: (cause) => explain(run, `Agent '${agent.name}'`, cause)
  })
}

const childTarget = (
  run: Run,
  call: Call,
  name: string,
  perform: Effect.Effect<CallResult, unknown>,
  ref: TaskRef,
  { after, dependsOn, explain, input }: Report
): Target<CallResult, TaskError> => ({
  name,
  effects: "idempotent",
  input: call.input,
  limit: undefined,
  started: { type: "task_start", ...ref, input, dependsOn },
  perform,
  keep: (result, durationMs) => {
    const { output = [], spent } = result
    return Effect.succeed({
      output,
      event: { type: "task_complete", ...ref, result: Calls.textOf(result), durationMs },
      ...(after && { after: after(result, durationMs) }),
      ...(spent && { facts: { spent } })
    })
  },
  concerns: (error) => concernsRun(run, error),
  fail: (cause, durationMs) =>
    Effect.map(Effect.zip(explain(cause), loadChild(run, call)), ([reason, stored]) => {
      const error = short(reason, run.limits)
      return {
        error,
        event: { type: "task_error", ...ref, error: error.message, durationMs },
        ...(after && { after: after(Calls.failed(call, error), durationMs) }),
        // A failed child has used tokens, too.
        ...(Option.isSome(stored) && { spent: spentBy(stored.value) })
      }
    })
})

const loadChild = (run: Run, call: Call) => run.store.load(idOf(run, call))

/** Starts the child run, or fails if the tree allows no more. */
const startChild = (run: Run, call: Call, child: Child): Effect.Effect<CallResult, ResumeError | TimedOut | Error> => {
  const { depth, rootRunId, runId } = run.state
  const stored = Effect.map(run.store.list({ rootRunId }), (heads) =>
    heads.flatMap((head) => (head.runId === rootRunId ? [] : head.runId))
  )
  const { taskTimeout } = run.limits
  return Effect.andThen(
    Budget.admit(run.budget, { parentRun: runId, depth: depth + 1, runId: idOf(run, call) }, stored),
    Effect.timeoutOrElse(run.spawn(run, call, child), {
      duration: taskTimeout,
      orElse: () => Effect.fail(new TimedOut(taskTimeout))
    })
  )
}

const idOf = ({ state }: Run, call: Call): string => childRunId(state.currentTurn?.turnId ?? "", call) ?? call.callId

/**
 * Returns whether an error concerns the run. An exhausted budget does only if it is the run's own; that of a called
 * agent ends only the agent.
 */
const concernsRun = (run: Run, error: unknown): error is TaskError =>
  isTaskError(error) && (error._tag !== "BudgetExhaustedError" || Budget.isUsedUp(run.budget))

const logged = (call: Call, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasDies(cause) ? log(Effect.logError(`Task '${call.name}' failed unexpectedly`, causeText(cause))) : Effect.void

/** Returns the failure of a task as text for the parent's model. Details of a defect are only logged. */
const taskError = (cause: Cause.Cause<unknown>): string => {
  const error = failureIn(cause)
  if (isA(error, TimedOut)) return `the task ${error.message}`
  // The failure of the host's code may hold secrets, so the model gets only its name.
  if (isA(error, ExtensionFailed)) return `${error.extension} failed`
  if (isA(error, Error)) return messageOf(error)
  return Cause.hasInterruptsOnly(cause) ? "the task was interrupted" : "the task failed unexpectedly"
}

/** Calls `onTaskComplete` for a finished task. A failure of the callback is logged and ignored. */
const report = (run: Run, task: Plan.Task, result: CallResult, durationMs: number): Effect.Effect<unknown> =>
  observed("onTaskComplete", () =>
    run.onTaskComplete === undefined
      ? Effect.void
      : run.onTaskComplete({
          taskId: task.id,
          input: task.input,
          result: result.error === undefined ? Calls.textOf(result) : null,
          error: result.error?.message ?? null,
          durationMs
        })
  )
