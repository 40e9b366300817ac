/**
 * Resumes a stored run from its last record.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { type Call, type CallResult, resultOf } from "../../Call.ts"
import type { ResumeError, RunCancelled, StoreError } from "../../KernelError.ts"
import { AgentCrashError, InFlightToolCalls, RewindNotAllowed, RunBusy } from "../../KernelError.ts"
import type { Answer, Delta, RunResult, RunState } from "../../RunState.ts"
import { type RunTree, treeOf } from "../../store-kit/StoredRuns.ts"
import { childRunId } from "../../Call.ts"
import { isNamed } from "../agent/team.ts"
import { agentName, spentBy, stepOf } from "../state/state.ts"
import { ownContext } from "../run/askHooks.ts"
import { commit, flush } from "../run/commit.ts"
import type { FlushError } from "../../store-kit/internal/storeGuard.ts"
import { conclude, storedOutput } from "../run/conclude.ts"
import { failWith } from "../run/failure.ts"
import { memberOf } from "../loop/handOver.ts"
import { type AskedAgent, type EndError, type Environment, type Run, makeRun, now } from "../run/run.ts"
import { decided, declined, type Giver } from "./answers.ts"
import { answerTasks, withdraw } from "./queue.ts"
import type { Recovery, Resumption } from "../../RunOptions.ts"
import * as Budget from "../run/treeBudget.ts"
import { finish, traced } from "./start.ts"
import { effectsOf } from "../policy/callEffects.ts"
import { inTrace } from "./traceContext.ts"
import { respawner, resumesOf } from "./task.ts"

/**
 * Resumes a run. A completed run returns its result and stores nothing, unless it took all its turns and may take more.
 *
 * Interrupted and paused tasks continue from the end of their own journals. Answers, recoveries and context apply to
 * them, too.
 */
export const resume = (
  environment: Environment,
  state: RunState,
  how: Resuming
): Effect.Effect<RunResult<unknown>, ResumeError> => {
  const whole = resumed(environment, state, how)
  // A completed run has been traced before.
  return isOver(environment, state)
    ? whole
    : inTrace(state.trace, environment.stop !== undefined, traced(environment, state, whole))
}

/** Returns whether nothing continues a run. One that took all its turns continues with a higher limit. */
const isOver = ({ maxSteps }: Environment, { status, turns }: RunState): boolean =>
  status.type === "completed" && (status.source !== "max_turns" || turns.length >= maxSteps)

/** The changes of a resume, and who gives its answers. */
type Resuming = Omit<Resumption, "caller"> & { readonly caller?: Giver }

const resumed = Effect.fnUntraced(function* (
  first: Environment,
  state: RunState,
  how: Resuming
): Effect.fn.Return<RunResult<unknown>, ResumeError> {
  const { recover = {}, rewind = false } = how
  const environment = yield* memberOf(first, state)
  const tree = yield* treeOf(environment.store, state)
  const children = new Map(
    tree.flatMap((task) => (task.parentRunId === state.runId ? [[task.runId, task] as const] : []))
  )
  // Read once for all children, because a plan may have thousands.
  const resumes = children.size === 0 ? [] : yield* resumesOf(environment.store, state)
  const spawn = respawner(resume, environment.spawn, children, how, resumes)
  const agent = inDialectOf(state, environment.agent)
  const output = storedOutput(state.taskId === undefined ? agent : { ...agent, typed: false }, state)
  const run = makeRun({ ...environment, agent, spawn }, state, Result.getOrUndefined(output))
  if (isOver(environment, state)) {
    return yield* Result.isFailure(output) ? Effect.fail(output.failure) : republish(run)
  }
  const isQueued = yield* notHeld(run)
  // A rejected resume is stored and published as a failure of the run, which can be resumed again.
  if (Result.isFailure(output)) return yield* failWith(run, output.failure)
  const given = yield* decided(tree, how.answers ?? [], how.caller)
  const answers = [...given, ...late(tree, given, now(environment))]
  if (rewind) yield* checkRewind(state)
  const recovered = yield* recoveredCalls(run, recover, children)
  // The journal of a run counts only the usage of ended children.
  for (const child of children.values()) Budget.count(run.budget, Budget.spentOf(child))
  const context = how.context === undefined ? {} : { context: ownContext(how.context) }
  const delta: Delta = {
    resumed: true,
    ...context,
    ...(how.answers === undefined && answers.length === 0 ? {} : { answers }),
    ...(environment.isAlone && environment.parent === undefined ? { alone: true } : {}),
    ...(rewind ? { rewind } : {}),
    ...(agent.version === undefined || agent.version === state.version ? {} : { version: agent.version }),
    ...(how.as === undefined || isNamed(agent, agentName(state)) ? {} : { as: { agent: agent.name, reason: how.as } }),
    ...recovered
  }
  // Tasks first, so that a run resumed by another process finds them answered.
  yield* answerTasks({ ...environment, now: now(environment), context }, tree, answers)
  commit(run, "resume", [], delta)
  // Fences out other processes.
  yield* flush(run)
  if (isQueued) yield* withdraw(run.store, run.state.runId, run.workerId)
  return yield* finish(run)
})

/** Returns the answers that decline questions of a tree whose deadline has passed, unless they are answered now. */
const late = (tree: RunTree, given: ReadonlyArray<Answer>, now: number): ReadonlyArray<Answer> => {
  const answered = new Set(given.map(({ callId }) => callId))
  return tree.flatMap(({ questions }) => declined(questions, now)).filter(({ callId }) => !answered.has(callId))
}

/** Returns the agent with the dialect of its first turn, so that the dialect never changes during a conversation. */
const inDialectOf = (state: RunState, agent: AskedAgent): AskedAgent => {
  const open = state.status.phase === "turn_started" ? undefined : state.currentTurn
  const dialect = (state.turns[(state.handoff?.turn ?? 1) - 1] ?? open)?.dialect ?? agent.dialect
  return dialect === agent.dialect ? agent : { ...agent, dialect }
}

/** Publishes the end of a completed run again. */
const republish = (run: Run): Effect.Effect<RunResult<unknown>, EndError> =>
  Effect.tap(conclude(run), (result) =>
    Effect.sync(() => {
      const { depth, revision, rootRunId, runId, status, taskId } = run.state
      if (status.type !== "completed") return
      const { createdAt: at, phase: _phase, type: _type, ...end } = status
      const scope = { runId, rootRunId, step: stepOf(run.state), depth, taskId, at, revision }
      const event = { ...scope, ...end, type: "run_completed", ...(depth === 0 ? { result } : {}) } as const
      run.live.publish?.(event, run.agent.name)
    })
  )

/** Returns whether the run is queued for any worker. Fails if another worker holds it. */
const notHeld = (run: Run): Effect.Effect<boolean, RunBusy | StoreError> => {
  const { holder, seen, state, stop, store } = run
  if (seen === "leased") return Effect.succeed(false)
  // The driver read it a moment ago, unless the run had to wait for a place and has changed since.
  const found = seen?.revision === state.revision ? Effect.succeedSome(seen) : store.head(state.runId)
  return Effect.flatMap(found, (head) => {
    const lease = Option.getOrUndefined(head)?.lease
    if (lease === undefined) return Effect.succeed(false)
    // A worker that is shutting down leaves the run in the queue, so another worker can claim it.
    if (!lease.isLive) return Effect.succeed(stop?.() === undefined)
    const { expiresAt, workerId } = lease
    return workerId === holder
      ? Effect.succeed(false)
      : Effect.fail(new RunBusy({ runId: state.runId, workerId, expiresAt }))
  })
}

const checkRewind = (state: RunState): Effect.Effect<void, RewindNotAllowed> => {
  const { phase } = state.status
  return phase === "turn_started" || phase === "turn_prepared" || phase === "model_started"
    ? Effect.void
    : Effect.fail(new RewindNotAllowed({ runId: state.runId, phase }))
}

/**
 * Decides about the calls that were in flight, by the caller's `recover` option or else by the effects of the call.
 * Fails if a call has no decision, even if it belongs to a task below this run. Nothing runs before that, and nothing is
 * stored if another process launched the call after the host was asked.
 */
const recoveredCalls = Effect.fnUntraced(function* (
  run: Run,
  recover: NonNullable<Resumption["recover"]>,
  children: ReadonlyMap<string, RunState>
): Effect.fn.Return<Pick<Delta, "retried" | "resolved">, InFlightToolCalls | RunCancelled | FlushError> {
  const inFlight = run.state.currentTurn?.inFlight ?? []
  const given = new Map(Object.entries(recover))
  const childOf = (call: Call) => childRunId(run.state.currentTurn?.turnId ?? "", call) ?? call.callId
  const recoveryOf = (call: Call): Recovery =>
    given.get(call.callId) ?? (effectsOf(run, call) === "write" ? "fail" : "retry")
  const retried: Array<string> = []
  const resolved: Array<CallResult> = []
  const unknown: Array<string> = []
  for (const call of inFlight) {
    const recovery = recoveryOf(call)
    const child = children.get(childOf(call))
    if (recovery === "fail") unknown.push(call.callId)
    else if (recovery !== "retry") resolved.push(resolve(call, recovery.resolve, child))
    else retried.push(call.callId)
  }
  const known = new Set([...unknown, ...resolved.map(({ callId }) => callId)])
  const ended = new Set(inFlight.flatMap((call) => (known.has(call.callId) ? [childOf(call)] : [])))
  // Calls of a child that does not continue need no decision.
  const below = [...children].flatMap(([runId, child]) =>
    ended.has(runId) ? [] : (child.currentTurn?.inFlight ?? []).filter((call) => recoveryOf(call) === "fail")
  )
  if (below.length + unknown.length === 0) {
    return { ...(retried.length === 0 ? {} : { retried }), ...(resolved.length === 0 ? {} : { resolved }) }
  }
  const { agent, asked, state } = run
  if (asked !== undefined && !unknown.concat(below.map(({ callId }) => callId)).every((callId) => asked.has(callId))) {
    return yield* new AgentCrashError({ runId: state.runId, agentId: agent.name })
  }
  const callIds = [...(unknown.length === 0 ? [] : inFlight), ...below].map(({ callId }) => callId)
  // A rejected resume is stored and published as a failure of the run, which can be resumed again.
  return yield* failWith(run, new InFlightToolCalls({ runId: state.runId, callIds }))
})

/** Returns the given result of a call. The usage of its child run stays counted. */
const resolve = (call: Call, known: Exclude<Recovery, string>["resolve"], child: RunState | undefined): CallResult =>
  resultOf(call, { ...known, ...(child === undefined ? {} : { spent: spentBy(child) }) })
