/**
 * Events as the loop writes them, and the scope that their run fills in.
 */

import type { AgentEvent, CallEvent, PhaseEvent, RunScope, TaskEvent, TurnEvent } from "../../RunEvent.ts"
import type { RunState } from "../../RunState.ts"
import { answer, result } from "../state/state.ts"
import type { Kind } from "../../Media.ts"
import type { JsonObject } from "../base/json.ts"

/** A phase event without its scope and revision. */
export type Draft = PhaseEvent extends infer E
  ? E extends PhaseEvent
    ? Omit<E, keyof RunScope | "revision">
    : never
  : never

type Unscoped<E> = E extends RunScope ? Omit<E, keyof RunScope> : never

/** An event that is not part of the journal, without its scope. */
export type LiveEvent =
  | Unscoped<TurnEvent | CallEvent | TaskEvent | AgentEvent>
  | { readonly type: "skill_progress"; readonly skill: string; readonly callId: string; readonly progress: unknown }
  | { readonly type: "skill_preliminary"; readonly skill: string; readonly callId: string; readonly output: unknown }
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

/** An event of the record that follows a state. The fields that all events share come first: such objects are small. */
export const scoped = (state: RunState, step: number, at: number, draft: Draft): PhaseEvent => {
  const { depth, revision, rootRunId, runId, taskId } = state
  return { runId, rootRunId, step, depth, taskId, at, revision: revision + 1, ...draft }
}

/** The result is computed from the journal, so it is published but not stored. A task's result goes to its parent. */
export const withResult = (state: RunState, output: unknown, event: PhaseEvent): PhaseEvent =>
  event.type !== "run_completed" || state.depth > 0 || answer(state) === undefined
    ? event
    : { ...event, result: result(state, output) }
