/**
 * Finds and declines questions whose deadline has passed. If several processes decline a question, the first one
 * succeeds and the others find the run changed.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { AnswerError } from "../../KernelError.ts"
import type { RunHead, RunStoreShape } from "../../RunStore.ts"
import * as Pages from "../../store-kit/RunPages.ts"
import { declined } from "../kernel/answers.ts"
import { allQuestions, answer } from "../kernel/queue.ts"
import type { Polls } from "./restingPolls.ts"

/**
 * Declines the questions of a run whose deadline has passed, and offers the run to workers. Returns whether there were
 * any. Fails if the run has changed since its head was read.
 */
export const declineLate = Effect.fnUntraced(function* (
  store: RunStoreShape,
  { revision, runId }: RunHead
): Effect.fn.Return<boolean, AnswerError> {
  const now = yield* Clock.currentTimeMillis
  const late = declined(yield* allQuestions(store, runId), now)
  if (late.length === 0) return false
  yield* answer(store, runId, late, { revision, caller: "kernel" })
  return true
})

/** Creates polls for runs whose questions are late. Between them, only the next deadline needs one. */
export const polls = (polling: Pick<Pages.Polling, "consider" | "list">, often: Polls["often"]): Polls => {
  let next = Infinity
  return {
    poll: Effect.map(Pages.late(polling), (polled) => {
      next = polled.next
      return polled.isWhole
    }),
    often,
    left: Effect.map(Clock.currentTimeMillis, (now) => Math.max(0, next - now))
  }
}
