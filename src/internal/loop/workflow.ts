/**
 * A plan on its way through a run: each task a child run, started when what it waits for is done (BP-56 to BP-61).
 *
 * A task that failed, took too long or was interrupted has a result that says
 * so, and its siblings go on. What concerns the whole tree goes on to the run: a
 * child that waits for a person pauses it, an empty budget starts nothing new,
 * a lost store or owner stops all siblings at once. Their journals stay, so the
 * next life of the run goes on with them.
 */

import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Block from "../../Block.ts"
import type { Call, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { KernelError, RunPaused } from "../../KernelError.ts"
import * as Plan from "../../Plan.ts"
import * as TaskScheduler from "../../TaskScheduler.ts"
import { type Json, isJsonObject } from "../base/json.ts"
import { observed } from "../base/passedOver.ts"
import { redact } from "../base/redact.ts"
import { tell } from "./commit.ts"
import { now, openTurn, type Run } from "./run.ts"
import { defer } from "./askHooks.ts"
import { spentBy } from "../store/stored.ts"
import * as Tree from "./sharedBudget.ts"

/** How a task ended: without a result when it waits for a person, or was not started any more. */
type Ended = CallResult | undefined

type Dependencies = ReadonlyArray<TaskScheduler.TaskResult<Ended, KernelError>>

type Control = NonNullable<Run["deferred"]>

/** Puts a task through launch and result: `batch.ts` lends it. */
export type Launch = (call: Call, body: Effect.Effect<Ended, KernelError>) => Effect.Effect<Ended, KernelError>

/** Runs what is left of a plan, in a span where somebody watches. Only what stops the run itself fails here. */
export const runWorkflow = (run: Run, plan: Plan.Plan, launch: Launch): Effect.Effect<void, KernelError> => {
  const tasks = runTasks(run, plan, launch)
  return run.telemetry === undefined
    ? tasks
    : run.telemetry.workflow(tasks, { goal: plan.goal, tasks: plan.tasks.length })
}

const runTasks = Effect.fnUntraced(function* (
  run: Run,
  plan: Plan.Plan,
  launch: Launch
): Effect.fn.Return<void, KernelError> {
  const turn = openTurn(run)
  const started = now(run)
  const calls = new Map(turn.pending.map((call) => [call.name, call]))
  const done = new Map(turn.completed.map((result) => [result.name ?? "", Exit.succeed<Ended>(result)]))
  const left = remaining(plan, calls, done)
  // A task whose result a hook or a person gave was never started; one that was cut off was, in an earlier life.
  if (!turn.recovered && turn.completed.every((result) => result.skipped === true)) {
    const { goal, strategy, tasks } = Plan.pending(left)
    tell(run, { type: "workflow_start", goal, strategy, tasks })
  }
  const broken = Deferred.makeUnsafe<never, KernelError>()
  const waits: Waits = new Map()
  let stopping = false
  const pause = (task: Plan.Task) => (error: RunPaused) => {
    waits.set(task.id, { task, error })
  }
  // Who waits for one that waits for a person waits too, and so do the later ones of a sequence.
  const mustWait = (task: Plan.Task, dependencies: Dependencies): boolean =>
    dependencies.some(([, exit]) => ended(exit) === undefined) ||
    (!Plan.isParallel(plan.strategy, task) &&
      [...waits.values()].some((other) => !Plan.isParallel(plan.strategy, other.task)))
  const stop = (cause: Cause.Cause<KernelError>) => {
    stopping = true
    // Siblings of a task that found the budget empty, or was told to stop, find the same after the step they are in.
    const tag = failureOf(cause)?._tag
    if (tag !== "BudgetExhaustedError" && tag !== "CancellationError") {
      Deferred.doneUnsafe(broken, Exit.failCause(cause))
    }
  }
  const tasks = TaskScheduler.run<Ended, KernelError, never>(
    left,
    (task, dependencies) => {
      const call = calls.get(task.id)
      if (call === undefined || stopping || mustWait(task, dependencies)) return Effect.undefined
      const body = runTask(run, call, task, withDependencies(task, dependencies), pause(task))
      return Effect.tapCause(Tree.inSlot(run.tree, launch(call, body)), (cause) => Effect.sync(() => stop(cause)))
    },
    { concurrency: run.agent.taskConcurrency, finished: done }
  )
  const results = yield* Effect.raceFirst(tasks, Deferred.await(broken)).pipe(
    Effect.tapError((error) =>
      Effect.sync(() => tell(run, { type: "workflow_error", error: error.message, durationMs: now(run) - started }))
    )
  )
  // A task's own failure is a result by now: what still fails here is for the run.
  for (const [, exit] of results) if (Exit.isFailure(exit)) return yield* Effect.failCause(exit.cause)
  const told = results.flatMap(([id, exit]): ReadonlyArray<readonly [string, string]> => {
    const result = ended(exit)
    return result === undefined ? [] : [[id, Calls.textOf(result)]]
  })
  const asked = questions(left, waits)
  if (asked !== undefined) defer(run, asked)
  // What waits for a person, or was not started, is done in another life of the run.
  if (told.length < left.tasks.length) return
  tell(run, { type: "workflow_complete", results: told, durationMs: now(run) - started })
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

/** A sub-agent sees the media of what it waited for and reads the results, and then its own task (BP-61, W-21). */
const withDependencies = (task: Plan.Task, dependencies: Dependencies): ReadonlyArray<Content> => {
  if (dependencies.length === 0) return [Contents.text(task.input)]
  const results = dependencies.map(([id, exit]) => [id, ended(exit)] as const)
  const lines = results.map(([id, result]) =>
    Block.render(Block.result(id, result === undefined ? "" : Calls.textOf(result)))
  )
  const media = results.flatMap(([, result]) => Calls.mediaOf(result?.output ?? []))
  // The task comes last: it is what the model is to do with all the rest.
  return [...media, Contents.text(`${lines.join("\n")}\n\n${task.input}`)]
}

const ended = (exit: Exit.Exit<Ended, KernelError>): Ended => (Exit.isSuccess(exit) ? exit.value : undefined)

// ---------------------------------------------------------------- one task

const runTask = (
  run: Run,
  call: Call,
  task: Plan.Task,
  input: ReadonlyArray<Content>,
  pause: (error: RunPaused) => void
): Effect.Effect<Ended, KernelError> =>
  Effect.suspend(() => {
    const started = now(run)
    tell(run, { type: "task_start", id: task.id, input: task.input, dependsOn: task.dependsOn })
    return Effect.flatMap(Effect.exit(child(run, call, input)), (exit): Effect.Effect<Ended, KernelError> => {
      const durationMs = now(run) - started
      if (Exit.isSuccess(exit)) return close(run, task, { ...exit.value, durationMs })
      const error = failureOf(exit.cause)
      if (error?._tag === "RunPaused") {
        pause(error)
        return Effect.undefined
      }
      if (error !== undefined && concernsRun(error)) return Effect.fail(error)
      return Effect.flatMap(failed(run, call, exit.cause, durationMs), (result) => close(run, task, result))
    })
  })

/** The child run within the limits of the tree and of its time. */
const child = (
  run: Run,
  call: Call,
  input: ReadonlyArray<Content>
): Effect.Effect<CallResult, KernelError | TaskTimedOut> => {
  const denied = Tree.denied(run.tree, run.state.runId, run.state.depth + 1)
  if (denied !== undefined) return Effect.fail(denied)
  const { taskTimeout } = run.limits
  return Effect.timeoutOrElse(run.spawn(run, call, input), {
    duration: taskTimeout,
    orElse: () =>
      Effect.fail<TaskTimedOut>({
        _tag: "TaskTimedOut",
        message: `the task took longer than ${Duration.toMillis(taskTimeout)} ms`
      })
  })
}

interface TaskTimedOut {
  readonly _tag: "TaskTimedOut"
  readonly message: string
}

/** What is no failure of the task: its run belongs to another, cannot be stored, or the whole tree may not go on. */
const concernsRun = (error: KernelError | TaskTimedOut): error is KernelError => {
  switch (error._tag) {
    case "ConcurrentAppendError":
    case "AgentCrashError":
    case "CancellationError":
    case "StoreError":
    case "RunExists":
    case "RunBusy":
    case "InFlightToolCalls":
    case "BudgetExhaustedError":
      return true
    default:
      return false
  }
}

const failureOf = <E>(cause: Cause.Cause<E>): E | undefined => cause.reasons.find(Cause.isFailReason)?.error

/** Tells how a task ended, and the host once (BP-103). */
const close = (run: Run, task: Plan.Task, result: CallResult): Effect.Effect<CallResult> =>
  Effect.suspend(() => {
    const { durationMs = 0, error } = result
    tell(
      run,
      error === undefined
        ? { type: "task_complete", id: task.id, result: Calls.textOf(result), durationMs }
        : { type: "task_error", id: task.id, error: error.message, durationMs }
    )
    return Effect.as(observe(run, task, result, durationMs), result)
  })

/** The result of a task that failed, with what its run used until then (CP-15). */
const failed = (
  run: Run,
  call: Call,
  cause: Cause.Cause<KernelError | TaskTimedOut>,
  durationMs: number
): Effect.Effect<CallResult, KernelError> => {
  const error = Calls.error("TaskFailed", taskError(cause))
  const logged = Cause.hasDies(cause)
    ? Effect.logError(`Task '${call.name}' failed unexpectedly`, redact(Cause.pretty(cause)))
    : Effect.void
  return Effect.map(Effect.andThen(logged, run.store.load(call.callId)), (stored) => {
    if (Option.isNone(stored)) return Calls.failed(call, error, { durationMs })
    return Calls.failed(call, error, { durationMs, spent: spentBy(stored.value) })
  })
}

/** What went wrong in words the parent's model may read: a bug keeps its details for the log (W-14). */
const taskError = (cause: Cause.Cause<KernelError | TaskTimedOut>): string => {
  const error = failureOf(cause)
  if (error !== undefined) return redact(error.message)
  return Cause.hasInterruptsOnly(cause) ? "the task was interrupted" : "the task failed unexpectedly"
}

/** The tasks that wait for a person, by id. */
type Waits = Map<string, { readonly task: Plan.Task; readonly error: RunPaused }>

/** What its tasks wait for, a run waits for once the others have ended: in the order of the plan, whoever asked first. */
const questions = ({ tasks }: Plan.Plan, waits: Waits): Control | undefined =>
  tasks.reduce<Control | undefined>((asked, task) => {
    const waiting = waits.get(task.id)
    return waiting === undefined ? asked : together(asked, waiting.error)
  }, undefined)

/** Questions of several tasks are asked together. */
const together = (before: Control | undefined, { metadata, reason }: RunPaused): Control =>
  before === undefined
    ? { type: "pause", reason, metadata }
    : before.type === "pause" && before.reason === reason
      ? { ...before, metadata: joined(before.metadata ?? null, metadata) }
      : before

const joined = (a: Json, b: Json): Json => {
  if (!isJsonObject(a) || !isJsonObject(b)) return a
  const lists = Object.entries(b).flatMap(([key, value]) => {
    const known = a[key]
    return Array.isArray(known) && Array.isArray(value) ? [[key, [...known, ...value]] as const] : []
  })
  return { ...a, ...Object.fromEntries(lists) }
}

/** Tells the host, once per task; what it does wrong changes nothing (BP-103, W-25). */
const observe = (run: Run, task: Plan.Task, result: CallResult, durationMs: number): Effect.Effect<unknown> =>
  observed(
    "onTaskComplete",
    () =>
      run.onTaskComplete?.({
        taskId: task.id,
        input: task.input,
        result: result.error === undefined ? Calls.textOf(result) : null,
        error: result.error?.message ?? null,
        durationMs
      }) ?? Effect.void
  )
