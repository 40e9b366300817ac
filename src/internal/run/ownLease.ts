/**
 * Leases a run while this process runs it without a claim, so that no other process resumes it meanwhile.
 *
 * A short run has ended before it needs a lease. A process that dies leaves a lease that expires.
 */

import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { inTime } from "../../kit/foreignCode.ts"
import type { Lease } from "../../RunStore.ts"
import type { Run } from "./run.ts"

/** Runs work under a lease of the run, unless the run is a child or has a claim of its own. */
export const leased = <A, E>(run: Run, work: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  run.parent !== undefined || run.stop !== undefined
    ? work
    : Effect.suspend(() => {
        const lease: OwnLease = { isHeld: false }
        return Effect.acquireUseRelease(
          Effect.forkDetach(Effect.interruptible(keep(run, lease))),
          () => work,
          (keeper) => Effect.andThen(Fiber.interrupt(keeper), release(run, lease))
        )
      })

/** Returns whether a live lease is that of a process which runs the run without a claim, named by the writer of its records. */
export const isOwnLease = ({ isLive, workerId }: Lease): boolean => isLive && workerId.includes("#")

/** Whether the store may have the lease. */
interface OwnLease {
  isHeld: boolean
}

/** Acquires the lease after a moment and renews it, until another process has the run. A store that fails is asked again. */
const keep = Effect.fnUntraced(function* (run: Run, lease: OwnLease): Effect.fn.Return<void> {
  const claim = { workerId: run.workerId, lease: leaseMs }
  yield* Effect.sleep(delayMs)
  for (;;) {
    lease.isHeld = true
    const acquired = yield* Effect.result(run.store.acquire(run.state.runId, claim))
    if (acquired._tag === "Failure" && acquired.failure._tag !== "StoreError") return
    yield* Effect.sleep(leaseMs / 3)
  }
})

/** Releases the lease. A store that does not respond in time is left to its expiry. */
const release = ({ limits, state, store, workerId }: Run, { isHeld }: OwnLease): Effect.Effect<void> =>
  isHeld
    ? Effect.ignore(inTime(store.release(state.runId, workerId), limits.cleanUpTimeout, () => Effect.void))
    : Effect.void

/** Runs that end within this time cost no lease. */
const delayMs = 100

const leaseMs = 15_000
