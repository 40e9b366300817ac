/**
 * Publishes the events of a run. The loop writes events without their scope, which is filled in here. Events are
 * published in order, each after the records before it are stored.
 */

import type { Kind } from "../../Media.ts"
import type { CallEvent, PhaseEvent, RunEvent, RunScope, TaskEvent, TurnEvent } from "../../RunEvent.ts"
import type { RunState } from "../../RunState.ts"
import { type JsonObject, plain } from "../../kit/json.ts"
import { answer, result, stepOf } from "../state/state.ts"
import { Reports } from "./reports.ts"
import { type Run, now } from "./run.ts"

/** A phase event without its scope and revision. */
export type Draft = PhaseEvent extends infer E
  ? E extends PhaseEvent
    ? Omit<E, keyof RunScope | "revision">
    : never
  : never

/** An event that is not part of the journal, without its scope. */
export type LiveEvent =
  | Unscoped<TurnEvent | CallEvent | TaskEvent>
  | {
      readonly type: "skill_progress"
      readonly skill: string
      readonly callId: string
      readonly progress?: unknown
      readonly output?: unknown
    }
  | {
      readonly type: "skill_execute"
      readonly skill: string
      readonly callId: string
      readonly input: unknown
      readonly produces?: ReadonlyArray<Kind>
    }
  | {
      readonly type: "skill_result"
      readonly skill: string
      readonly callId: string
      readonly output: unknown
      readonly durationMs: number
      readonly metadata?: JsonObject
      readonly truncated?: boolean
    }

/**
 * Adds the scope to an event of the record after a state. The shared fields come first, which keeps the objects small.
 */
export const scoped = (state: RunState, step: number, at: number, draft: Draft): PhaseEvent => {
  const { depth, revision, rootRunId, runId, taskId } = state
  return { runId, rootRunId, step, depth, taskId, at, revision: revision + 1, ...draft }
}

/** Returns a live event with its scope. */
const scopedLive = (run: Run, event: LiveEvent): RunEvent => {
  const { depth, rootRunId, runId, taskId } = run.state
  return { runId, rootRunId, step: stepOf(run.state), depth, taskId, at: timeOf(run), ...event }
}

/** Publishes an event that is not part of the journal, behind all events that wait for the store. Synchronous. */
export const emit = (run: Run, event: LiveEvent): void => {
  if (run.live.publish === undefined) return
  const published = scopedLive(run, event)
  if (run.records.length + run.events.length > 0) run.events.push(published)
  else run.live.publish(published, run.agent.name)
}

/** Keeps the latest reports of a call for followers that join, until `endReports`. Synchronous. */
export const keepReports = (run: Run, callId: string, latest: () => ReadonlyArray<LiveEvent>): void => {
  run.reports ??= new Reports()
  run.reports.set(callId, () => latest().map((event) => scopedLive(run, event)))
}

/** Drops the reports of a call that has ended. Synchronous. */
export const endReports = (run: Run, callId: string): void => run.reports?.delete(callId)

/** Publishes the events of stored records, and live events behind them that wait for no other record. */
export const publish = (run: Run, stored: number): void => {
  const count = run.records.length === 0 ? run.events.length : stored
  const events = run.events
  run.events = events.slice(count)
  for (let index = 0; index < count && run.live.publish !== undefined; index++) {
    const event = events[index]
    if (event !== undefined) run.live.publish(withResult(run, event), run.agent.name)
  }
}

/**
 * Adds the result to the completion of a root run. It is computed from the journal, so it is published but not stored.
 */
const withResult = ({ output, state }: Run, event: RunEvent): RunEvent =>
  event.type !== "run_completed" || state.depth > 0 || answer(state) === undefined
    ? event
    : { ...event, result: result(state, output) }

/** Returns the time for a new record. Records that are stored together have the same time. */
export const timeOf = (run: Run): number => run.records.at(-1)?.createdAt ?? now(run)

/** Returns a value without the secrets known to the redactor. */
export const shown = ({ redactor }: Pick<Run, "redactor">, value: unknown): unknown =>
  redactor === undefined ? value : plain(value, redactor.text)

type Unscoped<E> = E extends RunScope ? Omit<E, keyof RunScope> : never
