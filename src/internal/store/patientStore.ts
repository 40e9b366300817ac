/**
 * Gives a store time and a few more attempts.
 *
 * Without retries, every short failure of a store would leave a call in flight with an unknown outcome. Sending the
 * same records again is harmless. Storing is uninterruptible, so a store that hangs is given up after a while.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type AgentCrashError, ConcurrentAppendError, type RunExists, StoreError } from "../../KernelError.ts"
import type { Limits } from "../../Limits.ts"
import type * as RunStore from "../../RunStore.ts"
import { inTime } from "../base/foreignCode.ts"
import { isHiccup } from "../base/failedCall.ts"
import { shareOffers } from "./offers.ts"
import { soundRuns } from "./soundStore.ts"

type Failure = ConcurrentAppendError | StoreError

/** Why records were not stored. Nothing else may be tried on the run then. */
export type AppendError = Failure | RunExists

/** Why a run stored nothing: the store refused, or the run belongs to another process. */
export type FlushError = AppendError | AgentCrashError

/** Wraps a store so that records which it rejected or did not acknowledge are sent again. */
export const patient = (
  given: RunStore.RunStoreShape,
  { appendTimeout }: Pick<Limits, "appendTimeout">
): RunStore.RunStoreShape => {
  const store = soundRuns(given)
  const wrapped = patientStores.get(store)
  if (wrapped !== undefined && wrapped.appendTimeout === appendTimeout) return wrapped.store
  const retried = <A, E, E2 = never>(
    operation: string,
    write: () => Effect.Effect<A, E>,
    isOurs: Effect.Effect<void, E2>
  ) => again(operation, appendTimeout, Effect.suspend(write), isOurs, [50, 250])
  const made: RunStore.RunStoreShape = {
    ...store,
    append: (records, state) => retried("append", () => store.append(records, state), stillLast(store, state)),
    head: (runId) => retried("read", () => store.head(runId), Effect.void),
    acquire: (runId, claim) => retried("acquire", () => store.acquire(runId, claim), Effect.void),
    release: (runId, workerId) => retried("release", () => store.release(runId, workerId), Effect.void)
  }
  shareOffers(made, store)
  patientStores.set(store, { appendTimeout, store: made })
  return made
}

const patientStores = new WeakMap<
  RunStore.RunStoreShape,
  { readonly appendTimeout: Duration.Duration; readonly store: RunStore.RunStoreShape }
>()

const again = <A, E, E2>(
  operation: string,
  appendTimeout: Duration.Duration,
  write: Effect.Effect<A, E>,
  isOurs: Effect.Effect<void, E2>,
  waits: ReadonlyArray<number>
): Effect.Effect<A, E | E2 | StoreError> =>
  Effect.catch(withTimeout(operation, write, appendTimeout), (error) => {
    const [wait, ...rest] = waits
    if (wait === undefined || !isHiccup(error)) return Effect.fail(error)
    // In the meantime another worker may have continued from this very record.
    const checked = Effect.tap(write, () => isOurs)
    return Effect.andThen(Effect.sleep(wait), again(operation, appendTimeout, checked, isOurs, rest))
  })

const withTimeout = <A, E>(
  operation: string,
  work: Effect.Effect<A, E>,
  limit: Duration.Duration
): Effect.Effect<A, E | StoreError> =>
  inTime(work, limit, () =>
    Effect.fail(
      new StoreError({ operation, reason: "timeout", detail: `it took longer than ${Duration.toMillis(limit)} ms` })
    )
  )

/** Fails unless the last record of a run has this revision. */
const stillLast = (
  store: RunStore.RunStoreShape,
  { revision, runId }: { readonly runId: string; readonly revision: number }
): Effect.Effect<void, Failure> =>
  Effect.flatMap(store.head(runId), (head) => {
    const actualSeq = Option.getOrUndefined(head)?.revision ?? 0
    return actualSeq === revision
      ? Effect.void
      : Effect.fail(new ConcurrentAppendError({ runId, expectedSeq: revision - 1, actualSeq }))
  })
