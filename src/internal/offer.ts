/**
 * Runs that wait for a worker: offered when they are submitted or answered (DR-22), without a kernel in between.
 *
 * @since 0.1.0
 */
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type { KernelError } from "../KernelError.ts"
import { ApprovalNotFound, RunNotFound } from "../KernelError.ts"
import type { ApprovalAnswer, RunRecord, RunState } from "../RunState.ts"
import { advance } from "../RunState.ts"
import type * as RunStore from "../RunStore.ts"

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
 * answer that fits no open question, and none is recorded.
 */
export const answer = /*#__PURE__*/ Effect.fnUntraced(function* (
  store: RunStore.Shape,
  runId: string,
  answers: ReadonlyArray<ApprovalAnswer>,
  by: string
): Effect.fn.Return<void, KernelError> {
  const now = yield* Clock.currentTimeMillis
  const workerId = `${by}#${yield* Random.nextInt}`
  const tree = yield* treeOf(store, runId)
  const [root] = tree
  if (root === undefined) return yield* new RunNotFound({ runId })
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

/** A run and the tasks below it that have not ended. */
const treeOf = (store: RunStore.Shape, runId: string): Effect.Effect<ReadonlyArray<RunState>, KernelError> =>
  Effect.flatMap(store.load(runId), (found) => {
    if (Option.isNone(found)) return Effect.succeed([])
    if (found.value.status.type === "completed") return Effect.succeed([found.value])
    const tasks = (found.value.currentTurn?.inFlight ?? []).filter((call) => call.kind === "task")
    return Effect.map(
      Effect.forEach(tasks, (call) => treeOf(store, call.toolCallId)),
      (below) => [found.value, ...below.flat()]
    )
  })

export const questionsOf = (state: RunState): ReadonlyArray<string> =>
  state.approvals.flatMap((approval) => (approval.answer === undefined ? [approval.toolCallId] : []))
