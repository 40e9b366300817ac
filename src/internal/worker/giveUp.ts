/**
 * Fails a run that crashed too often, and says what it was doing.
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import {
  type ConcurrentAppendError,
  type RunBusy,
  type RunExists,
  type RunNotFound,
  RunPoisoned,
  type StoreError
} from "../../KernelError.ts"
import { type RunRecord, advance } from "../../RunState.ts"
import type { RunHead } from "../../RunStore.ts"
import { randomId } from "../../kit/randomId.ts"
import { flat } from "../../kit/text.ts"
import { inFlight } from "../../store-kit/StoredRuns.ts"
import { errorInfo } from "../run/failure.ts"
import { scoped } from "../run/publish.ts"
import { stepOf } from "../state/state.ts"
import { type Holder, giveBack } from "./lease.ts"

/**
 * Fails a run with `RunPoisoned` after too many attempts, without its agent and its hooks, which could crash the process
 * again. Fails if another process has the run. Returns undefined if it has changed since its head was read.
 */
export const giveUp = Effect.fnUntraced(function* (
  holder: Holder,
  head: RunHead,
  attempts: number
): Effect.fn.Return<RunPoisoned | undefined, RunBusy | RunNotFound | RunExists | ConcurrentAppendError | StoreError> {
  const { store, timed, workerId } = holder
  const { runId } = head
  yield* timed(store.acquire(runId, { workerId, lease: "5 seconds", seen: head }))
  const poisoned = yield* Effect.ensuring(timed(fail(holder, head, attempts)), Effect.ignore(giveBack(holder, runId)))
  if (poisoned !== undefined) yield* Effect.logError(`run ${flat(runId)} failed: ${flat(poisoned.message)}`)
  return poisoned
}, Effect.uninterruptible)

const fail = Effect.fnUntraced(function* ({ store, workerId }: Holder, { revision, runId }: RunHead, attempts: number) {
  const state = Option.getOrUndefined(yield* store.load(runId))
  if (state?.revision !== revision) return undefined
  const at = yield* Clock.currentTimeMillis
  // A task that cannot be read does not keep the run from being given up.
  const calls = yield* Effect.orElseSucceed(inFlight(store, runId), () => [])
  const poisoned = new RunPoisoned({
    runId,
    attempts,
    turn: (state.currentTurn ?? state.turns.at(-1))?.turn ?? 0,
    phase: state.status.type === "running" ? state.status.phase : "run_started",
    calls: calls.map(({ callId, name, runId }) => ({ runId, callId, name }))
  })
  const record: RunRecord = {
    runId,
    revision: revision + 1,
    op: "phase",
    events: [scoped(state, stepOf(state), at, { type: "run_failed", error: errorInfo(poisoned) })],
    delta: {},
    createdAt: at,
    workerId: `${workerId}#${randomId(yield* Random.Random)}`
  }
  yield* store.append([record], advance(state, record))
  return poisoned
})
