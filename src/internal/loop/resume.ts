/**
 * How a stored run is taken up where it stands (DR-15 to DR-19), and how a run has others as its tasks (BP-61, DR-26):
 * a task that was cut off is taken up as well.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Call, CallResult } from "../../Call.ts"
import * as Calls from "../../Call.ts"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import type { KernelError, StoreError } from "../../KernelError.ts"
import { InFlightToolCalls, RewindNotAllowed, RunBusy, RunPaused } from "../../KernelError.ts"
import type { Answer, Delta, RunRecord, RunResult, RunState, Turn } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import { born, finish, take, traced } from "./start.ts"
import { resultOf } from "../words/callResult.ts"
import { commit, flush, locked, patiently, stillLast } from "./commit.ts"
import { effectsOf } from "./dispatch.ts"
import type { JsonObject } from "../base/json.ts"
import { conclude, failWith, restoreOutput } from "./loop.ts"
import { answerTasks, checkAnswers, treeOf, withdraw } from "./queue.ts"
import { type AnyAgent, type Ground, now, type Run, stepOf } from "./run.ts"
import { ownContext } from "./askHooks.ts"
import { spentBy, stored } from "../store/stored.ts"
import * as Tree from "./sharedBudget.ts"

/**
 * What is known of a call that was in flight when its run stopped (DR-17).
 *
 * `retry` runs it again, under the same id and `idempotencyKey`. `resolve` gives the outcome it is known to have had,
 * and runs nothing. `fail` says that nobody knows: the resume fails with `InFlightToolCalls`, and nothing is run
 * (DR-16).
 *
 * @example
 * const replay = { [callId]: { resolve: { output: [Content.text("sent")] } } }
 */
export type Recovery = "retry" | "fail" | { readonly resolve: Pick<CallResult, "output"> | Pick<CallResult, "error"> }

/** How a run is taken up again. */
export interface Resume {
  /** Changes the context of the run, and of its tasks that go on (DR-9). */
  readonly context?: JsonObject | undefined
  /**
   * What is known of the calls that were in flight, by their ids. Of the others those that read or are idempotent run
   * again, and the rest count as `fail` (DR-17).
   */
  readonly recover?: { readonly [callId: string]: Recovery } | undefined
  /** Answers to calls that wait for a person; what is not answered waits on (DR-22). */
  readonly answers?: ReadonlyArray<Answer> | undefined
  /** Prepare the turn again instead of asking with the committed prompt (DR-19). */
  readonly rewind?: boolean | undefined
}

/**
 * Takes a stored run up where it stands. A completed one gives its result and commits nothing.
 *
 * The tasks that were cut off or paused go on where their own journals end. What
 * the caller says about their calls and questions, and of the context, is for them, too.
 */
export const resume = (
  ground: Ground,
  state: RunState,
  how: Resume
): Effect.Effect<RunResult<unknown>, KernelError> => {
  const whole = takeUp(ground, state, how)
  // What ended before was counted then.
  return state.status.type === "completed" ? whole : traced(ground, state, whole)
}

const takeUp = Effect.fnUntraced(function* (
  ground: Ground,
  state: RunState,
  how: Resume
): Effect.fn.Return<RunResult<unknown>, KernelError> {
  const tree = yield* treeOf(ground.store, state)
  const own = tree.filter((task) => task.parentRunId === state.runId)
  const children = new Map(own.map((task) => [task.runId, task] as const))
  // Read once for all of them: a plan may have thousands, and they fill the journal.
  const lives = own.length === 0 ? [] : yield* livesOf(ground.store, state)
  const spawn = again(ground, children, how, lives)
  const run = take({ ...ground, agent: inDialectOf(state, ground.agent), spawn }, state)
  const misread = restoreOutput(run)
  if (state.status.type === "completed") return yield* misread === undefined ? retell(run) : Effect.fail(misread)
  const isOffered = yield* notHeld(run)
  // A resume that is refused is a failure of the run: told, stored, and open to the next try.
  if (misread !== undefined) return yield* failWith(run, misread)
  yield* checkAnswers(tree, how.answers ?? [])
  if (how.rewind === true) yield* checkRewind(state)
  const verdicts = yield* verdictsOf(run, how.recover ?? {}, children)
  // The journal of a run counts only children that ended.
  for (const child of children.values()) Tree.count(run.tree, Tree.spentOf(child))
  const said = how.context === undefined ? {} : { context: ownContext(how.context) }
  const delta: Delta = {
    resumed: true,
    ...said,
    ...(how.answers === undefined ? {} : { answers: how.answers }),
    ...(how.rewind === true ? { rewind: true } : {}),
    ...verdicts
  }
  // Tasks first: a run that goes on finds them answered, also in another life (DR-7).
  yield* answerTasks({ ...ground, now: now(ground), said }, tree, how.answers ?? [])
  yield* commit(run, "resume", [], delta)
  // Nobody else takes it up from here on.
  yield* flush(run)
  if (isOffered) yield* patiently(run, run.state, withdraw(run.store, run.state.runId, run.workerId))
  return yield* finish(run)
})

/** The agent in the dialect its run began in: a conversation is not half of one and half of the other. */
const inDialectOf = (state: RunState, agent: AnyAgent): AnyAgent => {
  const open = state.status.phase === "turn_started" ? undefined : state.currentTurn
  const dialect = (state.turns[0] ?? open)?.dialect ?? agent.dialect
  return dialect === agent.dialect ? agent : { ...agent, dialect }
}

/** The end of a run that ended before, told once more to whoever asks now. */
const retell = (run: Run): Effect.Effect<RunResult<unknown>, KernelError> =>
  Effect.tap(conclude(run), (result) =>
    Effect.sync(() => {
      const { depth, revision, rootRunId, runId, status, taskId } = run.state
      if (status.type !== "completed") return
      const { createdAt: at, phase: _phase, type: _type, ...end } = status
      const scope = { runId, rootRunId, step: stepOf(run.state), depth, taskId, at, revision }
      run.tell?.({ ...scope, ...end, type: "run_completed", ...(depth === 0 ? { result } : {}) })
    })
  )

/** Fails when another holds the run; tells whether it is offered to whoever comes. */
const notHeld = (run: Run): Effect.Effect<boolean, KernelError> =>
  Effect.flatMap(run.store.head(run.state.runId), (head) => {
    const lease = Option.getOrUndefined(head)?.lease
    if (lease === undefined) return Effect.succeed(false)
    // Who must stop already takes no offer back: nobody would come for the run it may not go on with.
    if (lease.expiresAt <= now(run)) return Effect.succeed(run.stop?.() === undefined)
    return lease.workerId === run.holder
      ? Effect.succeed(false)
      : Effect.fail(new RunBusy({ runId: run.state.runId, ...lease }))
  })

const checkRewind = (state: RunState): Effect.Effect<void, RewindNotAllowed> => {
  const { phase } = state.status
  return phase === "turn_started" || phase === "turn_prepared" || phase === "model_started"
    ? Effect.void
    : Effect.fail(new RewindNotAllowed({ runId: state.runId, phase }))
}

/**
 * What becomes of the calls that were in flight: what the caller says, else what
 * their skill declares. One without a verdict stops the resume, be it of a task
 * below this run; nothing is run (DR-16).
 */
const verdictsOf = Effect.fnUntraced(function* (
  run: Run,
  replay: NonNullable<Resume["recover"]>,
  children: ReadonlyMap<string, RunState>
): Effect.fn.Return<Pick<Delta, "retried" | "resolved">, KernelError> {
  const inFlight = run.state.currentTurn?.inFlight ?? []
  const said = new Map(Object.entries(replay))
  const verdictOf = (call: Call): Recovery =>
    said.get(call.callId) ?? (effectsOf(run, call) === "write" ? "fail" : "retry")
  const retried: Array<string> = []
  const resolved: Array<CallResult> = []
  // Nobody asks about the calls of a task that does not go on.
  const over = new Set<string>()
  for (const call of inFlight) {
    const verdict = verdictOf(call)
    if (verdict === "retry") retried.push(call.callId)
    else {
      over.add(call.callId)
      if (verdict !== "fail") resolved.push(resolve(call, verdict.resolve, children.get(call.callId)))
    }
  }
  const below: Array<string> = []
  for (const [callId, child] of children) {
    if (over.has(callId)) continue
    for (const own of child.currentTurn?.inFlight ?? []) if (verdictOf(own) === "fail") below.push(own.callId)
  }
  if (below.length === 0 && over.size === resolved.length) {
    return { ...(retried.length === 0 ? {} : { retried }), ...(resolved.length === 0 ? {} : { resolved }) }
  }
  const own = over.size === resolved.length ? [] : inFlight.map((call) => call.callId)
  const error = new InFlightToolCalls({ runId: run.state.runId, callIds: [...own, ...below] })
  // A resume that is refused is a failure of the run: told, stored, and open to the next try.
  return yield* failWith(run, error)
})

/** The given result of a call. What a task used until then stays used. */
const resolve = (
  call: Call,
  known: Pick<CallResult, "output"> | Pick<CallResult, "error">,
  child: RunState | undefined
): CallResult => resultOf(call, { ...known, ...(child === undefined ? {} : { spent: spentBy(child) }) })

// ---------------------------------------------------------------- children

/** Runs a task as a child: a whole run one level deeper, with its own journal (BP-61, DR-26). */
export const spawn: Ground["spawn"] = (parent, call, input) => {
  const birth = {
    runId: call.callId,
    rootRunId: parent.state.rootRunId,
    parentRunId: parent.state.runId,
    depth: parent.state.depth + 1,
    taskId: call.name ?? undefined,
    history: [],
    input,
    context: parent.state.context
  }
  return Effect.matchEffect(born(parent, birth), {
    onSuccess: (child) =>
      Effect.map(traced(parent, birth, finish(child)), (result) => ended(call, result, child.state.turns)),
    // Whoever had this run before was only stopped, and began the task when it woke: it is there to go on with.
    onFailure: (error) =>
      error._tag !== "RunExists"
        ? Effect.fail(error)
        : Effect.flatMap(stored(parent.store, birth.runId), (child) => {
            if (child.parentRunId !== birth.parentRunId) return Effect.fail(error)
            Tree.count(parent.tree, Tree.spentOf(child))
            return Effect.flatMap(livesOf(parent.store, parent.state), (lives) =>
              goOnWith(parent, spawn, call, {}, lives)
            )
          })
  })
}

/** A task cut off in an earlier life of its parent goes on where its own journal ends; others are spawned. */
const again =
  (
    ground: Ground,
    children: ReadonlyMap<string, RunState>,
    how: Resume,
    lives: ReadonlyArray<RunRecord>
  ): Ground["spawn"] =>
  (parent, call, input) =>
    children.has(call.callId) ? goOnWith(parent, ground.spawn, call, how, lives) : ground.spawn(parent, call, input)

/**
 * Goes on with a task as it is stored now: its questions may have been answered since its parent was taken up.
 * A pause its parent was not there to hear is heard now, as it would have been (DR-9).
 */
const goOnWith = Effect.fnUntraced(function* (
  parent: Run,
  spawn: Ground["spawn"],
  call: Call,
  how: Resume,
  lives: ReadonlyArray<RunRecord>
): Effect.fn.Return<CallResult, KernelError> {
  const child = yield* stored(parent.store, call.callId)
  // Who was stopped meanwhile, and has the parent no more, takes its task from nobody.
  yield* locked(
    parent,
    Effect.suspend(() => stillLast(parent.store, parent.state))
  )
  // One that has ended takes nothing more.
  const said = child.status.type === "completed" ? {} : yield* saidSince(parent.store, child, lives)
  const context = { ...said, ...how.context }
  const result = yield* resume({ ...parent, spawn }, child, { recover: how.recover, context })
  const { turns } = yield* stored(parent.store, child.runId)
  return ended(call, result, turns)
})

/** What a run stored but for its phases: where each of its lives goes on, launches its tasks, or pauses. */
const livesOf = (
  store: RunStore.RunStoreShape,
  { runId }: RunState
): Effect.Effect<ReadonlyArray<RunRecord>, StoreError> =>
  Effect.map(Stream.runCollect(store.read(runId)), (records) => records.filter(({ op }) => op !== "phase"))

/**
 * What was said of the context to a run since the life in which its task stopped; the task's own pause when the run did
 * not pause since. Whoever said it may have been cut off before the task heard of it (DR-7).
 */
const saidSince = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  { revision, runId, status, updatedAt }: RunState,
  lives: ReadonlyArray<RunRecord>
): Effect.fn.Return<JsonObject, StoreError | RunPaused> {
  const [last] = yield* Stream.runCollect(store.read(runId, revision - 1))
  let isSince = false
  let said: JsonObject | undefined = status.type === "paused" ? undefined : {}
  for (const { createdAt, delta, op, workerId } of lives) {
    const isSame = workerId === last?.workerId
    // Who resumed the task by itself never had the run.
    isSince ||= isSame || createdAt > updatedAt
    if (said && isSince && !isSame && delta.resumed) said = { ...said, ...delta.context }
    if (isSince && op === "pause") said ??= {}
  }
  if (status.type === "paused" && !said) return yield* new RunPaused({ runId, ...status })
  return said ?? {}
})

const ended = (call: Call, result: RunResult<unknown>, turns: ReadonlyArray<Turn>): CallResult =>
  Calls.succeeded(call, [Contents.text(result.text), ...mediaOf(turns)], {
    spent: { usage: result.usage, costUsd: result.costUsd, turns: result.turns }
  })

/** The media a child made: named in its result, so that later tasks can use them (W-21). */
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
