/**
 * The queue of runs that wait for a worker. A run is offered when it is submitted or answered, which needs no kernel.
 */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type { AnswerError, ConcurrentAppendError, OfferError, QuestionsError, StoreError } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { Answer, Delta, GivenAnswer, OpenQuestion, Question, RunRecord, RunState } from "../../RunState.ts"
import { advance } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import type { AnswerOptions } from "../../RunOptions.ts"
import { randomId } from "../../kit/randomId.ts"
import type { Environment } from "../run/run.ts"
import { emitOffer } from "../../store-kit/Offers.ts"
import { patient } from "../../store-kit/internal/storeGuard.ts"
import { type RunTree as Tree, stored, storedAt, treeOf } from "../../store-kit/StoredRuns.ts"
import { isOwnLease } from "../run/ownLease.ts"
import { cancelled } from "../run/conclude.ts"
import { agentName, unanswered } from "../state/state.ts"
import { decided, type Giver } from "./answers.ts"

/** Offers a run to any worker. An expired lease marks it as queued; a run without any lease may be running. */
export const offer = (
  store: RunStore.RunStoreShape,
  runId: string,
  workerId: string
): Effect.Effect<void, OfferError> => store.acquire(runId, { workerId, lease: 0 })

/** Runs an effect if this worker holds the run. Otherwise does nothing. */
export const ifHeld = <E>(
  store: RunStore.RunStoreShape,
  runId: string,
  workerId: string,
  then: (head: RunStore.RunHead) => Effect.Effect<void, E>
): Effect.Effect<void, E | StoreError> =>
  Effect.flatMap(store.head(runId), (found) => {
    const head = Option.getOrUndefined(found)
    return head?.lease?.workerId === workerId ? then(head) : Effect.void
  })

/**
 * Withdraws an offer for a caller that executes the run without a lease. Fails if a worker claimed the run first. Takes
 * the lease for a moment and releases it, so no expired lease remains. A process that is stopped in between keeps the run
 * from others no longer than that.
 */
export const withdraw = (
  store: RunStore.RunStoreShape,
  runId: string,
  workerId: string
): Effect.Effect<void, OfferError> =>
  Effect.uninterruptible(
    Effect.andThen(store.acquire(runId, { workerId, lease: "1 second" }), store.release(runId, workerId))
  )

/**
 * Records a person's answers and offers the run to workers.
 *
 * An answer is recorded in the run that asked: the run itself, or a task below it. Tasks are answered first, so that a
 * resumed run finds its tasks answered. No answer is recorded if one of them fits no open question or may not be given
 * by its caller, or if the run is not at the given revision. After an interruption the same answers can be given again.
 * For a run that is executed without a worker, only the answers of its tasks are recorded.
 */
export const answer = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  runId: string,
  given: ReadonlyArray<GivenAnswer>,
  options: Omit<AnswerOptions, "caller"> & { readonly caller?: Giver }
): Effect.fn.Return<void, AnswerError> {
  const now = yield* Clock.currentTimeMillis
  const workerId = `${options.workerId ?? "local"}#${randomId(yield* Random.Random)}`
  const limits = yield* Limits
  const patientStore = patient(store, limits)
  const writer: Writer = { store: patientStore, workerId, now }
  const root = yield* storedAt(store, runId, options.revision)
  const tree = yield* treeOf(store, root)
  const answers = yield* decided(tree, given, options.caller)
  if (root.status.type === "cancelled") return yield* cancelled(runId, root.status)
  if (root.status.type === "completed") return
  const own = answersTo(root, answers)
  const tasks = answerTasks(writer, tree, answers)
  const before = Option.getOrUndefined(yield* store.head(runId))?.lease
  // A process may be executing the run without a worker, so only its tasks are answered. They are found answered when
  // the run is resumed. A process that died looks the same.
  if (own.length === 0 && root.status.type === "running" && (before === undefined || isOwnLease(before)))
    return yield* tasks
  // Holds the run long enough that no worker claims it between two answers.
  const lease = Duration.times(limits.appendTimeout, (answers.length + 1) * 4)
  // Runs after a failure, too: `acquire` or `append` may have succeeded although the store reported an error. Only a
  // lease that is still ours is given back. The run is offered if it was queued before or has been answered, by us or
  // just before our claim; otherwise the lease is released.
  const givenBack = ifHeld(patientStore, runId, workerId, ({ revision }) =>
    before !== undefined || revision === root.revision + 1
      ? offer(patientStore, runId, workerId)
      : patientStore.release(runId, workerId)
  )
  const acquired = patientStore.acquire(runId, { workerId, lease })
  const answered = Effect.andThen(acquired, Effect.andThen(tasks, record(writer, root, own)))
  yield* Effect.uninterruptible(Effect.ensuring(answered, Effect.ignore(givenBack)))
  emitOffer(store, runId)
})

/**
 * Offers a run at rest to workers again and forgets its attempts: one that failed, got no answer, was given up or was
 * paused by a hook. Returns false for any other run.
 */
export const retry = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  runId: string,
  options: AnswerOptions
): Effect.fn.Return<boolean, AnswerError> {
  const { revision, status } = yield* storedAt(store, runId, options.revision)
  const open = status.type === "paused" ? yield* allQuestions(store, runId) : []
  if ((status.type !== "failed" && status.type !== "paused") || open.length > 0) return false
  yield* answer(store, runId, [], { ...options, revision })
  return true
})

interface Writer extends Pick<Environment, "store" | "workerId"> {
  readonly now: number
  /** The context to store with the answers. */
  readonly context?: Pick<Delta, "context">
}

/** Records the answers to the tasks below a run, deepest first. Uninterruptible. */
export const answerTasks = (
  writer: Writer,
  [, ...below]: Tree,
  answers: ReadonlyArray<Answer>
): Effect.Effect<void, ConcurrentAppendError | StoreError> =>
  Effect.uninterruptible(
    Effect.forEach(
      below.toReversed(),
      (task) => {
        const own = answersTo(task, answers)
        return own.length === 0 ? Effect.void : record(writer, task, own)
      },
      { discard: true }
    )
  )

const answersTo = (state: RunState, answers: ReadonlyArray<Answer>): ReadonlyArray<Answer> => {
  const questions = questionsOf(state)
  return answers.filter(({ callId }) => questions.includes(callId))
}

/**
 * Appends a resume record with a person's answers, so that the next resume does not count as an attempt of a worker.
 * The answers may be empty.
 */
const record = (
  { context, now, store, workerId }: Writer,
  state: RunState,
  answers: ReadonlyArray<Answer>
): Effect.Effect<void, ConcurrentAppendError | StoreError> => {
  const record: RunRecord = {
    runId: state.runId,
    revision: state.revision + 1,
    op: "resume",
    events: [],
    delta: { resumed: true, ...context, answers },
    createdAt: now,
    workerId
  }
  // `RunExists` is an error of first records only.
  return Effect.catchTag(store.append([record], advance(state, record)), "RunExists", Effect.die)
}

/** Returns the open questions to people of a run and of its children. A run that has ended has none. */
export const questions = (
  store: RunStore.RunStoreShape,
  runId: string
): Effect.Effect<ReadonlyArray<OpenQuestion>, QuestionsError> =>
  Effect.map(allQuestions(store, runId), (all) => all.filter(({ asking }) => asking?.isTimer !== true))

/** Returns all open questions, those that only wait for a time included. */
export const allQuestions = (
  store: RunStore.RunStoreShape,
  runId: string
): Effect.Effect<ReadonlyArray<OpenQuestion>, QuestionsError> =>
  Effect.flatMap(stored(store, runId), (state) =>
    state.status.type === "cancelled" ? Effect.succeed([]) : questionsBelow(store, state)
  )

/** Returns the open questions of a run whose state is known, and of its children. */
const questionsBelow = (
  store: RunStore.RunStoreShape,
  state: RunState
): Effect.Effect<ReadonlyArray<OpenQuestion>, StoreError> =>
  Effect.map(treeOf(store, state), (tree) => {
    const paths = new Map<string | undefined, ReadonlyArray<string>>()
    // A parent comes before its children.
    return tree.flatMap((run) => {
      const agents = [...(paths.get(run.parentRunId) ?? []), agentName(run)]
      paths.set(run.runId, agents)
      return open(run).map((question) => ({ ...question, runId: run.runId, agents }))
    })
  })

/** Returns the open questions of the run itself. A run with an open question cannot complete. */
const open = ({ questions }: RunState): ReadonlyArray<Question> => unanswered(questions)

/** Returns the ids of the calls with an open question of the run itself. */
const questionsOf = (state: RunState): ReadonlyArray<string> => open(state).map(({ callId }) => callId)
