/**
 * Drives stored runs: decides what a run needs next, attempts it, and brings it to rest.
 *
 * A driver is the same for every way to get runs. A `RunWorker` claims them by leases of their store, a runner of
 * `ClusterKernel` receives messages; both give the runs they have to a driver. Use one to get runs in another way, from
 * a queue for instance: call `drive` with each run, and again at the time it returns.
 *
 * The driver knows how many runs it may drive at once, counts attempts by the journal, waits between them, fails a run
 * that crashes too often, declines questions after their deadline, stops a run whose claim is lost, and lets it finish
 * its step when the attempt is interrupted.
 *
 * @example
 * const consumer = Effect.gen(function* () {
 *   const driver = yield* RunDriver.make({ agents: [clerk], concurrency: 16 })
 *   yield* Stream.runForEach(messages, ({ acknowledge, isExpired, runId, sendAgainAt }) =>
 *     Effect.gen(function* () {
 *       const driven = yield* driver.drive(runId, { isLost: isExpired })
 *       if (driven._tag === "AtRest" && driven.next !== undefined) yield* sendAgainAt(driven.next.at)
 *       if (driven._tag !== "UnknownAgent") yield* acknowledge
 *     })
 *   )
 * })
 *
 * @since 0.1.0
 */

import type * as Effect from "effect/Effect"
import * as Driver from "./internal/worker/driver.ts"
import type { Options, RunDriver, Runnable } from "./internal/worker/driverModel.ts"
import type { Kernel } from "./Kernel.ts"
import type { ConfigInvalid } from "./KernelError.ts"
import type { RunStore } from "./RunStore.ts"

export type {
  Asked,
  Claim,
  Driven,
  Next,
  Options,
  RunDriver,
  Runnable,
  TakeUp,
  TakeUpError
} from "./internal/worker/driverModel.ts"

export { answerBy } from "./internal/store/runStatus.ts"
export { isPassing } from "./internal/worker/retries.ts"

/**
 * The services that all agents need together.
 *
 * @category models
 * @since 0.1.0
 */
export type Services<A> = A extends Runnable<infer R> ? R : never

/**
 * Options of agents that may need different services, and of a `resume` that may.
 *
 * @category models
 * @since 0.1.0
 */
export type Given<A extends Runnable<unknown>, R> = Options<Services<A> | R> & { readonly agents: ReadonlyArray<A> }

/**
 * Creates a driver without runs. Fails with `ConfigInvalid` for options that cannot be used.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <A extends Runnable<unknown>, R = never>(
  options: Given<A, R>
): Effect.Effect<RunDriver, ConfigInvalid, Kernel | RunStore | Services<A> | R> => Driver.make<Services<A> | R>(options)
