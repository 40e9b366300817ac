/**
 * Hands what happens to one consumer, without ever making it wait to happen.
 *
 * `offer` is synchronous: it stores, and wakes the consumer once if it sleeps.
 * The consumer gets everything stored so far as one array. When more than
 * `limit` is stored, the oldest values that need not be kept are dropped; the
 * ones `keep` says yes to never are.
 */

import type * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"

/** A mailbox with one consumer. */
export interface Mailbox<in out A, in out E = never> {
  /** Stores a value. Does nothing once the mailbox has ended. */
  readonly offer: (value: A) => void
  /** Ends it: the consumer gets what is stored, then the end. */
  readonly end: () => void
  /** Ends it with a cause: the consumer gets what is stored, then the cause. */
  readonly fail: (cause: Cause.Cause<E>) => void
  /** Everything stored, as soon as there is something. */
  readonly take: Pull.Pull<Arr.NonEmptyReadonlyArray<A>, E>
  /** `take`, again and again. */
  readonly stream: Stream.Stream<A, E>
  /** Hands over at once, when `body` has ended, what it offered: one wake for many values, without waiting for the event loop. */
  readonly batch: <B>(body: () => B) => B
  /** Whether the next value that need not be kept drops one: a good moment for a producer to yield. */
  readonly isFull: () => boolean
  /** How many values were dropped so far. */
  readonly dropped: () => number
}

/** Makes a mailbox. `limit` is a number of values, `keep` tells which are never dropped. */
export const make = <A, E = never>(options: {
  readonly limit: number
  readonly keep: (value: A) => boolean
}): Mailbox<A, E> => {
  const { keep, limit } = options
  let stored: Arr.NonEmptyArray<A> | undefined
  let bound = slack(limit)
  let lost = 0
  let wake: ((next: Effect.Effect<Arr.NonEmptyReadonlyArray<A>, E | Cause.Done>) => void) | undefined
  let holding = false
  let exit: Effect.Effect<never, E | Cause.Done> | undefined

  const trim = (): void => {
    if (stored === undefined || stored.length <= limit) return
    const before = stored.length
    let excess = before - limit
    const kept = stored.filter((value) => {
      if (excess === 0 || keep(value)) return true
      excess -= 1
      return false
    })
    lost += before - kept.length
    stored = isNonEmpty(kept) ? kept : undefined
  }

  const drain = (): Arr.NonEmptyReadonlyArray<A> | undefined => {
    trim()
    const values = stored
    stored = undefined
    bound = slack(limit)
    return values
  }

  // One that is interrupted in its sleep leaves its call here: to call it then does nothing, and takes nothing.
  const take: Pull.Pull<Arr.NonEmptyReadonlyArray<A>, E> = Effect.callback((resume) => {
    const values = drain()
    if (values !== undefined) resume(Effect.succeed(values))
    else if (exit !== undefined) resume(exit)
    else wake = resume
  })

  // Taken when it is run: whoever was interrupted by then leaves what is stored to the next.
  const handOver: typeof take = Effect.sync(() => {
    const values = drain()
    if (values === undefined) throw new Error("empty mailbox")
    return values
  })

  const later = Effect.andThen(Effect.yieldNow, take)

  /** The consumer runs when the producer yields, and finds all that came until then. */
  const notify = (): void => {
    const resume = wake
    wake = undefined
    resume?.(later)
  }

  const offer = (value: A): void => {
    if (exit !== undefined) return
    if (stored === undefined) stored = [value]
    else stored.push(value)
    if (stored.length > bound) {
      trim()
      bound = slack(Math.max(limit, stored?.length ?? 0))
    }
    if (wake !== undefined && !holding) notify()
  }

  const batch = <B>(body: () => B): B => {
    if (holding) return body()
    holding = true
    try {
      return body()
    } finally {
      holding = false
      if (wake !== undefined) {
        trim()
        if (stored !== undefined) {
          const resume = wake
          wake = undefined
          resume(handOver)
        }
      }
    }
  }

  const close = (reason: Effect.Effect<never, E | Cause.Done>): void => {
    if (exit !== undefined) return
    exit = reason
    notify()
  }

  return {
    offer,
    batch,
    end: () => close(Cause.done()),
    fail: (cause) => close(Effect.failCause(cause)),
    take,
    stream: Stream.fromPull(Effect.succeed(take)),
    isFull: () => stored !== undefined && stored.length >= limit,
    dropped: () => lost
  }
}

/** Trimming a quarter at a time costs a few looks per value; trimming one by one would cost the whole buffer each time. */
const slack = (size: number): number => size + (size >> 2)

const isNonEmpty = <A>(values: Array<A>): values is Arr.NonEmptyArray<A> => values.length > 0
