/**
 * Finds what keeps stored calls from running under an agent, without running or storing anything.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Call } from "../../Call.ts"
import type { RunState } from "../../RunState.ts"
import { unrunnable } from "../call/review.ts"
import { targetFor } from "../call/targets.ts"
import { type Environment, type Run, makeRun } from "../run/run.ts"
import { agentName } from "../state/state.ts"

/**
 * Something that a stored run would not get from an agent that continued it.
 *
 * - `agent`: the run, or a part of it, belongs to another agent. Give this one an alias, or keep the other one.
 * - `approval`: a call that waits for an approval, or has one, cannot run as it was requested: the run would rest with
 *   `approval_not_run` and ask again.
 * - `in_flight`: a call that was in flight has no skill here, so nobody can repeat it: the run needs a decision.
 *
 * @category models
 * @since 0.1.0
 */
export interface Finding {
  readonly runId: string
  readonly reason: "agent" | "approval" | "in_flight"
  readonly detail: string
  /** The call and its name. Absent for `agent`. */
  readonly callId?: string
  readonly name?: string | null
}

/** Returns what a run of a tree would not get from the team of an agent. */
export const findingsIn = Effect.fnUntraced(function* (
  environment: Environment,
  state: RunState
): Effect.fn.Return<ReadonlyArray<Finding>> {
  const { runId } = state
  const member = yield* Effect.result(environment.member(agentName(state)))
  if (Result.isFailure(member)) return [{ runId, reason: "agent", detail: member.failure.message }]
  const run = makeRun({ ...environment, ...member.success }, state, undefined)
  const { inFlight = [], pending = [] } = state.currentTurn ?? {}
  const asked = new Set(state.questions.flatMap(({ answer, callId }) => (answer?.approved === false ? [] : [callId])))
  const waiting = yield* Effect.forEach(
    pending.filter(({ callId, review }) => review === "unreviewed" && asked.has(callId)),
    (call) => Effect.map(unrunnable(run, call), (detail) => findingOf(run, call, "approval", detail))
  )
  const lost = inFlight.map((call) => {
    const found = targetFor(run, call)
    return findingOf(run, call, "in_flight", Result.isFailure(found) ? found.failure.message : undefined)
  })
  return [...waiting, ...lost].flat()
})

const findingOf = (
  { state: { runId } }: Run,
  { callId, name }: Call,
  reason: Finding["reason"],
  detail: string | undefined
): ReadonlyArray<Finding> => (detail === undefined ? [] : [{ runId, reason, callId, name, detail }])
