/**
 * Decides when and how often a run that crashed or failed may be attempted again.
 */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import * as Stream from "effect/Stream"
import type { RunEvent } from "../../RunEvent.ts"
import type { Phase, RunRecord } from "../../RunState.ts"
import type { RunHead, RunStore, StoreError } from "../../RunStore.ts"
import { isTransient } from "../errors/failedCall.ts"
import { hasFailed } from "../store/runStatus.ts"

/**
 * Whether a run may be attempted: from a time, in milliseconds since the epoch; never again, after this many attempts;
 * or not now, because it has changed since its head was read.
 */
type Patience =
  | { readonly _tag: "From"; readonly at: number; readonly isSuspect: boolean }
  | { readonly _tag: "Exhausted"; readonly attempts: number }
  | { readonly _tag: "Changed" }

/**
 * Decides whether a run may be attempted.
 *
 * Attempts are counted from the journal, so all processes agree. They are the resumes since the run or one of its tasks
 * last made progress, or since the run paused or was answered by a person, except those that a process gave up in order
 * as it shut down. Crashes that may be those of a neighbour count as one: after a crash, suspects are attempted one by
 * one, and only such attempts count each.
 */
export const patience = Effect.fnUntraced(function* (
  store: RunStore["Service"],
  retry: Schedule.Schedule<unknown>,
  head: RunHead
): Effect.fn.Return<Patience, StoreError> {
  // A run that was only submitted has had no attempt.
  if (head.revision === 1) return { _tag: "From", at: 0, isSuspect: false }
  const records = yield* recent(store, head)
  if (records.at(-1)?.revision !== head.revision) return { _tag: "Changed" }
  let resumes: Array<Resume> = []
  for (const record of records) {
    if (record.events.some(isProgress) || isPause(record) || record.delta.answers !== undefined) resumes = []
    else if (record.op === "resume") resumes.push({ at: record.createdAt, isAlone: record.delta.alone === true })
    else if (record.delta.released === true) resumes.pop()
  }
  // With few attempts the tasks need not be read.
  if (resumes.length > 1) {
    const progressAt = yield* lastProgress(store, yield* tasksOf(store, head))
    resumes = resumes.filter(({ at }) => at >= progressAt)
  }
  const isSuspect = mayHaveCrashed(head, resumes.length)
  const attempts = countOf(resumes, isSuspect)
  // After its first crash a run is attempted without a wait. A failed run has already had its first attempt.
  const waits = hasFailed(head.status) ? attempts : attempts - 1
  const step = yield* Schedule.toStep(retry)
  let millis = 0
  for (let attempt = 1; attempt <= waits; attempt++) {
    const next = yield* Effect.option(step(head.updatedAt, undefined))
    if (Option.isNone(next)) return { _tag: "Exhausted", attempts }
    millis = Duration.toMillis(next.value[1])
  }
  const now = yield* Clock.currentTimeMillis
  // After the clock was set back, the wait would last until the clock has caught up.
  const wasSetBack = head.updatedAt > now + setBackMs
  const at = wasSetBack ? now : Math.max(millis === 0 ? 0 : head.updatedAt + millis, notBefore(head))
  return { _tag: "From", at, isSuspect }
})

/** A resume of a run, and whether it was attempted without other suspects. */
interface Resume {
  readonly at: number
  readonly isAlone: boolean
}

/**
 * Counts attempts. Those that ended with their process count as one together, unless the run was the only suspect. A
 * resume of a suspect follows such an attempt.
 */
const countOf = (resumes: ReadonlyArray<Resume>, hasCrashed: boolean): number => {
  const shared = resumes.filter(({ isAlone }, index) => !isAlone && (resumes[index + 1]?.isAlone ?? hasCrashed)).length
  return resumes.length - shared + Math.min(1, shared)
}

/**
 * Returns whether a process may have died of a run: the lease of its worker expired, or it was resumed again without ever
 * having one. A worker that lives gives its runs back instead. A runner of a cluster has a lease for the moment in which
 * it begins, named by the writer of its records.
 */
const mayHaveCrashed = ({ lease, status: { type } }: RunHead, resumes: number): boolean => {
  const isOfWorker = lease !== undefined && !lease.workerId.includes("#")
  if (isOfWorker) return type === "interrupted" && resumes > 0
  return (type === "interrupted" || (type === "running" && lease === undefined)) && resumes > 1
}

/** Returns the tasks below a run while its calls are in flight. In other phases no task is active. */
export const tasksOf = (store: RunStore["Service"], head: RunHead): Effect.Effect<ReadonlyArray<RunHead>, StoreError> =>
  calling.has(head.status.phase)
    ? Effect.map(store.list({ rootRunId: head.runId }), (tree) => tree.filter(({ runId }) => runId !== head.runId))
    : Effect.succeed([])

/**
 * Returns true if a run failed because of a temporary failure of its provider (see `KernelError.ProviderReason`). Use it
 * as part of `retries`.
 *
 * @category guards
 * @since 0.1.0
 */
export const isPassing = ({ status }: RunHead): boolean =>
  status.type === "failed" &&
  status.error.tag === "ProviderError" &&
  isTransient(status.error.fields?.["reason"]) &&
  status.error.fields?.["shouldRetry"] !== false

/** Returns when one of these runs last made progress. */
const lastProgress = Effect.fnUntraced(function* (
  store: RunStore["Service"],
  heads: ReadonlyArray<RunHead>
): Effect.fn.Return<number, StoreError> {
  let last = -Infinity
  // Newest first, so that most journals need not be read.
  for (const head of heads.toSorted((a, b) => b.updatedAt - a.updatedAt)) {
    if (head.updatedAt <= last) break
    for (const record of yield* recent(store, head))
      if (record.events.some(isProgress)) last = Math.max(last, record.createdAt)
  }
  return last
})

/** Returns the time from which the provider of a failed run takes calls again, in milliseconds since the epoch. */
const notBefore = ({ status }: RunHead): number => {
  const at = status.type === "failed" ? status.error.fields?.["retryAt"] : undefined
  return typeof at === "number" ? at : 0
}

/** Milliseconds between the clocks of two processes. A run that changed later was changed before its clock was set back. */
const setBackMs = 10_000

const calling: ReadonlySet<Phase> = new Set<Phase>(["tool_calls_started", "tool_call_started", "tool_call_completed"])

/** Returns the last records of a run. */
const recent = (store: RunStore["Service"], head: RunHead): Effect.Effect<ReadonlyArray<RunRecord>, StoreError> =>
  Stream.runCollect(store.read(head.runId, Math.max(0, head.revision - 64)))

/** Returns whether an event is progress: work that need not be repeated. */
export const isProgress = ({ type }: Pick<RunEvent, "type">): boolean => progress.has(type)

const progress: ReadonlySet<string> = new Set(["model_completed", "tool_call_completed", "turn_completed"])

/**
 * Returns whether a record pauses or cancels a run, so that no worker continues it. Not counted for tasks, because a
 * waiting task pauses again with each resume of its root.
 */
const isPause = (record: RunRecord): boolean =>
  record.events.some((event) => event.type === "paused" || event.type === "run_cancelled")
