/**
 * Claims runs by leases of their store. A lease is renewed until it is lost, and released after the attempt.
 */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "../../KernelError.ts"
import type { RunHead, RunStoreShape as RunStore } from "../../RunStore.ts"
import { inTime, logIgnored } from "../../kit/foreignCode.ts"
import { flat } from "../../kit/text.ts"
import { monotonic } from "../../kit/time.ts"
import { ifHeld, offer } from "../kernel/queue.ts"
import { isEnded } from "../store/runStatus.ts"
import type { Claim } from "./driverModel.ts"

/** A process that may hold leases. */
export interface Holder {
  readonly store: RunStore
  readonly workerId: string
  /** Limits how long to wait for the store. */
  readonly timed: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E | StoreError>
}

/** A worker, and how long its leases last without renewal. */
export interface Leases extends Holder {
  readonly leaseMs: number
}

/** A lease in this process. */
interface Held {
  /**
   * When the lease expires without renewal, by the monotonic clock of this process. It never expires earlier in the
   * store.
   */
  until: number
  lost: boolean
  /** The last renewal, which may still be in progress. */
  renewal?: Fiber.Fiber<unknown, unknown>
}

/** Acquires the lease of a run. Undefined if another worker was faster, or if the store failed. */
export const acquire = Effect.fnUntraced(function* (
  leases: Leases,
  head: RunHead
): Effect.fn.Return<Claim | undefined> {
  const { leaseMs, store, timed, workerId } = leases
  const { runId } = head
  const clock = yield* Clock.clockWith(Effect.succeed)
  // Measured from before the request, so that the lease never expires earlier in the store.
  const lease: Held = { until: monotonic(clock) + leaseMs, lost: false }
  const exit = yield* Effect.exit(timed(store.acquire(runId, { workerId, lease: leaseMs, seen: head })))
  if (Exit.isSuccess(exit)) {
    return {
      isLost: () => lease.lost || monotonic(clock) >= lease.until,
      prove: (root) => proves(leases, root),
      keep: renew(leases, runId, lease),
      release: Effect.ignore(letGo(leases, runId, lease))
    }
  }
  if (isTaken(exit.cause)) return undefined
  yield* logIgnored(`a worker could not claim run ${flat(runId)}`)(exit.cause)
  // The lease may have been acquired although the store reported an error.
  yield* Effect.ignore(giveBack(leases, runId))
  return undefined
})

/** Errors of releasing a lease: the store failed, or the run was removed or claimed by another worker. */
type GiveBackError = RunBusy | RunNotFound | RunExists | ConcurrentAppendError | StoreError

/** Renews a lease until it expires or another worker takes it. */
const renew = Effect.fnUntraced(function* ({ leaseMs, store, workerId }: Leases, runId: string, lease: Held) {
  while (!lease.lost) {
    yield* Effect.sleep(Math.min(leaseMs / 3, yield* leftOf(lease)))
    const left = yield* leftOf(lease)
    const until = (yield* now) + leaseMs
    const acquired = Effect.withFiber((fiber) => {
      lease.renewal = fiber
      return Effect.as(store.acquire(runId, { workerId, lease: leaseMs }), true)
    })
    // Until the lease expires, a store that fails is asked again, and a store that does not respond is waited for.
    const renewed = left > 0 ? yield* Effect.exit(inTime(acquired, left, () => no)) : no
    if (Exit.isSuccess(renewed) && renewed.value) lease.until = until
    else lease.lost = Exit.isSuccess(renewed) || isTaken(renewed.cause)
  }
})

/**
 * Returns whether a worker holds a run, given its head. An expired lease is acquired again if the run has not changed,
 * because the clock of the store may have been changed.
 */
const proves = ({ leaseMs, store, timed, workerId }: Leases, head: RunHead): Effect.Effect<boolean, StoreError> =>
  head.lease?.workerId === workerId && head.lease.isLive
    ? Effect.succeed(true)
    : timed(store.acquire(head.runId, { workerId, lease: leaseMs, seen: head })).pipe(
        Effect.as(true),
        Effect.catch((error) => (error._tag === "StoreError" ? Effect.fail(error) : Effect.succeed(false)))
      )

/** Releases a lease after any outcome of the attempt. */
const letGo = (holder: Holder, runId: string, lease: Held): Effect.Effect<void, GiveBackError> =>
  Effect.suspend(() => (lease.lost ? Effect.void : Effect.andThen(lastRenewal(lease), giveBack(holder, runId))))

/** Releases a lease if it is held. A run that another worker can continue is offered instead. */
export const giveBack = ({ store, timed, workerId }: Holder, runId: string): Effect.Effect<void, GiveBackError> =>
  timed(
    ifHeld(store, runId, workerId, ({ status }) =>
      status.type === "waiting" || isEnded(status) ? store.release(runId, workerId) : offer(store, runId, workerId)
    )
  )

/** Returns whether a claim failed because another worker holds the run, not because the store failed. */
export const isTaken = (cause: Cause.Cause<GiveBackError>): boolean =>
  cause.reasons.some((reason) => Cause.isFailReason(reason) && reason.error._tag !== "StoreError")

/**
 * Waits for the last renewal, or until the lease expires. An interrupted renewal might still acquire the lease after
 * its release.
 */
const lastRenewal = Effect.fnUntraced(function* (lease: Held) {
  if (lease.renewal === undefined) return
  yield* inTime(Fiber.await(lease.renewal), yield* leftOf(lease), () => Effect.void)
})

/** Returns how many milliseconds a lease lasts without renewal. */
const leftOf = ({ until }: Held): Effect.Effect<number> => Effect.map(now, (now) => Math.max(0, until - now))

/** Returns the time of the monotonic clock, which measures a worker's own leases. */
const now: Effect.Effect<number> = Clock.clockWith((clock) => Effect.sync(() => monotonic(clock)))

const no = Exit.succeed(false)
