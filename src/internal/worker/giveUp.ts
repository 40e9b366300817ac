/**
 * Fails a run that crashed too often.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import type { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "../../KernelError.ts"
import { type RunRecord, advance } from "../../RunState.ts"
import type { RunHead } from "../../RunStore.ts"
import { randomId } from "../../kit/randomId.ts"
import { flat } from "../../kit/text.ts"
import { scoped } from "../run/publish.ts"
import { stepOf } from "../state/state.ts"
import { type Holder, giveBack } from "./lease.ts"

/**
 * Fails a run after too many attempts, without its agent and its hooks, which could crash the process again. Fails if
 * the run has changed since its head was read.
 */
export const giveUp = Effect.fnUntraced(function* (
  holder: Holder,
  head: RunHead,
  attempts: number
): Effect.fn.Return<void, RunBusy | RunNotFound | RunExists | ConcurrentAppendError | StoreError> {
  const { store, timed, workerId } = holder
  const { runId } = head
  yield* timed(store.acquire(runId, { workerId, lease: "30 seconds", seen: head }))
  yield* Effect.ensuring(timed(fail(holder, head, attempts)), Effect.ignore(giveBack(holder, runId)))
  yield* Effect.logError(`run ${flat(runId)} failed: ${reasonOf(attempts)}`)
}, Effect.uninterruptible)

const fail = Effect.fnUntraced(function* ({ store, workerId }: Holder, { revision, runId }: RunHead, attempts: number) {
  const state = Option.getOrUndefined(yield* store.load(runId))
  if (state?.revision !== revision) return
  const at = yield* Clock.currentTimeMillis
  const error = { tag: "AgentCrashError", message: reasonOf(attempts), fields: { runId, attempts } }
  const record: RunRecord = {
    runId,
    revision: revision + 1,
    op: "phase",
    events: [scoped(state, stepOf(state), at, { type: "run_failed", error })],
    delta: {},
    createdAt: at,
    workerId: `${workerId}#${randomId(yield* Random.Random)}`
  }
  yield* store.append([record], advance(state, record))
})

const reasonOf = (attempts: number): string =>
  `its worker crashed or lost it ${attempts} times without progress, so no worker tries it again`
