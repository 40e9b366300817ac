/**
 * Runs stored runs: a worker claims runs that no other worker holds, and continues them.
 *
 * A worker holds a run with a lease that it renews while the run is active. A worker that loses its lease stops at its
 * last record, and the store refuses everything it still appends. When a worker dies, its runs are claimed again after
 * their leases expire, with a backoff schedule. Runs that cannot be claimed cost little and do not hide one that can:
 * each poll reads a page of them, alternating between the oldest and the newest. A run past its deadline is claimed once
 * more to report that, and then not until its agent allows more time. A worker declines questions of its
 * runs that are not answered in time (see `Policy.confirm`), whichever process asked them. A worker that is interrupted
 * starts no new run, lets each run finish its step, and releases its leases.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as Worker from "./internal/worker/leasedRuns.ts"
import { type Options, isPassing } from "./internal/worker/workerOptions.ts"
import type { Kernel } from "./Kernel.ts"
import type { ConfigInvalid } from "./KernelError.ts"
import type { Runnable, Services } from "./RunDriver.ts"
import type { RunStore } from "./RunStore.ts"

export { isPassing, type Options }
export type { Runnable, Services, TakeUp, TakeUpError } from "./RunDriver.ts"

/** Options of agents that may need different services, and of a `resume` that may. */
type Given<A extends Runnable<unknown>, R> = Options<Services<A> | R> & { readonly agents: ReadonlyArray<A> }

// ---------------------------------------------------------------- running

/**
 * Runs stored runs until it is interrupted. Fails with `ConfigInvalid` before it polls for runs if its options cannot
 * be used.
 *
 * @example
 * const worker = RunWorker.run({ agents: [writer, reviewer] })
 *
 * @category running
 * @since 0.1.0
 */
export const run = <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Effect.Effect<never, ConfigInvalid, Kernel | RunStore | Services<A> | R> =>
  Effect.flatMap(Worker.make<Services<A> | R>(options), (worker) => worker.run)

/**
 * A worker that runs until the scope closes.
 *
 * @category models
 * @since 0.1.0
 */
export interface Running {
  /** Claims a run now, if it can be claimed and the worker has a place for it, instead of at the next poll. */
  readonly take: (runId: string) => Effect.Effect<void>
}

/**
 * Starts a worker that runs until the scope closes, for a host that knows which run is waiting. Fails with
 * `ConfigInvalid` for options that cannot be used.
 *
 * @example
 * const worker = yield* RunWorker.start({ agents: [clerk] })
 * yield* worker.take(yield* Kernel.submit(clerk, "Pay Eva."))
 *
 * @category running
 * @since 0.1.0
 */
export const start = <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Effect.Effect<Running, ConfigInvalid, Kernel | RunStore | Services<A> | R | Scope.Scope> =>
  Effect.flatMap(Worker.make<Services<A> | R>(options), ({ run, take }) => Effect.as(Effect.forkScoped(run), { take }))

/**
 * Runs stored runs until none is left to claim. Returns the number of runs it claimed. Fails with `ConfigInvalid` for
 * options that cannot be used.
 *
 * @category running
 * @since 0.1.0
 */
export const runOnce = <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Effect.Effect<number, ConfigInvalid, Kernel | RunStore | Services<A> | R> =>
  Effect.flatMap(Worker.make<Services<A> | R>(options), (worker) => worker.runOnce)

/**
 * Runs a worker for the lifetime of a layer. Fails with `ConfigInvalid` for options that cannot be used.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Layer.Layer<never, ConfigInvalid, Kernel | RunStore | Services<A> | R> => Layer.effectDiscard(start(options))
