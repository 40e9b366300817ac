/**
 * Waits for cancellations that any process may store.
 *
 * One query asks about all runs that are waited for. It is repeated when the store announces a change of one of them,
 * and at an interval. Nothing happens while no run is waited for.
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"

/** The runs whose cancellation is waited for. */
export interface Cancellations {
  /** Succeeds once a run is cancelled. */
  readonly of: (runId: string) => Effect.Effect<void>
  /** Ends the wait for a cancelled run. Synchronous. */
  readonly tell: (runId: string) => void
  /** Asks again soon, because something happened to a run. Synchronous. */
  readonly announce: (runId: string) => void
}

/** How cancellations by other processes are found. */
export interface Options {
  /** Returns which of these runs are cancelled. A failure is ignored, since the next query follows. */
  readonly look: (runIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, unknown>
  /** The longest wait for an announcement before the next query. Default: 20 milliseconds. */
  readonly interval?: Duration.Input | undefined
}

/** Waits for runs. Without options, all cancellations come from this process. */
export const make = (options?: Options): Cancellations => {
  const waiting = new Map<string, Set<() => void>>()
  const announced = Latch.makeUnsafe()
  let looking: Fiber.Fiber<unknown, unknown> | undefined

  const tell = (runId: string): void => {
    for (const done of waiting.get(runId) ?? []) done()
  }

  const looks = (options: Options) => {
    const look = Effect.suspend(() => {
      announced.closeUnsafe()
      return Effect.map(options.look([...waiting.keys()]), (cancelled) => cancelled.forEach(tell))
    })
    const pause = Effect.race(announced.await, Effect.sleep(options.interval ?? spacing))
    // A short run ends before the first query.
    return Effect.forever(Effect.andThen(Effect.sleep(spacing), Effect.andThen(Effect.ignore(look), pause)))
  }

  const leave = (runId: string, done: () => void): void => {
    const others = waiting.get(runId)
    if (others?.delete(done) === true && others.size === 0) waiting.delete(runId)
    if (waiting.size > 0) return
    looking?.interruptUnsafe()
    looking = undefined
  }

  const wait = (runId: string, fiber: Fiber.Fiber<unknown, unknown>) =>
    Effect.callback<void>((resume) => {
      const done = () => {
        leave(runId, done)
        resume(Effect.void)
      }
      waiting.set(runId, (waiting.get(runId) ?? new Set()).add(done))
      announced.openUnsafe()
      if (options !== undefined) looking ??= Effect.runForkWith(fiber.context)(looks(options))
      return Effect.sync(() => leave(runId, done))
    })

  return {
    of: (runId) => Effect.withFiber((fiber) => wait(runId, fiber)),
    tell,
    announce: (runId) => {
      if (waiting.has(runId)) announced.openUnsafe()
    }
  }
}

/** The shortest time between two queries, since a busy run is announced constantly. */
const spacing = "20 millis"
