/**
 * A task as a child run, one level deeper, with a journal of its own.
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
import { proveOwnership } from "./ownership.ts"
import type { Environment, Run } from "./run.ts"
import type { Resumption } from "../../RunOptions.ts"
import * as Budget from "./sharedBudget.ts"
import { create, finish, traced } from "./start.ts"

type Spawn = Environment["spawn"]

/** Resumes a stored run: `resume.ts` passes itself, as a task of a resumed run is resumed in the same way. */
export type Resume = (
  environment: Environment,
  state: RunState,
  how: Resumption
) => Effect.Effect<RunResult<unknown>, ResumeError>

/** Runs tasks as child runs. */
export const spawner = (resume: Resume): Spawn => {
  const spawn: Spawn = (parent, call, input) => {
    const beginning = {
      runId: call.callId,
      rootRunId: parent.state.rootRunId,
      parentRunId: parent.state.runId,
      depth: parent.state.depth + 1,
      taskId: call.name ?? undefined,
      history: [],
      input,
      context: parent.state.context
    }
    return Effect.matchEffect(create({ ...parent, parent }, beginning), {
      onSuccess: (child) =>
        Effect.map(traced(parent, beginning, finish(child)), (result) => resultOf(call, result, child.state.turns)),
      // A worker that was frozen and lost this run began the task when it woke: the task continues from there.
      onFailure: (error) =>
        error._tag !== "RunExists"
          ? Effect.fail(error)
          : Effect.flatMap(stored(parent.store, call.callId), (child) => {
              if (child.parentRunId !== beginning.parentRunId) return Effect.fail(error)
              Budget.count(parent.budget, Budget.spentOf(child))
              return Effect.flatMap(resumesOf(parent.store, parent.state), (resumes) =>
                continued(resume, spawn, parent, call, {}, resumes)
              )
            })
    })
  }
  return spawn
}

/** Runs tasks that are stored already from where they stand, and starts the others. */
export const respawner =
  (
    resume: Resume,
    spawn: Spawn,
    children: ReadonlyMap<string, RunState>,
    how: Resumption,
    resumes: ReadonlyArray<RunRecord>
  ): Spawn =>
  (parent, call, input) =>
    children.has(call.callId) ? continued(resume, spawn, parent, call, how, resumes) : spawn(parent, call, input)

/**
 * Resumes a task as it is stored now: its questions may have been answered since its parent was resumed. A pause that
 * its parent did not see yet pauses the parent.
 */
const continued = Effect.fnUntraced(function* (
  resume: Resume,
  spawn: Spawn,
  parent: Run,
  call: Call,
  how: Resumption,
  resumes: ReadonlyArray<RunRecord>
): Effect.fn.Return<CallResult, ResumeError> {
  const child = yield* stored(parent.store, call.callId)
  // A worker that lost the parent must not take the task from its new owner.
  yield* proveOwnership(parent)
  const context = child.status.type === "completed" ? {} : yield* contextSince(parent.store, child, resumes)
  const given = { recover: how.recover, context: { ...context, ...how.context } }
  const result = yield* resume({ ...parent, spawn, parent }, child, given)
  const { turns } = yield* stored(parent.store, child.runId)
  return resultOf(call, result, turns)
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

const resultOf = (call: Call, result: RunResult<unknown>, turns: ReadonlyArray<Turn>): CallResult =>
  Calls.succeeded(call, [Contents.text(result.text), ...mediaOf(turns)], {
    spent: { usage: result.usage, costUsd: result.costUsd, turns: result.turns }
  })

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
