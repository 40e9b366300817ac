/**
 * Runs tasks and called agents as child runs, one level deeper, each with its own journal.
 */

import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import type { Call, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { ResumeError, StoreError } from "../../KernelError.ts"
import { RunPaused } from "../../KernelError.ts"
import type { RunRecord, RunResult, RunState, Turn } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import * as Usage from "../../Usage.ts"
import type { JsonObject } from "../../kit/json.ts"
import { stored } from "../../store-kit/StoredRuns.ts"
import { conclude } from "../run/conclude.ts"
import { drive } from "../loop/loop.ts"
import { proveOwnership } from "../call/aroundCall.ts"
import { childRunId } from "../../Call.ts"
import type { Child, DriveError, EndError, Environment, MemberError, Run } from "../run/run.ts"
import type { Resumption } from "../../RunOptions.ts"
import * as Budget from "../run/treeBudget.ts"
import { create, traced } from "./start.ts"

type Spawn = Environment["spawn"]

/** The `resume` function, passed in because `resume.ts` imports this module. */
type Resume = (
  environment: Environment,
  state: RunState,
  how: Pick<Resumption, "recover" | "context">
) => Effect.Effect<RunResult<unknown>, ResumeError>

/** Returns the function that starts tasks and agents as child runs. */
export const spawner = (resume: Resume): Spawn => {
  const spawn: Spawn = Effect.fnUntraced(function* (parent, call, child) {
    const runId = idOf(parent, call)
    const beginning = {
      runId,
      rootRunId: parent.state.rootRunId,
      parentRunId: parent.state.runId,
      depth: parent.state.depth + 1,
      taskId: child.taskId,
      caller: parent.state.caller,
      history: [],
      input: child.input,
      context: parent.state.context
    }
    const environment = yield* environmentOf(parent, child, undefined)
    return yield* Effect.matchEffect(create(environment, beginning), {
      onSuccess: (run) => Effect.map(traced(environment, beginning, finishChild(run)), (end) => taskResult(call, end)),
      // A suspended worker that lost this run may have created the child when it woke up, so the child is resumed.
      onFailure: (error) =>
        error._tag !== "RunExists"
          ? Effect.fail(error)
          : Effect.flatMap(stored(parent.store, runId), (found) => {
              if (found.parentRunId !== beginning.parentRunId) return Effect.fail(error)
              Budget.count(parent.budget, Budget.spentOf(found))
              return Effect.flatMap(resumesOf(parent.store, parent.state), (resumes) =>
                continued(resume, spawn, parent, call, child, {}, resumes)
              )
            })
    })
  })
  return spawn
}

/** Returns the spawn function of a resumed run: it resumes stored children and starts the others. */
export const respawner =
  (
    resume: Resume,
    spawn: Spawn,
    children: ReadonlyMap<string, RunState>,
    how: Pick<Resumption, "recover" | "context">,
    resumes: ReadonlyArray<RunRecord>
  ): Spawn =>
  (parent, call, child) =>
    children.has(idOf(parent, call))
      ? continued(resume, spawn, parent, call, child, how, resumes)
      : spawn(parent, call, child)

const idOf = ({ state }: Run, call: Call): string => childRunId(state.currentTurn?.turnId ?? "", call) ?? call.callId

/**
 * Returns the environment of a child: its own agent and limits inside those of its parent. `state` is its stored state,
 * if any.
 */
const environmentOf = (
  parent: Run,
  { agent, taskId }: Child,
  state: RunState | undefined
): Effect.Effect<Environment, MemberError> =>
  agent === undefined
    ? Effect.succeed({ ...parent, parent, deadline: undefined })
    : Effect.map(parent.member(agent.name), (member) => ({
        ...parent,
        ...member,
        parent,
        maxSteps: agent.maxSteps,
        deadline: taskId === undefined ? agent.budget.deadline : undefined,
        budget: Budget.within(parent.budget, agent.budget, Budget.spentOf(state))
      }))

/**
 * Resumes a child from its current stored state, because its questions may have been answered after its parent was
 * resumed. A pause that the parent has not recorded yet pauses the parent.
 */
const continued = Effect.fnUntraced(function* (
  resume: Resume,
  spawn: Spawn,
  parent: Run,
  call: Call,
  child: Child,
  how: Pick<Resumption, "recover" | "context">,
  resumes: ReadonlyArray<RunRecord>
): Effect.fn.Return<CallResult, ResumeError> {
  const state = yield* stored(parent.store, idOf(parent, call))
  // A worker that lost the parent must not take the child from its new owner.
  yield* proveOwnership(parent)
  const context = state.status.type === "completed" ? {} : yield* contextSince(parent.store, state, resumes)
  const given = { recover: how.recover, context: { ...context, ...how.context } }
  const environment = yield* environmentOf(parent, child, state)
  const { costUsd, text, turns, usage } = yield* resume({ ...environment, spawn }, state, given)
  const end = yield* stored(parent.store, state.runId)
  return taskResult(call, { text, usage, costUsd, turns, log: end.turns })
})

/** Returns the resume, launch and pause records of a run. */
export const resumesOf = (
  store: RunStore.RunStoreShape,
  { runId }: RunState
): Effect.Effect<ReadonlyArray<RunRecord>, StoreError> =>
  Effect.map(Stream.runCollect(store.read(runId)), (records) => records.filter(({ op }) => op !== "phase"))

/**
 * Returns the context given to a run since its task stopped, which an interrupted resume may not have passed on. Fails
 * with the pause of the task if the run itself has not paused since.
 */
const contextSince = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  { revision, runId, status, updatedAt }: RunState,
  resumes: ReadonlyArray<RunRecord>
): Effect.fn.Return<JsonObject, StoreError | RunPaused> {
  const [last] = yield* Stream.runCollect(store.read(runId, revision - 1))
  let isSince = false
  let given: JsonObject | undefined = status.type === "paused" ? undefined : {}
  for (const { createdAt, delta, op, workerId } of resumes) {
    const isSame = workerId === last?.workerId
    // If the task was resumed alone, its worker has no record in the run, so times decide.
    isSince ||= isSame || createdAt > updatedAt
    if (given && isSince && !isSame && delta.resumed) given = { ...given, ...delta.context }
    if (isSince && op === "pause") given ??= {}
  }
  if (status.type === "paused" && !given) return yield* new RunPaused({ runId, ...status })
  return given ?? {}
})

/** The result and the turns of an ended child. */
interface End extends Pick<RunResult<unknown>, "text" | "usage" | "costUsd" | "turns"> {
  readonly log: ReadonlyArray<Turn>
}

const finishChild = (run: Run): Effect.Effect<End, DriveError | EndError> =>
  Effect.flatMap(drive(run), (last) =>
    Effect.map(conclude(last), ({ costUsd, text, turns, usage }) => ({
      text,
      usage,
      costUsd,
      turns,
      log: last.state.turns
    }))
  )

const taskResult = (call: Call, { costUsd, log, text, turns, usage }: End): CallResult =>
  Calls.succeeded(call, [Contents.text(text), ...mediaOf(log)], {
    spent: { ...Usage.expense(usage, costUsd), turns }
  })

/** Returns the media that a child created. Its result includes them, so that later tasks can use them. */
const mediaOf = (turns: ReadonlyArray<Turn>): ReadonlyArray<Content> => {
  const media = new Map<string, Content>()
  const keep = (parts: ReadonlyArray<Content>) => {
    for (const part of parts) if (Contents.isMedia(part) && part.fileId !== undefined) media.set(part.fileId, part)
  }
  for (const { completed, message } of turns) {
    if (message !== undefined) keep(message.content)
    for (const result of completed) keep(result.message?.content ?? result.output ?? [])
  }
  return [...media.values()]
}
