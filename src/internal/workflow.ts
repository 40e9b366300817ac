/**
 * A plan on its way through a run: each task a child run, started when what it waits for is done (BP-56 to BP-61).
 *
 * @since 0.1.0
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Block from "../Block.ts"
import type { Call, CallResult } from "../Call.ts"
import * as Calls from "../Call.ts"
import type { KernelError } from "../KernelError.ts"
import * as Plan from "../Plan.ts"
import * as TaskScheduler from "../TaskScheduler.ts"
import { isJsonObject } from "./json.ts"
import { now, openTurn, type Run, tell } from "./run.ts"

/** Puts a task through launch and result: `batch.ts` lends it. */
export type Launch = (
  call: Call,
  body: Effect.Effect<CallResult, KernelError>
) => Effect.Effect<CallResult | undefined, KernelError>

/**
 * Runs what is left of a plan. A task that failed has a result like any other;
 * only what stops the run itself fails here, and then every sibling is interrupted.
 */
export const runWorkflow = Effect.fnUntraced(function* (
  run: Run,
  plan: Plan.Plan,
  launch: Launch
): Effect.fn.Return<void, KernelError> {
  const turn = openTurn(run)
  const started = now(run)
  const calls = new Map(turn.pending.map((call) => [call.toolName, call]))
  const done = new Map(
    turn.completed.map((result) => [result.toolName ?? "", Exit.succeed<CallResult | undefined>(result)])
  )
  const left = remaining(plan, calls, done)
  if (done.size === 0) {
    const { goal, strategy, tasks } = Plan.pending(left)
    tell(run, { type: "workflow_start", goal, strategy, tasks })
  }
  const results = yield* TaskScheduler.run<CallResult | undefined, KernelError, never>(
    left,
    (task, dependencies) => {
      const call = calls.get(task.id)
      if (call === undefined) return Effect.undefined
      return launch(call, runTask(run, call, task, withDependencies(task, dependencies)))
    },
    { concurrency: run.agent.taskConcurrency, finished: done }
  )
  const durationMs = now(run) - started
  for (const [, exit] of results) {
    // A task's own failure is a result by now: what still fails is the run's store or its host.
    if (Exit.isFailure(exit)) return yield* Effect.failCause(exit.cause)
  }
  const told = results.flatMap(([id, exit]): ReadonlyArray<readonly [string, string]> =>
    Exit.isSuccess(exit) && exit.value !== undefined ? [[id, Calls.textOf(exit.value)]] : []
  )
  tell(run, { type: "workflow_complete", results: told, durationMs })
})

/** The tasks that were not dropped, with what hooks and people made of their inputs. */
const remaining = (
  plan: Plan.Plan,
  calls: ReadonlyMap<string | null, Call>,
  done: ReadonlyMap<string, unknown>
): Plan.Plan => {
  const kept = plan.tasks.filter((task) => calls.has(task.id) || done.has(task.id))
  const ids = new Set(kept.map((task) => task.id))
  return {
    ...plan,
    tasks: kept.map((task) => {
      const input = calls.get(task.id)?.input
      const dependsOn = kept.length === plan.tasks.length ? task.dependsOn : task.dependsOn.filter((id) => ids.has(id))
      return isJsonObject(input) && typeof input["input"] === "string"
        ? { ...task, dependsOn, input: input["input"] }
        : { ...task, dependsOn }
    })
  }
}

/** A sub-agent reads the results it waited for before its own task (BP-61). */
const withDependencies = (
  task: Plan.Task,
  dependencies: ReadonlyArray<TaskScheduler.TaskResult<CallResult | undefined, KernelError>>
): string => {
  if (dependencies.length === 0) return task.input
  const lines = dependencies.map(([id, exit]) =>
    Block.render(Block.result(id, Exit.isSuccess(exit) && exit.value !== undefined ? Calls.textOf(exit.value) : ""))
  )
  return `${lines.join("\n")}\n\n${task.input}`
}

const runTask = (run: Run, call: Call, task: Plan.Task, input: string): Effect.Effect<CallResult, KernelError> =>
  Effect.suspend(() => {
    const started = now(run)
    tell(run, { type: "task_start", id: task.id, input: task.input, dependsOn: task.dependsOn })
    return Effect.flatMap(Effect.exit(run.spawn(run, call, input)), (exit) => {
      const durationMs = now(run) - started
      const result: CallResult = Exit.isSuccess(exit)
        ? { ...exit.value, durationMs }
        : Calls.failed(call, Calls.error("TaskFailed", taskError(exit.cause)), { durationMs })
      tell(
        run,
        result.error === undefined
          ? { type: "task_complete", id: task.id, result: Calls.textOf(result), durationMs }
          : { type: "task_error", id: task.id, error: result.error.message, durationMs }
      )
      return Effect.as(observe(run, task, result, durationMs), result)
    })
  })

/** What went wrong in words the parent's model may read: a bug keeps its details for the log (W-14). */
const taskError = (cause: Cause.Cause<KernelError>): string => {
  for (const reason of cause.reasons) if (Cause.isFailReason(reason)) return reason.error.message
  return Cause.hasInterruptsOnly(cause) ? "the task was interrupted" : "the task failed unexpectedly"
}

/** Tells the host, once per task; what it does wrong changes nothing (BP-103, W-25). */
const observe = (run: Run, task: Plan.Task, result: CallResult, durationMs: number): Effect.Effect<void> =>
  run.onTaskComplete === undefined
    ? Effect.void
    : run
        .onTaskComplete({
          taskId: task.id,
          input: task.input,
          result: result.error === undefined ? Calls.textOf(result) : null,
          error: result.error?.message ?? null,
          durationMs
        })
        .pipe(Effect.catchCause((cause) => Effect.logWarning("onTaskComplete failed", cause)))
