/**
 * Runs what others stored: a worker claims runs nobody holds and takes them up where they stand.
 *
 * A run is held by a lease that is renewed while it runs; whoever loses its
 * lease stops where it stands, and the store refuses whatever it still sends
 * . Runs whose worker died are taken up again when their lease has ended,
 * by a schedule. Thousands that cannot be taken up neither cost much nor hide one
 * that can: a look reads a page of them, the oldest in turn with the newest. A
 * worker that is interrupted starts nothing new, lets each run come to the end of
 * its step, and gives its leases back.
 *
 * @since 0.1.0
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { isPassing } from "./internal/worker/pollBackoff.ts"
import * as Worker from "./internal/worker/workerLoop.ts"
import type { Kernel } from "./Kernel.ts"
import type { ConfigInvalid } from "./KernelError.ts"
import type { RunStore } from "./RunStore.ts"
import { type Options, problem, type Runnable, type TakeUp, type TakeUpError } from "./internal/worker/workerOptions.ts"

export type { Options, Runnable, TakeUp, TakeUpError }

/**
 * What agents need, together.
 *
 * @category models
 * @since 0.1.0
 */
export type Services<A> = A extends Runnable<infer R> ? R : never

/** Options of agents that may each need something else, and of a `resume` that may. */
type Given<A extends Runnable<unknown>, R> = Options<Services<A> | R> & { readonly agents: ReadonlyArray<A> }

export {
  /**
   * Whether a worker had this run, and its provider failed for a reason that may pass (see `KernelError.ProviderReason`):
   * a part of what `retries` may say.
   *
   * @category guards
   * @since 0.1.0
   */
  isPassing
}

// ---------------------------------------------------------------- running

/**
 * Works until it is interrupted. Fails with `ConfigInvalid` when its options cannot be used, before it looks for runs.
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
  const worker = yield* Worker.make<Services<A> | R>(options)
  const poll = Duration.toMillis(options.pollInterval ?? "1 second")
  return yield* Effect.onInterrupt(Effect.forever(Effect.andThen(worker.look, Effect.sleep(poll))), () => worker.drain)
})

/**
 * Works until nothing is left that can be taken up now, and returns how many runs it took up. Fails with `ConfigInvalid`
 * when its options cannot be used.
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
 * Works as long as the layer is open. The layer fails with `ConfigInvalid` when the options cannot be used.
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
