/**
 * A buffer between a synchronous producer and one consumer.
 *
 * `offer` never waits: it stores a value and wakes a sleeping consumer once. The consumer takes all stored values as
 * one array. Above `limit` stored values, the oldest ones that `keep` does not protect are dropped.
 */

import type * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"

/** A mailbox with one consumer. */
export interface Mailbox<in out A, in out E = never> {
  /** Stores a value. Does nothing after the mailbox has ended. */
  readonly offer: (value: A) => void
  /** Ends the mailbox: the consumer takes what is stored, then the end. */
  readonly end: () => void
  /** Ends the mailbox with a cause: the consumer takes what is stored, then the cause. */
  readonly fail: (cause: Cause.Cause<E>) => void
  /** Takes all stored values, waiting for the first. */
  readonly take: Pull.Pull<Arr.NonEmptyReadonlyArray<A>, E>
  /** A stream of everything taken. */
  readonly stream: Stream.Stream<A, E>
  /** Runs `body` and wakes the consumer once, at once, for all values it offered. */
  readonly batch: <B>(body: () => B) => B
  /** Would another unprotected value drop one? If so, a producer should yield. */
  readonly isFull: () => boolean
  /** How many values have been dropped. */
  readonly dropped: () => number
}

/** Makes a mailbox for `limit` values. Values for which `keep` returns true are never dropped. */
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

  // An interrupted consumer leaves its `resume` behind; calling that does nothing and takes nothing.
  const take: Pull.Pull<Arr.NonEmptyReadonlyArray<A>, E> = Effect.callback((resume) => {
    const values = drain()
    if (values !== undefined) resume(Effect.succeed(values))
    else if (exit !== undefined) resume(exit)
    else wake = resume
  })

  // The values are taken when this runs, so a consumer interrupted before that leaves them to the next `take`.
  const handOver: typeof take = Effect.sync(() => {
    const values = drain()
    if (values === undefined) throw new Error("empty mailbox")
    return values
  })

  const later = Effect.andThen(Effect.yieldNow, take)

  /** Wakes the consumer. It runs once the producer yields, and takes everything stored by then. */
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

/** Trimming a quarter at a time costs a few steps per value; trimming one by one would copy the buffer each time. */
const slack = (size: number): number => size + (size >> 2)

const isNonEmpty = <A>(values: Array<A>): values is Arr.NonEmptyArray<A> => values.length > 0
