/**
 * Runs that wait for a worker: offered when they are submitted or answered (DR-22), without a kernel in between.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import type { KernelError, StoreError } from "../KernelError.ts"
import { ApprovalNotFound, type RunNotFound } from "../KernelError.ts"
import type { Approval, ApprovalAnswer, RunRecord, RunState } from "../RunState.ts"
import { advance } from "../RunState.ts"
import type * as RunStore from "../RunStore.ts"
import type { AnswerOptions } from "./options.ts"
import { stored, storedAt, storedTasks } from "./stored.ts"
import { unanswered } from "./turnFold.ts"

/** Lets any worker take a run up at once: a lease that has ended tells it from one somebody runs without any. */
export const offer = /*#__PURE__*/ Effect.fnUntraced(function* (
  store: RunStore.Shape,
  runId: string,
  workerId: string
): Effect.fn.Return<void, KernelError> {
  const now = yield* Clock.currentTimeMillis
  yield* store.acquire(runId, { workerId, expiresAt: now }, now)
})

/**
 * Records what a person decided, and offers the run to whoever runs it.
 *
 * Answers go to the runs that asked: the run itself, or tasks below it. Those
 * are told first, so that a run that goes on finds its tasks answered. One
 * answer that fits no open question, and none is recorded; nor is any
 * when the run is not at the revision that is meant (DR-6).
 */
export const answer = /*#__PURE__*/ Effect.fnUntraced(function* (
  store: RunStore.Shape,
  runId: string,
  answers: ReadonlyArray<ApprovalAnswer>,
  options: AnswerOptions
): Effect.fn.Return<void, KernelError> {
  const now = yield* Clock.currentTimeMillis
  const workerId = `${options.workerId ?? "local"}#${yield* Random.nextInt}`
  const root = yield* storedAt(store, runId, options.revision)
  const tree = yield* treeOf(store, root)
  const open = new Set(tree.flatMap(questionsOf))
  for (const { toolCallId } of answers) {
    if (!open.delete(toolCallId)) return yield* new ApprovalNotFound({ runId, toolCallId })
  }
  if (root.status.type === "completed") return
  // Whoever runs it now must not be disturbed; nobody else takes it up between the answers.
  yield* store.acquire(runId, { workerId, expiresAt: now + 10_000 }, now)
  yield* Effect.ensuring(
    Effect.forEach(
      tree.toReversed(),
      (state) => {
        const questions = questionsOf(state)
        const own = answers.filter(({ toolCallId }) => questions.includes(toolCallId))
        return state === root || own.length > 0 ? record(store, state, own, now, workerId) : Effect.void
      },
      { discard: true }
    ),
    Effect.ignore(store.acquire(runId, { workerId, expiresAt: now }, now))
  )
})

const record = (
  store: RunStore.Shape,
  state: RunState,
  answers: ReadonlyArray<ApprovalAnswer>,
  createdAt: number,
  workerId: string
): Effect.Effect<void, KernelError> => {
  const record: RunRecord = {
    runId: state.runId,
    revision: state.revision + 1,
    op: "resume",
    events: [],
    delta: { resumed: true, ...(answers.length === 0 ? {} : { answers }) },
    createdAt,
    workerId
  }
  return store.commit(record, advance(state, record))
}

/** The calls a run, and the tasks below it, wait with: nobody answered them yet. A run that has ended waits for nobody. */
export const questions = (
  store: RunStore.Shape,
  runId: string
): Effect.Effect<ReadonlyArray<Approval>, RunNotFound | StoreError> =>
  Effect.flatMap(stored(store, runId), (state) => questionsBelow(store, state))

/** The same, of a run that is in hand. */
export const questionsBelow = (
  store: RunStore.Shape,
  state: RunState
): Effect.Effect<ReadonlyArray<Approval>, StoreError> =>
  Effect.map(treeOf(store, state), (tree) =>
    tree.flatMap(({ approvals, status }) => (status.type === "completed" ? [] : unanswered(approvals)))
  )

/** A run and the tasks below it that have not ended. */
const treeOf = (store: RunStore.Shape, state: RunState): Effect.Effect<ReadonlyArray<RunState>, StoreError> => {
  if (state.status.type === "completed") return Effect.succeed([state])
  const below = Effect.flatMap(storedTasks(store, state), (tasks) =>
    Effect.forEach(tasks.values(), (task) => treeOf(store, task))
  )
  return Effect.map(below, (below) => [state, ...below.flat()])
}

/** The calls a run itself waits with, by id. */
export const questionsOf = ({ approvals }: RunState): ReadonlyArray<string> =>
  unanswered(approvals).map(({ toolCallId }) => toolCallId)
