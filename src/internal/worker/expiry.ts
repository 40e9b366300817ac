/**
 * Declines questions that nobody answered in time.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import type {
  ApprovalNotFound,
  ConcurrentAppendError,
  RunBusy,
  RunCancelled,
  RunNotFound,
  StoreError
} from "../../KernelError.ts"
import type { RunHead, RunStoreShape } from "../../RunStore.ts"
import type { Json } from "../base/json.ts"
import { answer, questions } from "../kernel/queue.ts"
import type { Holder } from "./lease.ts"

/** The questions of a waiting run, as its head has them. */
const Waiting = Schema.Struct({
  questions: Schema.Array(Schema.Struct({ answerBy: Schema.optionalKey(Schema.Finite) }))
})

const read = Schema.decodeUnknownOption(Waiting)

/** Returns when the first question of a pause has to be answered, in milliseconds since the epoch. */
export const deadlineOf = (metadata: Json): number | undefined => {
  const asked = Option.getOrUndefined(read(metadata))?.questions ?? []
  const times = asked.flatMap(({ answerBy }) => answerBy ?? [])
  return times.length === 0 ? undefined : Math.min(...times)
}

/** Returns when the first question of a waiting run has to be answered, in milliseconds since the epoch. */
export const answerBy = ({ status }: Pick<RunHead, "status">): number | undefined =>
  status.type === "waiting" ? deadlineOf(status.metadata) : undefined

/** Declines questions to runs of some agents. */
export interface Decliner extends Pick<Holder, "soon" | "store"> {
  readonly agents: ReadonlyMap<string, unknown>
}

/** Declines the questions of a waiting run whose time is over. Returns whether it did, so that the run continues. */
export const declineLate = Effect.fnUntraced(
  function* ({ agents, soon, store }: Decliner, head: RunHead) {
    const now = yield* Clock.currentTimeMillis
    if ((answerBy(head) ?? Infinity) > now || !agents.has(head.agent)) return false
    return yield* soon(expire(store, head))
  },
  Effect.catch((error) => Effect.as(Effect.logDebug("questions were not declined in time", error), false))
)

/**
 * Declines the questions of a run whose time is over, and offers the run to workers. Returns whether there were any. Fails
 * for a run that has moved since its head was read.
 */
const expire = Effect.fnUntraced(function* (
  store: RunStoreShape,
  { revision, runId }: RunHead
): Effect.fn.Return<
  boolean,
  ApprovalNotFound | ConcurrentAppendError | RunBusy | RunCancelled | RunNotFound | StoreError
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
