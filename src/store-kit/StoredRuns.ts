/**
 * Reads runs from a store: the state of a run, its tree, the runs it was forked from, and its calls in flight.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Stream from "effect/Stream"
import type { Call } from "../Call.ts"
import { AgentMismatch, ConcurrentAppendError, RunNotFound, type StoreError } from "../KernelError.ts"
import type { ResumeOptions } from "../RunOptions.ts"
import type { RunRecord, RunState } from "../RunState.ts"
import { isNamed } from "../internal/agent/team.ts"
import { keyOf } from "../internal/state/state.ts"
import { childRunId } from "../Call.ts"
import { foldFrom } from "./StoreRules.ts"
import type { CallInFlight, RunStoreShape } from "../internal/store/runStoreTypes.ts"

/**
 * Returns the stored state of a run.
 *
 * @category running
 * @since 0.1.0
 */
export const stored = (store: RunStoreShape, runId: string): Effect.Effect<RunState, RunNotFound | StoreError> =>
  Effect.flatMap(store.load(runId), (found) =>
    Option.isNone(found) ? Effect.fail(new RunNotFound({ runId })) : Effect.succeed(found.value)
  )

/**
 * Returns the stored state of a run. Fails if the run is not at the given revision.
 *
 * @category running
 * @since 0.1.0
 */
export const storedAt = (
  store: RunStoreShape,
  runId: string,
  revision: number | undefined
): Effect.Effect<RunState, RunNotFound | ConcurrentAppendError | StoreError> =>
  Effect.flatMap(stored(store, runId), (state) =>
    revision === undefined || revision === state.revision
      ? Effect.succeed(state)
      : Effect.fail(new ConcurrentAppendError({ runId, expected: revision, actual: state.revision }))
  )

/**
 * Returns the stored state of a run that an agent is to resume. Fails if the run belongs to another agent, which may
 * have been handed to it, unless `as` says why this agent continues it.
 *
 * @category running
 * @since 0.1.0
 */
export const storedFor = (
  store: RunStoreShape,
  runId: string,
  given: { readonly name: string; readonly aliases: ReadonlyArray<string> },
  { as, revision }: ResumeOptions
): Effect.Effect<RunState, AgentMismatch | RunNotFound | ConcurrentAppendError | StoreError> =>
  Effect.flatMap(storedAt(store, runId, revision), (state) =>
    as !== undefined || isNamed(given, state.agent) || isNamed(given, state.handoff?.agent ?? state.agent)
      ? Effect.succeed(state)
      : Effect.fail(new AgentMismatch({ runId, agent: state.agent, given: given.name }))
  )

/**
 * Returns the stored children of a run by id: tasks of the plan of its open turn, called agents, and background calls.
 *
 * A pending task may also have a run, if a process resumed it and died before it stored the launch.
 *
 * @category running
 * @since 0.1.0
 */
export const storedTasks = Effect.fnUntraced(function* (
  store: RunStoreShape,
  { background = none, currentTurn, rootRunId, status }: RunState
): Effect.fn.Return<ReadonlyMap<string, RunState>, StoreError> {
  const found = new Map<string, RunState>()
  if (status.type === "completed") return found
  const { inFlight = none, pending: open = none, turnId = "" } = currentTurn ?? {}
  const idsOf = (calls: ReadonlyArray<Call>) => calls.flatMap((call) => childRunId(turnId, call) ?? none)
  let children = idsOf(background.concat(inFlight))
  const pending = idsOf(open)
  if (pending.length > 0) {
    // Most tasks of a plan were never started, so the tree is listed once.
    const known = new Set((yield* store.list({ rootRunId })).map(({ runId }) => runId))
    children = children.concat(pending.filter((runId) => known.has(runId)))
  }
  for (const runId of children) {
    const child = yield* store.load(runId)
    if (Option.isSome(child)) found.set(runId, child.value)
  }
  return found
})

/**
 * A run and all runs below it.
 *
 * @category models
 * @since 0.1.0
 */
export type RunTree = readonly [RunState, ...Array<RunState>]

/**
 * Returns a run with the children that its open turn waits for, recursively. An ended run waits for none.
 *
 * @category running
 * @since 0.1.0
 */
export const treeOf = (store: RunStoreShape, state: RunState): Effect.Effect<RunTree, StoreError> => {
  const below = Effect.flatMap(storedTasks(store, state), (tasks) =>
    Effect.forEach(tasks.values(), (task) => treeOf(store, task))
  )
  return Effect.map(below, (below) => [state, ...below.flat()])
}

/**
 * Returns the records of a run and of all runs below it, oldest run first.
 *
 * @category running
 * @since 0.1.0
 */
export const recordsOf = Effect.fnUntraced(function* (
  store: RunStoreShape,
  runId: string
): Effect.fn.Return<ReadonlyArray<RunRecord>, RunNotFound | StoreError> {
  const root = yield* store.head(runId)
  if (Option.isNone(root)) return yield* new RunNotFound({ runId })
  const tree = yield* store.list({ rootRunId: root.value.rootRunId })
  // The id of a child run begins with that of its parent.
  const below = tree.filter((head) => head.runId === runId || head.runId.startsWith(`${runId}:`))
  const journals = yield* Effect.forEach(below.toReversed(), (head) => Stream.runCollect(store.read(head.runId)))
  return journals.flat()
})

/**
 * Returns the state of a run after its first record, which names its origin. Later records are not read.
 *
 * @category running
 * @since 0.1.0
 */
export const beginningOf = (store: RunStoreShape, runId: string): Effect.Effect<RunState | undefined, StoreError> =>
  Effect.flatMap(Stream.runCollect(Stream.take(store.read(runId), 1)), (records) => foldFrom(undefined, records))

/**
 * Returns the root runs that a run was forked from, nearest first. Their media also belong to it.
 *
 * @category running
 * @since 0.1.0
 */
export const originsOf = Effect.fnUntraced(function* (
  store: RunStoreShape,
  state: RunState
): Effect.fn.Return<ReadonlyArray<string>, StoreError> {
  const origins = new Set<string>()
  let root: RunState | undefined = state
  while (root?.forkedFrom !== undefined) {
    const original: RunState | undefined = yield* beginningOf(store, root.forkedFrom.runId)
    if (original === undefined || origins.has(original.rootRunId)) break
    origins.add(original.rootRunId)
    root = original.parentRunId === undefined ? original : yield* beginningOf(store, original.rootRunId)
  }
  return [...origins]
})

/**
 * Returns the calls of a run and of the tasks below it that were started and have no result.
 *
 * @category running
 * @since 0.1.0
 */
export const inFlight = (
  store: RunStoreShape,
  runId: string
): Effect.Effect<ReadonlyArray<CallInFlight>, RunNotFound | StoreError> =>
  stored(store, runId).pipe(
    Effect.flatMap((state) => treeOf(store, state)),
    Effect.map((tree) => tree.flatMap(own))
  )

/** Returns the calls in flight of the run itself. An ended run has none. */
const own = (state: RunState): ReadonlyArray<CallInFlight> =>
  state.currentTurn === undefined || state.status.type === "completed"
    ? []
    : state.currentTurn.inFlight
        .filter(({ kind }) => kind !== "task" && kind !== "agent")
        .map((call) => ({ ...call, runId: state.runId, idempotencyKey: keyOf(state, call) }))

const none: ReadonlyArray<never> = []
