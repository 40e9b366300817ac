/**
 * Declines questions whose deadline has passed.
 *
 * The head of a waiting run has its deadline, so stores need no index of deadlines. If several processes decline a
 * question, the first one succeeds and the others find the run changed.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
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
import type { Json } from "../../kit/json.ts"
import { declined } from "../kernel/answers.ts"
import { allQuestions, answer } from "../kernel/queue.ts"

/**
 * Returns the earliest deadline of a waiting run's questions, in milliseconds since the epoch. Undefined if none has a
 * deadline.
 *
 * @category getters
 * @since 0.1.0
 */
export const answerBy = ({ status }: Pick<RunHead, "status">): number | undefined =>
  status.type === "waiting" ? deadlineIn(status.metadata) : undefined

/** Returns the earliest deadline in the metadata of a pause, in milliseconds since the epoch. */
export const deadlineIn = (metadata: Json): number | undefined => {
  const questions = Option.getOrUndefined(read(metadata))?.questions ?? []
  const times = questions.flatMap(({ answerBy }) => answerBy ?? [])
  return times.length === 0 ? undefined : Math.min(...times)
}

/** The questions in the head of a waiting run. */
const Waiting = Schema.Struct({
  questions: Schema.Array(Schema.Struct({ answerBy: Schema.optionalKey(Schema.Finite) }))
})

const read = Schema.decodeUnknownOption(Waiting)

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
