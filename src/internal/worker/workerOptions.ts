/**
 * The options of a worker.
 */

import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import { ConfigInvalid } from "../../KernelError.ts"
import type { RunHead } from "../../RunStore.ts"
import { timeSpan } from "../../kit/time.ts"
import type * as Model from "./driverModel.ts"
import * as Retries from "./retries.ts"

/**
 * The options of a worker: those of its driver, and how it gets runs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<R = never> extends Model.Options<R> {
  /** How many runs it works on at once, at least 1. Default: 1. */
  readonly concurrency?: number | undefined
  /**
   * How long a run is held without renewal: at least one second, and not forever. The store counts it by its own clock,
   * and the worker by a clock that is never set, so no difference between clocks shortens or prolongs it. Default: 30
   * seconds.
   */
  readonly lease?: Duration.Input | undefined
  /**
   * How often it polls for runs that were never offered: those of workers that died, and those of processes that cannot
   * announce offers. It polls as often for questions with a deadline asked by other processes. Default: every five seconds,
   * for runs every second if the store emits no offers. By default it rests on a store that announces its changes (in
   * memory, SQLite, PostgreSQL without a pooler) while no run is queued or running: it polls after a change, and in a
   * database once a minute, as an announcement may be lost.
   */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * How long a run without a lease counts as active after its last record or that of one of its tasks. Records have the
   * times of the machine that wrote them, so allow for the differences between clocks. Default: 10 minutes, and 20 seconds
   * for a run that was stored and never offered, because its submitter died or a crash of the database lost the offer.
   */
  readonly orphanAfter?: Duration.Input | undefined
}

/**
 * Returns true if a run failed because of a temporary failure of its provider (see `KernelError.ProviderReason`) while a
 * worker had it. Use it as part of `retries`.
 *
 * @category guards
 * @since 0.1.0
 */
export const isPassing = (head: RunHead): boolean => head.lease !== undefined && Retries.isPassing(head)

/** Returns the error for an invalid lease. */
export const problem = ({ lease = leaseDefault }: Pick<Options, "lease">): ConfigInvalid | undefined => {
  const millis = Option.match(timeSpan(lease), { onNone: () => Number.NaN, onSome: Duration.toMillis })
  return millis >= 1_000 && millis <= longest
    ? undefined
    : new ConfigInvalid({ path: "lease", reason: "a lease must be finite and last at least one second" })
}

/** The default duration of a lease. */
export const leaseDefault: Duration.Input = "30 seconds"

/** The longest lease in milliseconds that every store can add to a time. */
const longest = 1e15
