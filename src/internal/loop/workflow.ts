/**
 * Runs a plan: each task is a child run, started when the tasks it depends on are done.
 *
 * A task that fails, takes too long or is interrupted has a result that says so, and its siblings continue. Whatever
 * concerns the whole tree concerns the run: a child that waits for a person pauses it, an empty budget starts nothing
 * new, a lost store or owner stops all siblings at once. Their journals stay, so a resumed run continues with them.
 */

import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Block from "../../Block.ts"
import type { Call, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import * as Plan from "../../Plan.ts"
import * as TaskScheduler from "../../TaskScheduler.ts"
import { isJsonObject } from "../base/json.ts"
import { emit } from "../run/publish.ts"
import type { Beside, Waits } from "./concurrentCalls.ts"
import { send } from "./dispatch.ts"
import { type CallsError, type Run, now, openTurn } from "../run/run.ts"
import * as Budget from "../run/sharedBudget.ts"
import { taskTarget } from "./childTarget.ts"

/** The result of a task. Undefined when it waits for a person, or was not started. */
type Ended = CallResult | undefined

type Dependencies = ReadonlyArray<TaskScheduler.TaskResult<Ended, CallsError>>

/** Runs what is left of a plan. Only what stops the run itself fails here. */
export const runWorkflow = (
  run: Run,
  plan: Plan.Plan,
  beside: Beside,
  waits: Waits
): Effect.Effect<void, CallsError> => {
  const tasks = runTasks(run, plan, beside, waits)
  return run.telemetry === undefined
    ? tasks
    : run.telemetry.workflow(tasks, { goal: plan.goal, tasks: plan.tasks.length })
}

const runTasks = Effect.fnUntraced(function* (
  run: Run,
  plan: Plan.Plan,
  beside: Beside,
  waits: Waits
): Effect.fn.Return<void, CallsError> {
  const turn = openTurn(run)
  const startedAt = now(run)
  const calls = new Map(turn.pending.map((call) => [call.name, call]))
  const finished = new Map(turn.completed.map((result) => [result.name ?? "", Exit.succeed<Ended>(result)]))
  const left = remaining(plan, calls, finished)
  // Tasks that a hook or a person answered were never started; tasks that are resumed were started before.
  if (!turn.recovered && turn.completed.every((result) => result.skipped === true)) {
    const { goal, strategy, tasks } = Plan.pending(left)
    emit(run, { type: "workflow_start", goal, strategy, tasks })
  }
  const waiting = () => left.tasks.filter((task) => waits.has(calls.get(task.id)?.callId ?? ""))
  const siblings = siblingsOf(plan, () => (waits.size === 0 ? [] : waiting()))
  const tasks = TaskScheduler.run<Ended, CallsError, never>(
    left,
    (task, dependencies) => {
      const call = calls.get(task.id)
      if (call === undefined || siblings.mustWait(task, dependencies)) return Effect.undefined
      const target = taskTarget(run, call, task, withDependencies(task, dependencies))
      return Effect.tapCause(Budget.inSlot(run.budget, beside(call, send(run, call, target))), (cause) =>
        Effect.sync(() => siblings.stop(cause))
      )
    },
    { concurrency: run.agent.taskConcurrency, finished }
  )
  // Plans are validated when they are read, so their tasks cannot wait for each other.
  const ended = Effect.catchTag(tasks, "DeadlockError", Effect.die)
  const results = yield* Effect.raceFirst(ended, Deferred.await(siblings.broken)).pipe(
    Effect.tapError(({ message }) =>
      Effect.sync(() => emit(run, { type: "workflow_error", error: message, durationMs: now(run) - startedAt }))
    )
  )
  // A failed task has a result by now, so what still fails here concerns the run.
  for (const [, exit] of results) if (Exit.isFailure(exit)) return yield* Effect.failCause(exit.cause)
  const texts = results.flatMap(([id, exit]): ReadonlyArray<readonly [string, string]> => {
    const result = resultIn(exit)
    return result === undefined ? [] : [[id, Calls.textOf(result)]]
  })
  // Tasks that wait for a person, or were not started, run when the run is resumed.
  if (texts.length < left.tasks.length) return
  emit(run, { type: "workflow_complete", results: texts, durationMs: now(run) - startedAt })
})

/** What the tasks of a plan know of each other. */
const siblingsOf = (plan: Plan.Plan, waiting: () => ReadonlyArray<Plan.Task>) => {
  const broken = Deferred.makeUnsafe<never, CallsError>()
  let isStopping = false
  /** Starts nothing new. Siblings that would only find the same at their next step are left to find it. */
  const stop = (cause: Cause.Cause<CallsError>): void => {
    isStopping = true
    const tag = cause.reasons.find(Cause.isFailReason)?.error._tag
    if (tag !== "BudgetExhaustedError" && tag !== "CancellationError") {
      Deferred.doneUnsafe(broken, Exit.failCause(cause))
    }
  }
  /** A task waits with the tasks it depends on, and with earlier tasks of a sequence. */
  const mustWait = (task: Plan.Task, dependencies: Dependencies): boolean =>
    isStopping ||
    dependencies.some(([, exit]) => resultIn(exit) === undefined) ||
    (!Plan.isParallel(plan.strategy, task) && waiting().some((other) => !Plan.isParallel(plan.strategy, other)))
  return { broken, mustWait, stop }
}

/** The tasks that were not dropped, with their inputs as hooks and people changed them. */
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

/** The input of a task: media and results of the tasks it depends on, then its own text. */
const withDependencies = (task: Plan.Task, dependencies: Dependencies): ReadonlyArray<Content> => {
  if (dependencies.length === 0) return [Contents.text(task.input)]
  const results = dependencies.map(([id, exit]) => [id, resultIn(exit)] as const)
  const lines = results.map(([id, result]) =>
    Block.render(Block.result(id, result === undefined ? "" : Calls.textOf(result)))
  )
  const media = results.flatMap(([, result]) => Calls.mediaOf(result?.output ?? []))
  return [...media, Contents.text(`${lines.join("\n")}\n\n${task.input}`)]
}

const resultIn = (exit: Exit.Exit<Ended, CallsError>): Ended => (Exit.isSuccess(exit) ? exit.value : undefined)
