/**
 * Polls for records and cancellations stored by any process.
 *
 * Each wait ends when the store announces a change of the run, or after an interval.
 *
 * @since 0.1.0
 */

import * as Cause from "effect/Cause"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import * as Stream from "effect/Stream"
import type { RunRecord } from "../RunState.ts"

/**
 * The readers of each run.
 *
 * @category models
 * @since 0.1.0
 */
export interface Followers {
  /** Wakes the readers of a run, or all readers. */
  readonly wake: (runId?: string) => void
  /** Returns whether anyone waits for a run. */
  readonly has: (runId: string) => boolean
  /** Waits until `wake` is called for any run. */
  readonly next: Effect.Effect<void>
  /** Ends the streams of all present and future readers. */
  readonly end: Effect.Effect<void>
  /** Emits the records, read a page at a time. */
  readonly follow: <E>(options: Following<E>) => Stream.Stream<RunRecord, E>
}

/**
 * Creates followers without readers.
 *
 * Readers sleep until a change of the run is announced or the interval ends. An announcement between a query and the
 * sleep prevents the sleep, so no record is missed and none arrives twice.
 *
 * @category constructors
 * @since 0.1.0
 */
export const followers = (): Followers => {
  const followers = new Map<string, Set<() => void>>()
  const waiting = new Set<() => void>()
  let isOver = false

  const wake: Followers["wake"] = (runId) => {
    const woken = runId === undefined ? [...followers.values()] : [followers.get(runId) ?? []]
    for (const set of woken) for (const follower of set) follower()
    // A fiber that is resumed may wait for the next change at once.
    const waiters = [...waiting]
    waiting.clear()
    for (const waiter of waiters) waiter()
  }

  const follow = <E>({ from, interval, page, runId }: Following<E>): Stream.Stream<RunRecord, E> =>
    Stream.unwrap(
      Effect.gen(function* () {
        const latch = Latch.makeUnsafe()
        yield* Effect.acquireRelease(
          Effect.sync(() => join(followers, runId, () => latch.openUnsafe())),
          (leave) => Effect.sync(leave)
        )
        const sleep = Effect.race(latch.await, Effect.sleep(interval))
        let after = from
        // A read may fail because the store is closing.
        const unlessOver = (error: E): Effect.Effect<never, E | Cause.Done> =>
          isOver ? Cause.done() : Effect.fail(error)
        const poll: Effect.Effect<ReadonlyArray<RunRecord>, E | Cause.Done> = Effect.suspend(() => {
          latch.closeUnsafe()
          if (isOver) return Cause.done()
          return Effect.flatMap(Effect.catch(page(after), unlessOver), (records) => {
            after = records.at(-1)?.revision ?? after
            return records.length > 0 ? Effect.succeed(records) : Effect.andThen(sleep, poll)
          })
        })
        return Stream.fromIterableEffectRepeat(poll)
      })
    )

  const end = Effect.sync(() => {
    isOver = true
    wake()
  })

  const next = Effect.callback<void>((resume) => {
    const woken = () => resume(Effect.void)
    waiting.add(woken)
    return Effect.sync(() => waiting.delete(woken))
  })

  return { wake, has: (runId) => waiting.size > 0 || followers.has(runId), next, end, follow }
}

/** Adds a follower of a run. Returns how to remove it. */
const join = (followers: Map<string, Set<() => void>>, runId: string, follower: () => void) => {
  const set = followers.get(runId) ?? new Set()
  followers.set(runId, set.add(follower))
  return () => {
    set.delete(follower)
    if (set.size === 0) followers.delete(runId)
  }
}

/**
 * Waits for cancellations of runs.
 *
 * @category models
 * @since 0.1.0
 */
export interface Cancellations {
  /** Succeeds once a run is cancelled. */
  readonly of: (runId: string) => Effect.Effect<void>
  /** Ends the wait for a cancelled run. Synchronous. */
  readonly complete: (runId: string) => void
  /** Makes the next query happen soon, because a run has changed. Synchronous. */
  readonly announce: (runId: string) => void
}

/**
 * Options of cancellations that other processes store, too.
 *
 * @category models
 * @since 0.1.0
 */
export interface CancellationOptions {
  /** Returns which of these runs are cancelled. A failure is ignored, since the next query follows. */
  readonly findCancelled: (runIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, unknown>
  /** The longest wait for an announcement before the next query. Default: 20 milliseconds. */
  readonly interval?: Duration.Input | undefined
}

/**
 * Creates the waits for cancellations. Without options, all cancellations come from this process.
 *
 * One query covers all runs with a waiter. It is repeated when the store announces a change of one of them, and at an
 * interval. There are no queries without waiters.
 *
 * @category constructors
 * @since 0.1.0
 */
export const cancellations = (options?: CancellationOptions): Cancellations => {
  const waiting = new Map<string, Set<() => void>>()
  const announced = Latch.makeUnsafe()
  let polling: Fiber.Fiber<unknown, unknown> | undefined

  const complete = (runId: string): void => {
    for (const done of waiting.get(runId) ?? []) done()
  }

  const polls = (options: CancellationOptions) => {
    const poll = Effect.suspend(() => {
      announced.closeUnsafe()
      return Effect.map(options.findCancelled([...waiting.keys()]), (cancelled) => cancelled.forEach(complete))
    })
    const pause = Effect.race(announced.await, Effect.sleep(options.interval ?? spacing))
    const polled = Effect.andThen(Effect.ignore(poll), Effect.sleep(spacing))
    // Sleeps first, because a short run ends before the first query.
    return Effect.andThen(Effect.sleep(spacing), Effect.forever(Effect.andThen(polled, pause)))
  }

  const leave = (runId: string, done: () => void): void => {
    const others = waiting.get(runId)
    if (others?.delete(done) === true && others.size === 0) waiting.delete(runId)
    if (waiting.size > 0) return
    polling?.interruptUnsafe()
    polling = undefined
  }

  const wait = (runId: string, fiber: Fiber.Fiber<unknown, unknown>) =>
    Effect.callback<void>((resume) => {
      const done = () => {
        leave(runId, done)
        resume(Effect.void)
      }
      waiting.set(runId, (waiting.get(runId) ?? new Set()).add(done))
      announced.openUnsafe()
      if (options !== undefined) polling ??= Effect.runForkWith(fiber.context)(polls(options))
      return Effect.sync(() => leave(runId, done))
    })

  return {
    of: (runId) => Effect.withFiber((fiber) => wait(runId, fiber)),
    complete,
    announce: (runId) => {
      if (waiting.has(runId)) announced.openUnsafe()
    }
  }
}

/** The run to follow, and how to read it. */
interface Following<E> {
  readonly runId: string
  readonly from: number
  /** Returns the next records after a revision. Empty if there are none yet. */
  readonly page: (after: number) => Effect.Effect<ReadonlyArray<RunRecord>, E>
  /** The longest sleep. */
  readonly interval: Duration.Input
}

/** The shortest time between two queries, because a busy run is announced constantly. */
const spacing = "20 millis"
