/**
 * Declines questions whose deadline has passed, for a worker without a cluster.
 *
 * The head of a waiting run has its deadline, so stores need no index of deadlines. A worker reads all waiting runs
 * page by page, and one timer waits for the nearest deadline it found. If several workers try to decline a question,
 * the first one succeeds and the others find the run changed.
 */

import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type {
  QuestionNotFound,
  ConcurrentAppendError,
  RunBusy,
  RunCancelled,
  RunNotFound,
  RunPaused,
  StoreError
} from "../../KernelError.ts"
import type { RunHead, RunStoreShape } from "../../RunStore.ts"
import { logIgnored } from "../../kit/foreignCode.ts"
import type { Json } from "../../kit/json.ts"
import { flat } from "../../kit/text.ts"
import { answer, questions } from "../kernel/queue.ts"
import * as Pages from "./runPages.ts"
import { dueRuns, nextDue, setDue } from "./runPages.ts"
import type { Holder } from "./lease.ts"

/** The deadlines known to a worker. */
export interface Deadlines {
  /** Adds the deadline of a run that has just paused. */
  readonly paused: (error: RunPaused) => void
  /** Reads all waiting runs, and declines the questions whose deadline has passed. */
  readonly lookAtAll: Effect.Effect<void>
  /** Reads all waiting runs, then the next page of them at each interval. */
  readonly watch: (interval: Duration.Input) => Effect.Effect<never>
  /** Waits for each known deadline, and declines the questions of its run. */
  readonly keep: Effect.Effect<never>
}

/** Creates the deadlines of a worker, which declines only questions of its agents' runs. */
export const make = (decliner: Decliner): Deadlines => {
  const { agents, soon, store } = decliner
  const due = dueRuns()
  const consider = Effect.fnUntraced(function* (head: RunHead) {
    const until = answerBy(head)
    if (until === undefined || !agents.has(head.agent) || head.lease?.isLive === true) return
    if (until > (yield* Clock.currentTimeMillis)) return setDue(due, head, until)
    yield* declineLate(decliner, head)
  })
  const pages = Pages.make(["waiting"], {
    list: (filter) => soon(store.list(filter)),
    consider,
    isFull: () => false,
    size: pageSize
  })
  // The run may have been answered or ask another question by now. After a failure, the paging finds the run again.
  const declined = (runId: string) =>
    soon(store.head(runId)).pipe(
      Effect.flatMap(Option.match({ onNone: () => Effect.void, onSome: consider })),
      Effect.catchCause(logIgnored(`a worker could not check the questions of run ${flat(runId)}`))
    )
  return {
    paused: ({ metadata, runId }) => {
      const until = deadlineOf(metadata)
      if (until !== undefined) setDue(due, { runId, revision: 0 }, until)
    },
    lookAtAll: pages.all,
    watch: (interval) => Effect.andThen(pages.all, Effect.forever(Effect.andThen(Effect.sleep(interval), pages.next))),
    keep: Effect.forever(Effect.flatMap(nextDue(due), declined))
  }
}

/** Returns the earliest deadline of a waiting run's questions, in milliseconds since the epoch. */
export const answerBy = ({ status }: Pick<RunHead, "status">): number | undefined =>
  status.type === "waiting" ? deadlineOf(status.metadata) : undefined

/** Declines questions of the runs of some agents. */
export interface Decliner extends Pick<Holder, "soon" | "store"> {
  readonly agents: ReadonlyMap<string, unknown>
}

/**
 * Declines the questions of a waiting run whose deadline has passed. Returns whether there were any, so that the run
 * continues.
 */
export const declineLate = Effect.fnUntraced(
  function* ({ agents, soon, store }: Decliner, head: RunHead) {
    const now = yield* Clock.currentTimeMillis
    if ((answerBy(head) ?? Infinity) > now || !agents.has(head.agent)) return false
    return yield* soon(expire(store, head))
  },
  Effect.catch((error) => Effect.as(Effect.logDebug("questions were not declined in time", error), false))
)

/** Returns the earliest deadline in the metadata of a pause, in milliseconds since the epoch. */
const deadlineOf = (metadata: Json): number | undefined => {
  const questions = Option.getOrUndefined(read(metadata))?.questions ?? []
  const times = questions.flatMap(({ answerBy }) => answerBy ?? [])
  return times.length === 0 ? undefined : Math.min(...times)
}

/** Number of waiting runs per page, so that a new question among ten thousand is found within two minutes. */
const pageSize = 1_000

/** The questions in the head of a waiting run. */
const Waiting = Schema.Struct({
  questions: Schema.Array(Schema.Struct({ answerBy: Schema.optionalKey(Schema.Finite) }))
})

const read = Schema.decodeUnknownOption(Waiting)

/**
 * Declines the questions of a run whose deadline has passed, and offers the run to workers. Returns whether there were
 * any. Fails if the run has changed since its head was read.
 */
const expire = Effect.fnUntraced(function* (
  store: RunStoreShape,
  { revision, runId }: RunHead
): Effect.fn.Return<
  boolean,
  QuestionNotFound | ConcurrentAppendError | RunBusy | RunCancelled | RunNotFound | StoreError
> {
  const now = yield* Clock.currentTimeMillis
  const open = yield* questions(store, runId)
  const late = open.filter(({ answerBy = Infinity }) => answerBy <= now)
  if (late.length === 0) return false
  const declined = late.map(({ callId }) => ({ callId, approved: false, reason, by: "deadline" }))
  yield* answer(store, runId, declined, { revision })
  return true
})

const reason = "Nobody answered in time."
