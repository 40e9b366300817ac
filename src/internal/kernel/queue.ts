/**
 * Runs that wait for a worker: they are offered when they are submitted or answered, without a kernel.
 */

import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Equal from "effect/Equal"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type { ConcurrentAppendError, RunBusy, RunCancelled, RunNotFound, StoreError } from "../../KernelError.ts"
import { ApprovalNotFound } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { Answer, Delta, OpenQuestion, Question, RunRecord, RunState } from "../../RunState.ts"
import { advance } from "../../RunState.ts"
import type * as RunStore from "../../RunStore.ts"
import type { AnswerOptions } from "../../RunOptions.ts"
import { randomId } from "../words/ids.ts"
import { type Environment, agentName } from "../run/run.ts"
import { tellOffer } from "../store/offers.ts"
import { patient } from "../store/storeGuard.ts"
import { type RunTree as Tree, stored, storedAt, treeOf } from "../store/stored.ts"
import { cancelled } from "../run/conclude.ts"
import { unanswered } from "../state/turnFold.ts"

/** Offers a run to any worker: an expired lease tells it from a run that is executed without one. */
export const offer = (
  store: RunStore.RunStoreShape,
  runId: string,
  workerId: string
): Effect.Effect<void, RunBusy | RunNotFound | ConcurrentAppendError | StoreError> =>
  store.acquire(runId, { workerId, lease: 0 })

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
 * Withdraws an offer, for a caller that runs the run without a lease. Fails if a worker was faster. Held for a moment,
 * the run is not offered anew.
 */
export const withdraw = (
  store: RunStore.RunStoreShape,
  runId: string,
  workerId: string
): Effect.Effect<void, RunBusy | RunNotFound | ConcurrentAppendError | StoreError> =>
  Effect.uninterruptible(
    Effect.andThen(store.acquire(runId, { workerId, lease: "5 seconds" }), store.release(runId, workerId))
  )

/**
 * Records a person's decisions, and offers the run to workers.
 *
 * Answers go to the runs that asked: the run itself, or tasks below it. Tasks are answered first, so that a run that
 * continues finds its tasks answered. If one answer fits no open question, or the run is at another revision than the
 * given one, none is recorded. After a cut between two of them, the same answers may be given again. A run that is
 * running without a lease stays as it is: only its tasks are answered.
 */
export const answer = Effect.fnUntraced(function* (
  store: RunStore.RunStoreShape,
  runId: string,
  answers: ReadonlyArray<Answer>,
  options: AnswerOptions
): Effect.fn.Return<
  void,
  ApprovalNotFound | ConcurrentAppendError | StoreError | RunBusy | RunNotFound | RunCancelled
> {
  const now = yield* Clock.currentTimeMillis
  const workerId = `${options.workerId ?? "local"}#${randomId(yield* Random.Random)}`
  const limits = yield* Limits
  const patientStore = patient(store, limits)
  const writer: Writer = { store: patientStore, workerId, now }
  const root = yield* storedAt(store, runId, options.revision)
  const tree = yield* treeOf(store, root)
  yield* checkAnswers(tree, answers)
  if (root.status.type === "cancelled") return yield* cancelled(runId, root.status)
  if (root.status.type === "completed") return
  const own = answersTo(root, answers)
  const tasks = answerTasks(writer, tree, answers)
  const before = Option.getOrUndefined(yield* store.head(runId))?.lease
  // Whoever runs it now without a lease must not be disturbed: one that pauses or dies leaves its tasks answered. One that
  // is there no more looks the same.
  if (own.length === 0 && root.status.type === "running" && before === undefined) return yield* tasks
  // Nobody else takes it up between the answers, however long the store takes for each.
  const lease = Duration.times(limits.appendTimeout, (answers.length + 1) * 4)
  // Who could not answer it leaves it as it was, and nobody takes it from somebody who took it up meanwhile. It may be
  // held, and answered, though the store never said so; and another may have answered it just before it was held.
  const givenBack = ifHeld(patientStore, runId, workerId, ({ revision }) =>
    before !== undefined || revision === root.revision + 1
      ? offer(patientStore, runId, workerId)
      : patientStore.release(runId, workerId)
  )
  const acquired = patientStore.acquire(runId, { workerId, lease })
  const answered = Effect.andThen(acquired, Effect.andThen(tasks, record(writer, root, own)))
  yield* Effect.uninterruptible(Effect.ensuring(answered, Effect.ignore(givenBack)))
  tellOffer(store, runId)
})

/**
 * An answer fits one open question, of the run or of a task of it, once. An answer that a task already has may be
 * repeated, because its writer may have been cut off before the run itself was answered.
 */
export const checkAnswers = (
  [root, ...below]: Tree,
  answers: ReadonlyArray<Answer>
): Effect.Effect<void, ApprovalNotFound> => {
  const left = new Set([root, ...below].flatMap(questionsOf))
  const told = below.flatMap(({ questions }) => questions.map(({ answer }) => answer))
  for (const answer of answers) {
    if (left.delete(answer.callId) || told.some((other) => Equal.equals(other, answer))) continue
    return Effect.fail(new ApprovalNotFound({ runId: root.runId, callId: answer.callId }))
  }
  return Effect.void
}

/** The writer of answers. */
interface Writer extends Pick<Environment, "store" | "workerId"> {
  readonly now: number
  /** The context that goes with the answers. */
  readonly context?: Pick<Delta, "context">
}

/** Records the answers to the tasks below a run, the lowest first: all of them, even during interruption. */
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
 * Records a person's answers for a run, possibly none for the run itself, so that resuming it does not count as a
 * worker's attempt.
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
  // Only a first record can meet a run that exists.
  return Effect.catchTag(store.append([record], advance(state, record)), "RunExists", Effect.die)
}

/** Returns the open questions of a run and of its children. A run that has ended has none. */
export const questions = (
  store: RunStore.RunStoreShape,
  runId: string
): Effect.Effect<ReadonlyArray<OpenQuestion>, RunNotFound | StoreError> =>
  Effect.flatMap(stored(store, runId), (state) =>
    state.status.type === "cancelled" ? Effect.succeed([]) : questionsBelow(store, state)
  )

/** The same for a run whose state is known. */
export const questionsBelow = (
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

/** The questions of the run itself. With an open question a run can only pause, so an ended one has none. */
const open = ({ questions }: RunState): ReadonlyArray<Question> => unanswered(questions)

/** The ids of the calls that the run itself waits with. */
const questionsOf = (state: RunState): ReadonlyArray<string> => open(state).map(({ callId }) => callId)
