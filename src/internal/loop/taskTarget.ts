/**
 * A task of a plan as the target of its call: a child run.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { Call, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import { ExtensionFailed, type ResumeError, type SpawnDenied } from "../../KernelError.ts"
import type * as Plan from "../../Plan.ts"
import { isSound, logged as log, observed } from "../base/effects.ts"
import { causeText, failureIn, isA, messageOf } from "../base/foreignValue.ts"
import { spentBy } from "../store/stored.ts"
import type { LiveEvent } from "./drafts.ts"
import { TimedOut } from "./explain.ts"
import type { Run } from "./run.ts"
import * as Budget from "./sharedBudget.ts"
import type { TaskError } from "./stepErrors.ts"
import type { Target } from "./targets.ts"

/** The child run of a task, within the limits of the tree and of its own time. */
export const taskTarget = (
  run: Run,
  call: Call,
  task: Plan.Task,
  input: ReadonlyArray<Content>
): Target<CallResult, TaskError> => {
  const { id } = task
  return {
    name: id,
    effects: "idempotent",
    input,
    limit: undefined,
    started: { type: "task_start", id, input: task.input, dependsOn: task.dependsOn },
    perform: child(run, call, input),
    keep: (result, durationMs) => {
      const event: LiveEvent = { type: "task_complete", id, result: Calls.textOf(result), durationMs }
      const { output = [], spent } = result
      const after = report(run, task, result, durationMs)
      return Effect.succeed({ output, event, after, ...(spent && { spent }) })
    },
    concerns: concernsRun,
    fail: (cause, durationMs) =>
      Effect.map(Effect.andThen(logged(call, cause), run.store.load(call.callId)), (stored) => {
        const error = Calls.error("TaskFailed", taskError(cause))
        const event: LiveEvent = { type: "task_error", id, error: error.message, durationMs }
        const after = report(run, task, Calls.failed(call, error), durationMs)
        // A task that failed has used something, too.
        return { error, event, after, ...(Option.isSome(stored) && { spent: spentBy(stored.value) }) }
      })
  }
}

const child = (
  run: Run,
  call: Call,
  input: ReadonlyArray<Content>
): Effect.Effect<CallResult, ResumeError | SpawnDenied | TimedOut> => {
  const denied = Budget.denied(run.budget, run.state.runId, run.state.depth + 1)
  if (denied !== undefined) return Effect.fail(denied)
  const { taskTimeout } = run.limits
  return Effect.timeoutOrElse(run.spawn(run, call, input), {
    duration: taskTimeout,
    orElse: () => Effect.fail(new TimedOut(taskTimeout))
  })
}

/** Does an error concern the run rather than the task: another owner, a store that fails, a tree that may not continue? */
const concernsRun = (error: unknown): error is TaskError => isSound(error) && runErrors.has(error._tag)

const runErrors: ReadonlySet<string> = new Set<TaskError["_tag"]>([
  "ConcurrentAppendError",
  "AgentCrashError",
  "CancellationError",
  "StoreError",
  "RunExists",
  "RunBusy",
  "RunPaused",
  "InFlightToolCalls",
  "BudgetExhaustedError"
])

const logged = (call: Call, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Cause.hasDies(cause) ? log(Effect.logError(`Task '${call.name}' failed unexpectedly`, causeText(cause))) : Effect.void

/** The failure of a task in words that the parent's model may read. A defect keeps its details for the log. */
const taskError = (cause: Cause.Cause<unknown>): string => {
  const error = failureIn(cause)
  if (isA(error, TimedOut)) return `the task ${error.message}`
  // What code of the host failed with is for the host.
  if (isA(error, ExtensionFailed)) return `${error.extension} failed`
  if (isA(error, Error)) return messageOf(error)
  return Cause.hasInterruptsOnly(cause) ? "the task was interrupted" : "the task failed unexpectedly"
}

/** Reports a finished task to the host, once. A host that fails changes nothing. */
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
