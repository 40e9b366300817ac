/**
 * Keeps the lease of a worker on a run: renews it until it is lost, and releases it when the work is over.
 */

import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import type { ConcurrentAppendError, RunBusy, RunExists, RunNotFound, StoreError } from "../../KernelError.ts"
import type { RunHead, RunStoreShape as RunStore } from "../../RunStore.ts"
import { inTime } from "../base/effects.ts"
import { monotonic } from "../base/monotonic.ts"
import { ifHeld, offer } from "../loop/queue.ts"

/** Who holds runs, and for how long a lease of theirs lasts when it is not renewed. */
export interface Holder {
  readonly store: RunStore
  readonly workerId: string
  readonly leaseMs: number
  /** Waits for what the store is asked, though not for ever. */
  readonly soon: <A, E>(asked: Effect.Effect<A, E>) => Effect.Effect<A, E | StoreError>
}

/** A lease in this process. */
export interface Held {
  /** When it ends if it is not renewed, by the monotonic clock of this process. The store ends it no earlier. */
  until: number
  lost: boolean
  /** The last one that was asked for. */
  renewal?: Fiber.Fiber<unknown, unknown>
}

/** A store that fails, or a run that is gone or taken by another worker. */
type GiveBackError = RunBusy | RunNotFound | RunExists | ConcurrentAppendError | StoreError

/** Renews a lease until it is lost: another has it, or it has ended. */
export const renew = Effect.fnUntraced(function* ({ leaseMs, store, workerId }: Holder, runId: string, lease: Held) {
  while (!lease.lost) {
    yield* Effect.sleep(Math.min(leaseMs / 3, yield* leftOf(lease)))
    const left = yield* leftOf(lease)
    const until = (yield* now) + leaseMs
    const asked = Effect.withFiber((fiber) => {
      lease.renewal = fiber
      return Effect.as(store.acquire(runId, { workerId, lease: leaseMs }), true)
    })
    // A store that fails is asked again until the lease is over, one that does not answer is waited for until then.
    const renewed = left > 0 ? yield* Effect.exit(inTime(asked, left, () => no)) : no
    if (Exit.isSuccess(renewed) && renewed.value) lease.until = until
    else lease.lost = Exit.isSuccess(renewed) || isTaken(renewed.cause)
  }
})

/**
 * Proves by the head of a run that a worker holds it. A lease that has expired while nothing happened to the run is taken
 * again: the clock of the store may have been set.
 */
export const proves = ({ leaseMs, soon, store, workerId }: Holder, head: RunHead): Effect.Effect<boolean, StoreError> =>
  head.lease?.workerId === workerId && head.lease.isLive
    ? Effect.succeed(true)
    : soon(store.acquire(head.runId, { workerId, lease: leaseMs, seen: head })).pipe(
        Effect.as(true),
        Effect.catch((error) => (error._tag === "StoreError" ? Effect.fail(error) : Effect.succeed(false)))
      )

/** Lets go of a run, whatever came of it. */
export const letGo = (holder: Holder, runId: string, lease: Held): Effect.Effect<void, GiveBackError> =>
  lease.lost ? Effect.void : Effect.andThen(lastRenewal(lease), giveBack(holder, runId))

/** Gives a lease back, if it is held. A run that another worker can go on with is offered to it. */
export const giveBack = ({ soon, store, workerId }: Holder, runId: string): Effect.Effect<void, GiveBackError> =>
  soon(
    ifHeld(store, runId, workerId, ({ status: { type } }) =>
      type === "waiting" || type === "cancelled" || type === "completed"
        ? store.release(runId, workerId)
        : offer(store, runId, workerId)
    )
  )

/** Whether it is no failure of the store that a lease was not given: another has it. */
export const isTaken = (cause: Cause.Cause<GiveBackError>): boolean =>
  cause.reasons.some((reason) => Cause.isFailReason(reason) && reason.error._tag !== "StoreError")

/** Waits for the last renewal, which nothing may stop: it would hold again what was given back. The lease may end first. */
const lastRenewal = Effect.fnUntraced(function* (lease: Held) {
  if (lease.renewal === undefined) return
  yield* inTime(Fiber.await(lease.renewal), yield* leftOf(lease), () => Effect.void)
})

/** How long a lease lasts if it is not renewed. */
const leftOf = ({ until }: Held): Effect.Effect<number> => Effect.map(now, (now) => Math.max(0, until - now))

/** The time by which a worker counts its own leases. */
export const now: Effect.Effect<number> = Clock.clockWith((clock) => Effect.sync(() => monotonic(clock)))

const no = Exit.succeed(false)
