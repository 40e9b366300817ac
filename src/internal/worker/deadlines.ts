/**
 * Keeps the deadlines of questions for a worker without a cluster.
 *
 * The head of a waiting run has its deadline, so no store keeps an index of them. A worker goes through the waiting runs
 * a page at a time, whoever asked and whenever, and one timer waits for the nearest deadline among those it found. Of
 * several workers the first one declines a question: the others see that the run has moved.
 */

import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { RunPaused } from "../../KernelError.ts"
import type { RunHead } from "../../RunStore.ts"
import { passedOver } from "../base/foreignCode.ts"
import { flat } from "../base/text.ts"
import * as Due from "./dueRuns.ts"
import { answerBy, deadlineOf, declineLate, type Decliner } from "./expiry.ts"
import * as Pages from "./runPages.ts"

/** The deadlines that a worker knows. */
export interface Deadlines {
  /** Notes the deadline of a run that has just paused. */
  readonly paused: (error: RunPaused) => void
  /** Looks at all waiting runs, and declines the questions whose time is over. */
  readonly lookAtAll: Effect.Effect<void>
  /** Looks at all waiting runs, then at the next page of them at each interval. */
  readonly watch: (interval: Duration.Input) => Effect.Effect<never>
  /** Waits for each deadline, and declines the questions of its run. */
  readonly keep: Effect.Effect<never>
}

/** How many waiting runs are read at once: a worker comes to a new question among ten thousand in two minutes. */
const pageSize = 1_000

/** Creates the deadlines of a worker, which declines questions to runs of its agents alone. */
export const make = (decliner: Decliner): Deadlines => {
  const { agents, soon, store } = decliner
  const due = Due.make()
  const consider = Effect.fnUntraced(function* (head: RunHead) {
    const until = answerBy(head)
    if (until === undefined || !agents.has(head.agent) || head.lease?.isLive === true) return
    if (until > (yield* Clock.currentTimeMillis)) return Due.set(due, head, until)
    yield* declineLate(decliner, head)
  })
  const pages = Pages.make(["waiting"], {
    list: (filter) => soon(store.list(filter)),
    consider,
    isFull: () => false,
    size: pageSize
  })
  // It may have been answered, or ask something else by now. What fails here is found again among the pages.
  const declined = (runId: string) =>
    soon(store.head(runId)).pipe(
      Effect.flatMap(Option.match({ onNone: () => Effect.void, onSome: consider })),
      Effect.catchCause(passedOver(`a worker could not look at the questions of run ${flat(runId)}`))
    )
  return {
    paused: ({ metadata, runId }) => {
      const until = deadlineOf(metadata)
      if (until !== undefined) Due.set(due, { runId, revision: 0 }, until)
    },
    lookAtAll: pages.all,
    watch: (interval) => Effect.andThen(pages.all, Effect.forever(Effect.andThen(Effect.sleep(interval), pages.next))),
    keep: Effect.forever(Effect.flatMap(Due.next(due), declined))
  }
}
