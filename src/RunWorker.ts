/**
 * Runs stored runs: a worker claims runs that no other worker holds, and continues them.
 *
 * A worker holds a run with a lease that it renews while the run is active. A worker that loses its lease stops at its
 * last record, and the store refuses everything it still appends. When a worker dies, its runs are claimed again after
 * their leases expire, with a backoff schedule. Runs that cannot be claimed cost little and do not hide one that can:
 * each poll reads a page of them, alternating between the oldest and the newest. A worker declines questions of its
 * runs that are not answered in time (see `Policy.confirm`), whichever process asked them. A worker that is interrupted
 * starts no new run, lets each run finish its step, and releases its leases.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { isPassing } from "./internal/worker/retries.ts"
import * as Worker from "./internal/worker/workerLoop.ts"
import type { Kernel } from "./Kernel.ts"
import type { ConfigInvalid } from "./KernelError.ts"
import type { RunStore } from "./RunStore.ts"
import { type Options, problem, type Runnable, type TakeUp, type TakeUpError } from "./internal/worker/workerOptions.ts"

export type { Options, Runnable, TakeUp, TakeUpError }

/**
 * The services that all agents need together.
 *
 * @category models
 * @since 0.1.0
 */
export type Services<A> = A extends Runnable<infer R> ? R : never

/** Options of agents that may need different services, and of a `resume` that may. */
type Given<A extends Runnable<unknown>, R> = Options<Services<A> | R> & { readonly agents: ReadonlyArray<A> }

export {
  /**
   * Returns true if a worker's run failed because of a temporary failure of its provider (see
   * `KernelError.ProviderReason`). Use it as part of `retries`.
   *
   * @category guards
   * @since 0.1.0
   */
  isPassing
}

// ---------------------------------------------------------------- running

/**
 * Runs stored runs until it is interrupted. Fails with `ConfigInvalid` before it looks for runs if its options cannot
 * be used.
 *
 * @example
 * const worker = RunWorker.run({ agents: [writer, reviewer] })
 *
 * @category running
 * @since 0.1.0
 */
export const run = Effect.fnUntraced(function* <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Effect.fn.Return<never, ConfigInvalid, Kernel | RunStore | Services<A> | R> {
  return yield* working(yield* Worker.make<Services<A> | R>(options), options)
})

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
export const start = Effect.fnUntraced(function* <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Effect.fn.Return<Running, ConfigInvalid, Kernel | RunStore | Services<A> | R | Scope.Scope> {
  const worker = yield* Worker.make<Services<A> | R>(options)
  yield* Effect.forkScoped(working(worker, options))
  return { take: worker.take }
})

/**
 * Looks for runs until it is interrupted, then lets active runs finish their step. Fills a free place with a waiting
 * run at once, and claims an offered run at once.
 */
const working = (worker: Worker.Worker, { pollInterval }: Pick<Options, "pollInterval">) => {
  const looking = Effect.andThen(worker.look, Effect.sleep(Duration.toMillis(pollInterval ?? worker.pollInterval)))
  const refilling = Effect.andThen(worker.freed, worker.lookOn)
  const all = [
    worker.offered,
    Effect.forever(looking),
    Effect.forever(refilling),
    Effect.forever(worker.due),
    worker.deadlines.watch(pollInterval ?? "5 seconds"),
    worker.deadlines.keep
  ]
  return Effect.onInterrupt(Effect.raceAllFirst(all), () => worker.drain)
}

/**
 * Runs stored runs until none is left to claim. Returns the number of runs it claimed. Fails with `ConfigInvalid` for
 * options that cannot be used.
 *
 * @category running
 * @since 0.1.0
 */
export const runOnce = Effect.fnUntraced(function* <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Effect.fn.Return<number, ConfigInvalid, Kernel | RunStore | Services<A> | R> {
  const worker = yield* Worker.make<Services<A> | R>(options)
  const work = Effect.gen(function* () {
    let taken = -1
    for (let now = 0; now > taken; now = yield* worker.settled) {
      taken = now
      yield* worker.lookAtAll
    }
    return taken
  })
  return yield* Effect.onInterrupt(work, () => worker.drain)
})

/**
 * Runs a worker for the lifetime of a layer. Fails with `ConfigInvalid` for options that cannot be used.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Layer.Layer<never, ConfigInvalid, Kernel | RunStore | Services<A> | R> => {
  const refused = problem(options)
  return Layer.effectDiscard(refused === undefined ? Effect.forkScoped(run(options)) : Effect.fail(refused))
}
