/**
 * Manages a worker's lease on a run: renews it until it is lost, and releases it after the work.
 */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "../../KernelError.ts"
import type { RunHead, RunStoreShape as RunStore } from "../../RunStore.ts"
import { inTime } from "../../kit/foreignCode.ts"
import { monotonic } from "../../kit/time.ts"
import { ifHeld, offer } from "../kernel/queue.ts"

/** The worker, and how long its leases last without renewal. */
export interface Holder {
  readonly store: RunStore
  readonly workerId: string
  readonly leaseMs: number
  /** Limits how long to wait for the store. */
  readonly soon: <A, E>(effect: Effect.Effect<A, E>) => Effect.Effect<A, E | StoreError>
}

/** A lease in this process. */
export interface Held {
  /**
   * When the lease expires without renewal, by the monotonic clock of this process. It never expires earlier in the
   * store.
   */
  until: number
  lost: boolean
  /** The last renewal, which may still be in progress. */
  renewal?: Fiber.Fiber<unknown, unknown>
}

/** Errors of releasing a lease: the store failed, or the run was removed or claimed by another worker. */
type GiveBackError = RunBusy | RunNotFound | RunExists | ConcurrentAppendError | StoreError

/** Renews a lease until it expires or another worker takes it. */
export const renew = Effect.fnUntraced(function* ({ leaseMs, store, workerId }: Holder, runId: string, lease: Held) {
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
export const proves = ({ leaseMs, soon, store, workerId }: Holder, head: RunHead): Effect.Effect<boolean, StoreError> =>
  head.lease?.workerId === workerId && head.lease.isLive
    ? Effect.succeed(true)
    : soon(store.acquire(head.runId, { workerId, lease: leaseMs, seen: head })).pipe(
        Effect.as(true),
        Effect.catch((error) => (error._tag === "StoreError" ? Effect.fail(error) : Effect.succeed(false)))
      )

/** Releases a run after any outcome of the work. */
export const letGo = (holder: Holder, runId: string, lease: Held): Effect.Effect<void, GiveBackError> =>
  lease.lost ? Effect.void : Effect.andThen(lastRenewal(lease), giveBack(holder, runId))

/** Releases a lease if it is held. A run that another worker can continue is offered instead. */
export const giveBack = ({ soon, store, workerId }: Holder, runId: string): Effect.Effect<void, GiveBackError> =>
  soon(
    ifHeld(store, runId, workerId, ({ status: { type } }) =>
      type === "waiting" || type === "cancelled" || type === "completed"
        ? store.release(runId, workerId)
        : offer(store, runId, workerId)
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
export const now: Effect.Effect<number> = Clock.clockWith((clock) => Effect.sync(() => monotonic(clock)))

const no = Exit.succeed(false)
