/**
 * A run while it runs: its state, what it stands on, and the one way both move.
 *
 * `commit` is the only place where state advances: it makes the record, stores
 * it, and tells its events, in that order. A store that takes several revisions
 * at once gets them at the next barrier: before a model is asked, a call is
 * launched, a hook or a policy is heard, and when the run stops. `settle` and
 * `ask` are the two places where hooks are asked (DR-4, DR-8).
 *
 * @since 0.1.0
 */
import * as Arr from "effect/Array"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Semaphore from "effect/Semaphore"
import type { Agent } from "../Agent.ts"
import type { Call, CallResult } from "../Call.ts"
import type { Content } from "../Content.ts"
import type { HookArgs, HookResult, Hooks } from "../Hooks.ts"
import type * as InstructionBuilder from "../InstructionBuilder.ts"
import type { ExtensionFailed, KernelError, MiddlewareTermination } from "../KernelError.ts"
import { ConcurrentAppendError, StoreError } from "../KernelError.ts"
import type { Limits } from "../Limits.ts"
import type * as MediaStore from "../MediaStore.ts"
import type { Message } from "../Message.ts"
import type { Middleware } from "../Middleware.ts"
import type { Model } from "../Model.ts"
import type { PolicyScope, PolicyShape } from "../Policy.ts"
import type { PromptPipelineShape, TokenCount } from "../PromptPipeline.ts"
import type { ProtocolRegistry } from "../ProtocolRegistry.ts"
import type { ProviderShape } from "../Provider.ts"
import type { Redactor } from "../Redaction.ts"
import type { CallEvent, PhaseEvent, RunEvent, RunScope, TaskEvent, TurnEvent } from "../RunEvent.ts"
import type { Delta, RunRecord, RunSource, RunState, Stop, Turn } from "../RunState.ts"
import { answer as answerOf, result as resultOf } from "../RunState.ts"
import type * as RunStore from "../RunStore.ts"
import type { AnySkill } from "../Skill.ts"
import type { StreamPart } from "../StreamPart.ts"
import type { SkillRegistry } from "../SkillRegistry.ts"
import type * as Telemetry from "../Telemetry.ts"
import { advance, seal, turnLog, withContext } from "./advance.ts"
import { extensionError } from "./extension.ts"
import { isJsonObject, type Json, type JsonObject } from "./json.ts"
import { freeze, take } from "./snapshot.ts"
import type { Tree } from "./tree.ts"

/** Any agent, its instructions already closed over what they need. */
export type AnyAgent = Agent<unknown, AnySkill<unknown>, never>

/** What a run stands on. Process-local, never stored (DR-2). */
export interface Ground {
  readonly agent: AnyAgent
  readonly model: Model
  readonly provider: ProviderShape
  readonly store: RunStore.Shape
  readonly skills: SkillRegistry["Service"]
  readonly protocols: ProtocolRegistry["Service"]
  readonly media: MediaStore.Shape
  readonly hooks: Hooks
  readonly middleware: ReadonlyArray<Middleware>
  readonly policy: PolicyShape | undefined
  readonly pipeline: PromptPipelineShape
  readonly builder: InstructionBuilder.Builder
  readonly counter: TokenCount | undefined
  readonly telemetry: Telemetry.Shape | undefined
  readonly redactor: Redactor | undefined
  readonly limits: Limits
  readonly clock: Clock.Clock
  /** Who runs: the owner of leases. */
  readonly holder: string
  /** Who writes: another one each time a run is begun or resumed. */
  readonly workerId: string
  /** Names of skills the host allows at all; undefined for every one (BP-65). */
  readonly allowed: ReadonlyArray<string> | undefined
  /** Every part of a reply is told, not only those no block event tells (DR-24). */
  readonly parts: boolean
  /** What the whole tree of runs has used, and who hears of it. */
  readonly tree: Tree
  /** Undefined where nobody listens: then no event is made. */
  readonly tell: ((event: RunEvent) => void) | undefined
  /** Whether the consumer's buffer is full: a moment to let it read. */
  readonly isFull: () => boolean
  /** Tells at once what `body` tells, when it has ended. */
  readonly batch: <A>(body: () => A) => A
  /** Asked before each step: why the run must not go on in this process, if so. */
  readonly stop: (() => KernelError | undefined) | undefined
  /** What is said to the root run while it runs. */
  readonly steering: Steering | undefined
  /** Runs a task as a child of a run and gives its result. */
  readonly spawn: (parent: Run, call: Call, input: ReadonlyArray<Content>) => Effect.Effect<CallResult, KernelError>
  readonly onTaskComplete: ((task: TaskReport) => Effect.Effect<void>) | undefined
}

/** Messages that wait for the next turn of a run. */
export interface Steering {
  readonly isWaiting: () => boolean
  readonly take: Effect.Effect<ReadonlyArray<Message>, KernelError>
}

/** What the host is told when a task ends (BP-103). */
export interface TaskReport {
  readonly taskId: string
  /** The task's own words, without what it depends on. */
  readonly input: string
  readonly result: string | null
  readonly error: string | null
  readonly durationMs: number
}

/** A run in this process. */
export interface Run extends Ground {
  state: RunState
  /** Serialises commits when several calls may finish at once. */
  lock: Semaphore.Semaphore | undefined
  /** The settle hook of this phase ran; the next commit records it (DR-8). */
  settled: boolean
  /** What hooks merged into the context since the last commit. */
  changed: JsonObject | undefined
  /** Set by onTurnCompleted: one more turn, though the model is done (DR-10). */
  goesOn: boolean
  /** The answer as the agent's output schema decoded it. */
  output: unknown
  /** The provider's parts of the last reply, kept for its hook only (DR-27). */
  raw: ReadonlyArray<StreamPart>
  /** The stop a hook asked for while other calls were under way: the next commit keeps it. */
  deferred: Stop | undefined
  /** What waits for the next barrier, where the store takes several revisions at once. */
  readonly outbox: Outbox | undefined
}

/** Revisions that are not stored yet, and what is told once they are. */
export interface Outbox {
  records: Array<RunRecord>
  states: Array<RunState>
  events: Array<RunEvent>
}

/** What can go wrong around a commit: nothing else may be tried on this run then. */
export type CommitError = ConcurrentAppendError | StoreError

/** The facts of an event that its run fills in. */
export type Draft = PhaseEvent extends infer E
  ? E extends PhaseEvent
    ? Omit<E, keyof RunScope | "revision">
    : never
  : never

type LiveOf<E> = E extends RunScope ? Omit<E, keyof RunScope> : never
/** A live event without its scope. */
export type Live =
  | LiveOf<TurnEvent | CallEvent | TaskEvent>
  | { readonly type: "skill_execute"; readonly skill: string; readonly callId: string; readonly input: unknown }
  | {
      readonly type: "skill_result"
      readonly skill: string
      readonly callId: string
      readonly output: unknown
      readonly durationMs: number
      readonly metadata?: JsonObject
      readonly truncated?: boolean
    }

export const now = (run: Ground): number => run.clock.currentTimeMillisUnsafe()

/** The step events of this moment belong to. */
export const stepOf = (state: RunState): number =>
  state.currentTurn === undefined ? Math.max(0, turnLog(state).length - 1) : state.currentTurn.turn - 1

/** Publishes something that is not part of the journal. */
export const tell = (run: Run, event: Live): void => {
  if (run.tell === undefined) return
  const { depth, rootRunId, runId, taskId } = run.state
  const scope = { runId, rootRunId, step: stepOf(run.state), depth, taskId, at: now(run) }
  const told: RunEvent = Object.assign(scope, event)
  // It comes after what happened before it.
  if (isWaiting(run.outbox)) run.outbox.events.push(told)
  else run.tell(told)
}

const nothing: Delta = {}

/**
 * One commit: the record, the store, the new state, the events.
 *
 * What is in hand is stored even while the run is being interrupted (DR-7).
 * Where it may wait for the next barrier, the state has moved when this
 * returns: a dozen steps of a turn cost no effect of their own. So it is called
 * when it is due, not before.
 */
export const commit = (
  run: Run,
  op: RunRecord["op"],
  events: ReadonlyArray<Draft>,
  delta: Delta = nothing
): Effect.Effect<void, CommitError> => {
  const { lock, outbox } = run
  if (lock !== undefined) return lock.withPermits(1)(Effect.uninterruptible(write(run, op, events, delta)))
  if (outbox === undefined) return Effect.uninterruptible(write(run, op, events, delta))
  const record = recordOf(run, op, events, delta)
  enter(run, advance(run.state, record))
  outbox.records.push(record)
  outbox.states.push(run.state)
  if (run.tell !== undefined) announce(run, record, outbox.events)
  return Effect.void
}

/**
 * A barrier: what waits is stored and told, then the run may do what others see.
 *
 * A run whose store takes each revision by itself has nothing waiting here.
 */
export const flush = (run: Run): Effect.Effect<void, CommitError> =>
  run.outbox === undefined ? Effect.void : Effect.uninterruptible(Effect.suspend(() => send(run)))

const send = (run: Run): Effect.Effect<void, CommitError> => {
  const { outbox, state, store } = run
  if (outbox === undefined || store.commitAll === undefined) return Effect.void
  const { events, records, states } = outbox
  if (!Arr.isArrayNonEmpty(records) || !Arr.isArrayNonEmpty(states)) return Effect.void
  outbox.records = []
  outbox.states = []
  const sent = patiently(run, state, store.commitAll(records, states))
  if (run.tell === undefined) return sent
  outbox.events = []
  return Effect.map(sent, () => tellAll(run, events))
}

const tellAll = (run: Run, events: ReadonlyArray<RunEvent>): void => {
  if (run.tell !== undefined) for (const event of events) run.tell(event)
}

const isWaiting = (outbox: Outbox | undefined): outbox is Outbox => outbox !== undefined && outbox.records.length > 0

/** The body of a commit, for callers that hold the lock already. */
export const write = (
  run: Run,
  op: RunRecord["op"],
  events: ReadonlyArray<Draft>,
  delta: Delta
): Effect.Effect<void, CommitError> =>
  Effect.suspend(() => {
    const record = recordOf(run, op, events, delta)
    const state = advance(run.state, record)
    return Effect.map(patiently(run, record, run.store.commit(record, state)), () => {
      enter(run, state)
      if (run.tell !== undefined) tellAll(run, announce(run, record, []))
    })
  })

/** From here on the run is where its record says. */
const enter = (run: Run, state: RunState): void => {
  run.state = state
  run.settled = false
  run.changed = undefined
}

/** Adds what a record has to tell. */
const announce = (run: Run, { events }: RunRecord, told: Array<RunEvent>): ReadonlyArray<RunEvent> => {
  for (const event of events) told.push(event.type === "run_completed" ? withResult(run, event) : event)
  return told
}

const recordOf = (run: Run, op: RunRecord["op"], events: ReadonlyArray<Draft>, delta: Delta): RunRecord => {
  const at = now(run)
  const { runId } = run.state
  const revision = run.state.revision + 1
  const [first] = events
  const step = first?.type === "turn_started" ? turnLog(run.state).length : stepOf(run.state)
  return {
    runId,
    revision,
    op,
    // Nearly all records have one event: no list to fill, no closure to fill it.
    events:
      events.length === 1 && first !== undefined
        ? [scoped(run.state, step, at, first)]
        : events.map((event) => scoped(run.state, step, at, event)),
    delta: run.settled || run.changed !== undefined || run.deferred !== undefined ? pending(run, delta) : delta,
    createdAt: at,
    workerId: run.workerId
  }
}

/** An event of the record that follows a state. The fields all events share come first: such an object is quick to make. */
const scoped = (state: RunState, step: number, at: number, event: Draft): PhaseEvent => {
  const { depth, revision, rootRunId, runId, taskId } = state
  return Object.assign({ runId, rootRunId, step, depth, taskId, at, revision: revision + 1 }, event)
}

/**
 * Sends what a store did not take, or did not acknowledge, a few times more: the
 * same record once more is no second one. Without this, every hiccup of a
 * store would leave a call in flight that nobody knows the outcome of.
 */
export const patiently = <E>(
  ground: Pick<Ground, "limits" | "store">,
  last: { readonly runId: string; readonly revision: number },
  write: Effect.Effect<void, E>,
  waits: ReadonlyArray<number> = [50, 250]
): Effect.Effect<void, E | StoreError | ConcurrentAppendError> =>
  Effect.catchIf(inTime(write, ground.limits.commitMs), isPassing, (error) => {
    const [wait, ...rest] = waits
    if (wait === undefined) return Effect.fail(error)
    const again = Effect.andThen(Effect.sleep(wait), patiently(ground, last, write, rest))
    // While it waited, another may have taken the run up from that very record.
    return Effect.andThen(again, stillLast(ground.store, last))
  })

/**
 * A write that is given up when it takes too long: nothing interrupts a run that commits, so a store that
 * hangs would hold it for ever. It has a fiber of its own, for one that cannot be interrupted is left behind.
 */
const inTime = <E>(write: Effect.Effect<void, E>, limit: number): Effect.Effect<void, E | StoreError> =>
  Effect.flatMap(Effect.forkDetach(Effect.interruptible(write), { startImmediately: true }), (fiber) => {
    // Most are done by now: a clock is set only for those that are not.
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return exit
    return Effect.timeoutOrElse(Fiber.join(fiber), {
      duration: limit,
      orElse: () => {
        fiber.interruptUnsafe()
        return Effect.fail(
          new StoreError({ operation: "commit", reason: "timeout", detail: `it took longer than ${limit} ms` })
        )
      }
    })
  })

const stillLast = (
  store: RunStore.Shape,
  { revision, runId }: { readonly runId: string; readonly revision: number }
): Effect.Effect<void, StoreError | ConcurrentAppendError> =>
  Effect.flatMap(store.head(runId), (head) => {
    const actualSeq = Option.isSome(head) ? head.value.revision : 0
    return actualSeq === revision
      ? Effect.void
      : Effect.fail(new ConcurrentAppendError({ runId, expectedSeq: revision - 1, actualSeq }))
  })

const isPassing = (error: unknown): error is StoreError =>
  error instanceof StoreError && (error.reason === "unavailable" || error.reason === "timeout")

/** The result is computed from the journal, so it is told but not kept in it (AC-21). */
const withResult = (run: Run, event: Extract<PhaseEvent, { type: "run_completed" }>): PhaseEvent =>
  answerOf(run.state) === undefined ? event : { ...event, result: resultOf(run.state, run.output) }

const pending = (run: Run, delta: Delta): Delta => ({
  ...(run.settled ? { settled: true } : {}),
  ...delta,
  ...(run.changed === undefined && delta.context === undefined
    ? {}
    : { context: { ...run.changed, ...delta.context } }),
  ...(run.deferred === undefined || run.deferred === run.state.deferred ? {} : { deferred: run.deferred })
})

/** The turn that is open, which every caller of this knows to be there. */
export const openTurn = (run: Run): Turn => {
  if (run.state.currentTurn === undefined) throw new Error(`run ${run.state.runId} has no open turn`)
  return run.state.currentTurn
}

export const policyScope = (run: Run): PolicyScope => ({
  runId: run.state.runId,
  rootRunId: run.state.rootRunId,
  agent: run.agent.name,
  depth: run.state.depth,
  context: run.state.context
})

// ---------------------------------------------------------------- hooks

/** What a hook is given: frozen at every depth, so that nothing it does to it reaches the run (DR-2). */
export const hookArgs = <More extends object>(run: Run, more: More): HookArgs & More =>
  freeze({
    state: seal(run.state),
    turn: run.state.currentTurn ?? turnLog(run.state).last(),
    context: run.state.context,
    commitKey: `${run.state.runId}:${run.state.revision}`,
    ...more
  })

/** Asks a hook about what is stored; its context change is part of the state from here on. */
export const ask = <A>(
  run: Run,
  name: keyof Hooks,
  hook: () => Effect.Effect<HookResult<A> | void, unknown>
): Effect.Effect<HookResult<A>, ExtensionFailed | MiddlewareTermination | CommitError> =>
  Effect.flatMap(flush(run), () =>
    Effect.map(
      Effect.mapError(hook(), (error) => extensionError(name, error)),
      (result) => {
        if (result === undefined) return {}
        if (result.context !== undefined) {
          const context = ownContext(result.context)
          run.changed = { ...run.changed, ...context }
          run.state = withContext(run.state, { ...run.state.context, ...context })
        }
        return result
      }
    )
  )

/** A copy of a context that nobody else can change; what is no JSON is left to the store to refuse. */
export const ownContext = (context: JsonObject): JsonObject => {
  const copy = take(context)
  return Result.isSuccess(copy) && isJsonObject(copy.success) ? copy.success : context
}

/**
 * Goes on after the settle hook of the phase just committed, which runs once;
 * does not when the hook paused or ended the run.
 */
export const settle = <More extends object>(
  run: Run,
  name: keyof Hooks,
  hook: ((args: HookArgs & More) => Effect.Effect<HookResult | void, unknown>) | undefined,
  more: More,
  next: (run: Run) => Effect.Effect<void, KernelError>
): Effect.Effect<void, KernelError> => {
  if (hook === undefined || run.settled || run.state.settledRevision >= run.state.phaseRevision) return next(run)
  // A failing hook has been asked too, and is not asked again (DR-8).
  run.settled = true
  return Effect.flatMap(
    ask(run, name, () => hook(hookArgs(run, more))),
    ({ control }) => {
      if (control === undefined) return next(run)
      if (control.type !== "continue") return obey(run, control)
      run.goesOn = name === "onTurnCompleted"
      return next(run)
    }
  )
}

/** Pauses or finishes the run as a hook asked. */
export const obey = (run: Run, control: Stop): Effect.Effect<void, KernelError> =>
  control.type === "pause"
    ? pause(run, control.reason, control.metadata ?? null)
    : complete(run, "caller", control.reason, control.metadata)

/** Pauses the run where it stands (DR-9). */
export const pause = (
  run: Run,
  reason: string,
  metadata: Json,
  delta: Delta = nothing
): Effect.Effect<void, KernelError> =>
  Effect.andThen(
    commit(run, "pause", [{ type: "paused", reason, metadata }], delta),
    observePause(run, reason, metadata)
  )

/** Tells the observer; what it does wrong is logged and changes nothing (DR-8). */
export const observePause = (run: Run, reason: string, metadata: Json): Effect.Effect<void, CommitError> => {
  const hook = run.hooks.onPause
  return hook === undefined
    ? Effect.void
    : Effect.flatMap(flush(run), () =>
        Effect.catchCause(hook(hookArgs(run, { reason, metadata })), (cause) =>
          Effect.logWarning("onPause failed", cause)
        )
      )
}

/** Ends the run: onRunCompleted may pause this, but not undo it (DR-10). */
export const complete = /*#__PURE__*/ Effect.fnUntraced(function* (
  run: Run,
  source: RunSource,
  reason?: string | undefined,
  metadata?: Json | undefined
) {
  const end = { source, ...(reason === undefined ? {} : { reason }), ...(metadata === undefined ? {} : { metadata }) }
  const hook = run.hooks.onRunCompleted
  if (hook !== undefined) {
    const result = yield* ask(run, "onRunCompleted", () => hook(hookArgs(run, { source, reason })))
    if (result.control?.type === "pause") {
      return yield* pause(run, result.control.reason, result.control.metadata ?? null, { completing: end })
    }
  }
  yield* commit(run, "phase", [{ type: "run_completed", ...end }])
})
