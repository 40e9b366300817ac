/**
 * Finds and declines questions whose deadline has passed. If several processes decline a question, the first one
 * succeeds and the others find the run changed.
 */

import * as Arr from "effect/Array"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type {
  AnswerRefused,
  ConcurrentAppendError,
  QuestionNotFound,
  RunBusy,
  RunCancelled,
  RunNotFound,
  StoreError
} from "../../KernelError.ts"
import type { RunHead, RunStoreShape } from "../../RunStore.ts"
import { logIgnored } from "../../kit/foreignCode.ts"
import type { Polling } from "../../store-kit/RunPages.ts"
import { declined } from "../kernel/answers.ts"
import { allQuestions, answer } from "../kernel/queue.ts"
import { answerBy } from "../store/runStatus.ts"
import type { Polls } from "./restingPolls.ts"

/**
 * Declines the questions of a run whose deadline has passed, and offers the run to workers. Returns whether there were
 * any. Fails if the run has changed since its head was read.
 */
export const declineLate = Effect.fnUntraced(function* (
  store: RunStoreShape,
  { revision, runId }: RunHead
): Effect.fn.Return<
  boolean,
  QuestionNotFound | AnswerRefused | ConcurrentAppendError | RunBusy | RunCancelled | RunNotFound | StoreError
> {
  const now = yield* Clock.currentTimeMillis
  const late = declined(yield* allQuestions(store, runId), now)
  if (late.length === 0) return false
  yield* answer(store, runId, late, { revision, caller: "kernel" })
  return true
})

/**
 * Creates polls for runs whose questions are late. A poll reads waiting runs in the order of their deadlines and stops at
 * the first one that has time left, so that it is one query however many runs wait.
 */
export const polls = ({ consider, list }: Pick<Polling, "consider" | "list">, often: Polls["often"]): Polls => {
  let next = Infinity
  const considered = (head: RunHead, now: number) =>
    Effect.matchCauseEffect(consider(head, now), {
      onFailure: (cause) => Effect.as(notPolled(cause), false),
      onSuccess: () => Effect.succeed(true)
    })
  const poll = Effect.gen(function* () {
    next = Infinity
    let isWhole = true
    for (let after: RunHead | undefined, isLast = false; !isLast;) {
      const now = yield* Clock.currentTimeMillis
      const heads = yield* list({ status: ["waiting"], roots: true, order: "due", limit: page, after })
      const [late, [early]] = Arr.span(heads, (head) => (answerBy(head) ?? 0) <= now)
      for (const head of late) isWhole = (yield* considered(head, now)) && isWhole
      if (early !== undefined) next = answerBy(early) ?? Infinity
      isLast = late.length < page
      after = late.at(-1)
    }
    return isWhole
  })
  return {
    poll: Effect.catchCause(poll, (cause) => Effect.as(notPolled(cause), false)),
    restart: () => {},
    isBusy: Effect.succeed(false),
    often,
    left: Effect.map(Clock.currentTimeMillis, (now) => Math.max(0, next - now))
  }
}

/** Number of runs that a query returns. */
const page = 100

const notPolled = logIgnored("a worker could not poll for late questions")
