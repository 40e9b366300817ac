/**
 * Runs several calls of one reply concurrently: parallel calls of a model, and the tasks of a plan. Each task is a
 * child run that starts once its dependencies are done.
 */

import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Semaphore from "effect/Semaphore"
import * as Block from "../../Block.ts"
import * as Calls from "../../Call.ts"
import type { Call, CallOutcome, CallResult } from "../../Call.ts"
import * as Contents from "../../Content.ts"
import type { Content } from "../../Content.ts"
import { RunPaused } from "../../KernelError.ts"
import * as Plan from "../../Plan.ts"
import type { Delta } from "../../RunState.ts"
import * as TaskScheduler from "../../TaskScheduler.ts"
import type * as Usage from "../../Usage.ts"
import { isJsonObject } from "../../kit/json.ts"
import { emit } from "../run/publish.ts"
import { type CallsError, type HookError, type Run, carry, now, currentTurn, isRecovered } from "../run/run.ts"
import * as Budget from "../run/treeBudget.ts"
import { plusExpense } from "../state/expenses.ts"
import { short } from "../skill/failureText.ts"
import { type AskingResult, isAsking } from "./callAsks.ts"
import { effectsOf, termsOf } from "../policy/callEffects.ts"
import { ask, defer, deferred, hookArgs, pause, stopDeferred } from "../run/askHooks.ts"
import { taskTarget } from "./childTarget.ts"
import { questionsOf, type Waits } from "./pauses.ts"
import { commit, flush, manyRecords, record } from "../run/commit.ts"
import { send } from "./dispatch.ts"
import { questionMetadata } from "./review.ts"

/**
 * Launches one of several calls and records its result. A child run that waits for a person has no result: its call
 * stays in flight, and the run pauses with its questions once the other calls have ended.
 */
type Beside = (
  call: Call,
  body: Effect.Effect<CallResult | undefined, CallsError>
) => Effect.Effect<CallResult | undefined, CallsError>

/** Runs calls concurrently. A stop that a hook or a child requests takes effect once all have ended. */
export const together = Effect.fnUntraced(function* (
  run: Run,
  calls: (beside: Beside, waits: Waits) => Effect.Effect<void, CallsError>
): Effect.fn.Return<void, CallsError> {
  run.lock ??= Semaphore.makeUnsafe(1)
  const batch: Batch = { waits: new Map(), asking: [], hooks: Semaphore.makeUnsafe(1) }
  const { asking, waits } = batch
  yield* flush(run)
  yield* run.restore(calls((call, body) => runBeside(run, batch, call, body), waits))
  for (const result of asking) waits.set(result.callId, pausedBy(run, result))
  const stop = questionsOf(currentTurn(run).order, waits)
  if (stop !== undefined) defer(run, stop)
  if (asking.length > 0) carry(run, returning(asking))
  yield* stopDeferred(run)
})

/** Calls that run at once. Mutable. */
interface Batch {
  /** The pauses of their child runs, by call. */
  readonly waits: Map<string, RunPaused>
  /** Calls that wait for a person themselves. */
  readonly asking: Array<AskingResult>
  /** Lets one hook run at a time. */
  readonly hooks: Semaphore.Semaphore
}

const runBeside = Effect.fnUntraced(function* (
  run: Run,
  { asking, hooks, waits }: Batch,
  call: Call,
  body: Effect.Effect<CallResult | undefined, CallsError>
): Effect.fn.Return<CallResult | undefined, CallsError> {
  if (deferred(run) !== undefined && !isRecovered(run, call)) return undefined
  commit(run, "launch", [], { launched: [call.callId], effects: effectsOf(run, call), ...termsOf(run, call) })
  yield* flush(run)
  const unpaused = Effect.catchTag(body, "RunPaused", (error) =>
    Effect.sync(() => {
      waits.set(call.callId, error)
      return undefined
    })
  )
  const result = yield* run.restore(unpaused)
  if (result === undefined) return undefined
  if (isAsking(result)) asking.push(result)
  else yield* hooks.withPermits(1)(finish(run, result))
  return result
}, Effect.uninterruptible)

/** Pauses the run with the questions of its calls, which become pending again. */
export const pauseAsking = (run: Run, asking: ReadonlyArray<AskingResult>): Effect.Effect<void, HookError> =>
  pause(run, "approval_required", questionMetadata(asking.map(({ asks }) => asks)), returning(asking))

/** Records the result of a call. Synchronous. */
export const recordResult = (run: Run, completed: CallResult): void => {
  const { callId, spent } = completed
  record(run, { type: "tool_call_completed", callId, result: outcomeOf(run, completed), ...(spent && { spent }) })
}

const pausedBy = (run: Run, { asks }: AskingResult): RunPaused =>
  new RunPaused({ runId: run.state.runId, reason: "approval_required", metadata: questionMetadata([asks]) })

const returning = (asking: ReadonlyArray<AskingResult>): Delta => {
  const spent = asking.reduce<Usage.Expense | undefined>(
    (sum, { spent }) => (spent === undefined ? sum : plusExpense(sum, spent)),
    undefined
  )
  return {
    returned: asking.map(({ callId }) => callId),
    asked: asking.map(({ asks }) => asks),
    ...(spent === undefined ? {} : { spent })
  }
}

/** Stores the result of one of several calls and asks its hook. A call without a result stays in flight. */
const finish = Effect.fnUntraced(function* (run: Run, result: CallResult): Effect.fn.Return<void, HookError> {
  recordResult(run, result)
  // Yields when thousands of calls end at once.
  if (run.state.revision % manyRecords < 2) yield* Effect.yieldNow
  const hook = run.hooks.onToolCallCompleted
  if (hook === undefined) return yield* flush(run)
  carry(run, { settled: true })
  const { control } = yield* ask(run, "onToolCallCompleted", () => hook(hookArgs(run, { result })))
  if (control !== undefined && control.type !== "continue") defer(run, control)
})

const outcomeOf = (run: Run, completed: CallResult): CallOutcome => {
  const { callId: _, error, input: _input, kind: _kind, name: _name, spent: _spent, ...rest } = completed
  return error === undefined ? rest : { ...rest, error: short(error, run.limits) }
}

// ---------------------------------------------------------------- the tasks of a plan

/**
 * Runs the remaining tasks of a plan. Fails only with errors that stop the run itself.
 *
 * A task that fails, times out or is interrupted gets an error result, and its siblings continue. Errors that concern
 * the whole tree concern the run: a child that waits for a person pauses it, an exhausted budget starts no new tasks,
 * and a failed store or a lost lease stops all siblings at once. A resumed run continues the tasks from their own
 * journals.
 */
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

/** The result of a task. Undefined if it waits for a person or was not started. */
type Ended = CallResult | undefined

type Dependencies = ReadonlyArray<TaskScheduler.TaskResult<Ended, CallsError>>

const runTasks = Effect.fnUntraced(function* (
  run: Run,
  plan: Plan.Plan,
  beside: Beside,
  waits: Waits
): Effect.fn.Return<void, CallsError> {
  const turn = currentTurn(run)
  const startedAt = now(run)
  const calls = new Map(turn.pending.map((call) => [call.name, call]))
  const finished = new Map(turn.completed.map((result) => [result.name ?? "", Exit.succeed<Ended>(result)]))
  const left = remaining(plan, calls, finished)
  // Skipped tasks were never started. A recovered turn has emitted its start before.
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
  // Plans are validated when they are read, so their tasks cannot deadlock.
  const ended = Effect.catchTag(tasks, "DeadlockError", Effect.die)
  const results = yield* Effect.raceFirst(ended, Deferred.await(siblings.broken)).pipe(
    Effect.tapError(({ message }) =>
      Effect.sync(() => emit(run, { type: "workflow_error", error: message, durationMs: now(run) - startedAt }))
    )
  )
  // A failed task has a result, so any remaining failure concerns the run.
  for (const [, exit] of results) if (Exit.isFailure(exit)) return yield* Effect.failCause(exit.cause)
  const texts = results.flatMap(([id, exit]): ReadonlyArray<readonly [string, string]> => {
    const result = resultIn(exit)
    return result === undefined ? [] : [[id, Calls.textOf(result)]]
  })
  // Tasks that wait for a person, or were not started, run when the run is resumed.
  if (texts.length < left.tasks.length) return
  emit(run, { type: "workflow_complete", results: texts, durationMs: now(run) - startedAt })
})

/** Tracks when the tasks of a plan must wait or stop because of their siblings. */
const siblingsOf = (plan: Plan.Plan, waiting: () => ReadonlyArray<Plan.Task>) => {
  const broken = Deferred.makeUnsafe<never, CallsError>()
  let isStopping = false
  /**
   * Prevents new starts. An exhausted budget and a cancellation leave running siblings to stop at their next step; any
   * other cause stops them at once.
   */
  const stop = (cause: Cause.Cause<CallsError>): void => {
    isStopping = true
    const tag = cause.reasons.find(Cause.isFailReason)?.error._tag
    if (tag !== "BudgetExhaustedError" && tag !== "CancellationError") {
      Deferred.doneUnsafe(broken, Exit.failCause(cause))
    }
  }
  /** Returns whether a task must wait: for its dependencies, or, in a sequence, for an earlier task that waits. */
  const mustWait = (task: Plan.Task, dependencies: Dependencies): boolean =>
    isStopping ||
    dependencies.some(([, exit]) => resultIn(exit) === undefined) ||
    (!Plan.isParallel(plan.strategy, task) && waiting().some((other) => !Plan.isParallel(plan.strategy, other)))
  return { broken, mustWait, stop }
}

/** Returns the plan without dropped tasks, with the inputs as hooks and people changed them. */
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

/** Returns the input of a task: media and results of its dependencies, then its own text. */
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
