/**
 * A task or another agent as a child run, one level deeper, with a journal of its own.
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
import type { JsonObject } from "../base/json.ts"
import { stored } from "../store/stored.ts"
import { conclude } from "../run/conclude.ts"
import { drive } from "../loop/loop.ts"
import { proveOwnership } from "../loop/aroundCall.ts"
import { childRunId } from "../words/ids.ts"
import type { Child, DriveError, EndError, Environment, MemberError, Run } from "../run/run.ts"
import { openTurn } from "../run/run.ts"
import type { Resumption } from "../../RunOptions.ts"
import * as Budget from "../run/sharedBudget.ts"
import { create, traced } from "./start.ts"

type Spawn = Environment["spawn"]

/** Resumes a stored run: `resume.ts` passes itself, as a child of a resumed run is resumed in the same way. */
export type Resume = (
  environment: Environment,
  state: RunState,
  how: Resumption
) => Effect.Effect<RunResult<unknown>, ResumeError>

/** Runs tasks and agents as child runs. */
export const spawner = (resume: Resume): Spawn => {
  const spawn: Spawn = Effect.fnUntraced(function* (parent, call, child) {
    const runId = idOf(parent, call)
    const beginning = {
      runId,
      rootRunId: parent.state.rootRunId,
      parentRunId: parent.state.runId,
      depth: parent.state.depth + 1,
      taskId: child.taskId,
      history: [],
      input: child.input,
      context: parent.state.context
    }
    const environment = yield* environmentOf(parent, child, undefined)
    return yield* Effect.matchEffect(create(environment, beginning), {
      onSuccess: (run) => Effect.map(traced(environment, beginning, finishChild(run)), (end) => resultOf(call, end)),
      // A worker that was frozen and lost this run began the child when it woke: the child continues from there.
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

/** Runs children that are stored already from where they stand, and starts the others. */
export const respawner =
  (
    resume: Resume,
    spawn: Spawn,
    children: ReadonlyMap<string, RunState>,
    how: Resumption,
    resumes: ReadonlyArray<RunRecord>
  ): Spawn =>
  (parent, call, child) =>
    children.has(idOf(parent, call))
      ? continued(resume, spawn, parent, call, child, how, resumes)
      : spawn(parent, call, child)

const idOf = (parent: Run, call: Call): string => childRunId(openTurn(parent).turnId, call) ?? call.callId

/** What a child runs in: its own agent and limits inside those of its parent. `state` is what is stored of it. */
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
 * Resumes a child as it is stored now: its questions may have been answered since its parent was resumed. A pause that
 * its parent did not see yet pauses the parent.
 */
const continued = Effect.fnUntraced(function* (
  resume: Resume,
  spawn: Spawn,
  parent: Run,
  call: Call,
  child: Child,
  how: Resumption,
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
  return resultOf(call, { text, usage, costUsd, turns, log: end.turns })
})

/** The records of a run that are not phases: its resumes, launches and pauses. */
export const resumesOf = (
  store: RunStore.RunStoreShape,
  { runId }: RunState
): Effect.Effect<ReadonlyArray<RunRecord>, StoreError> =>
  Effect.map(Stream.runCollect(store.read(runId)), (records) => records.filter(({ op }) => op !== "phase"))

/**
 * The context given to a run since its task stopped, which a resume may have been cut off before passing on. Fails with
 * the task's own pause when the run did not pause since.
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
    // A worker that resumed the task alone never had the run.
    isSince ||= isSame || createdAt > updatedAt
    if (given && isSince && !isSame && delta.resumed) given = { ...given, ...delta.context }
    if (isSince && op === "pause") given ??= {}
  }
  if (status.type === "paused" && !given) return yield* new RunPaused({ runId, ...status })
  return given ?? {}
})

/** A child that has ended, and its turns. */
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

const resultOf = (call: Call, { costUsd, log, text, turns, usage }: End): CallResult =>
  Calls.succeeded(call, [Contents.text(text), ...mediaOf(log)], { spent: { usage, costUsd, turns } })

/** The media that a child made. Its result names them, so later tasks can use them. */
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
