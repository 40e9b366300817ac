/**
 * Folds over the pulls of a stream, and a mailbox between a synchronous producer and one consumer.
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import * as Pull from "effect/Pull"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"

/** A mutable fold of arrays of values that arrived together. `failure` is set once it accepts no more values. */
interface Fold<A, B, F> {
  readonly failure: F | undefined
  readonly pushAll: (input: ReadonlyArray<A>) => ReadonlyArray<B>
  readonly flush: () => ReadonlyArray<B>
}

/**
 * Turns a pull of a fold's input into a pull of its output.
 *
 * Output that precedes a failure or the end is emitted before it. The fold is flushed when the source ends, not when
 * it fails.
 */
export const foldPull = <A, B, E, F>(
  pull: Pull.Pull<Arr.NonEmptyReadonlyArray<A>, E, void>,
  fold: Fold<A, B, F>
): Pull.Pull<Arr.NonEmptyReadonlyArray<B>, E | F, void> => {
  type Out = Pull.Pull<Arr.NonEmptyReadonlyArray<B>, E | F, void>
  const endWith = (end: Out, output: ReadonlyArray<B>): Out => {
    step = end
    return Arr.isReadonlyArrayNonEmpty(output) ? Effect.succeed(output) : end
  }
  let step: Out = Effect.matchCauseEffect(pull, {
    onSuccess: (input): Out => {
      const output = fold.pushAll(input)
      if (fold.failure !== undefined) return endWith(Effect.fail(fold.failure), output)
      return Arr.isReadonlyArrayNonEmpty(output) ? Effect.succeed(output) : step
    },
    onFailure: (cause): Out => {
      if (!Pull.isDoneCause(cause)) return endWith(Effect.failCause(cause), [])
      const output = fold.flush()
      return endWith(fold.failure === undefined ? Effect.failCause(cause) : Effect.fail(fold.failure), output)
    }
  })
  return Effect.suspend(() => step)
}

/**
 * Returns a stream of the current value and of every change, until the scope closes. When a slow reader has 16 values
 * waiting, the oldest are dropped.
 */
export const latest = <A>(
  ref: SubscriptionRef.SubscriptionRef<A>
): Effect.Effect<Stream.Stream<A>, never, Scope.Scope> =>
  Effect.as(
    Effect.addFinalizer(() => PubSub.shutdown(ref.pubsub)),
    Stream.buffer(SubscriptionRef.changes(ref), { capacity: 16, strategy: "sliding" })
  )

/**
 * A mailbox with one consumer.
 *
 * `offer` never waits: it stores a value and wakes a sleeping consumer once. The consumer takes all stored values as one
 * array. Above `limit` stored values, the oldest ones that `keep` does not protect are dropped.
 */
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
  /** Runs `body`, then wakes the consumer once for all values it offered. */
  readonly batch: <B>(body: () => B) => B
  /** Returns whether another unprotected value would drop one. If so, a producer should yield. */
  readonly isFull: () => boolean
  /** Returns whether the consumer has worked through all values and waits for more. */
  readonly isIdle: () => boolean
  /** Returns how many values have been dropped. */
  readonly dropped: () => number
}

/** Creates a mailbox for `limit` values. Values for which `keep` returns true are never dropped. */
export const mailbox = <A, E = never>(options: {
  readonly limit: number
  readonly keep: (value: A) => boolean
}): Mailbox<A, E> => {
  const stored = new Stored(options.limit, options.keep)
  let wake: ((next: Effect.Effect<Arr.NonEmptyReadonlyArray<A>, E | Cause.Done>) => void) | undefined
  let isBatch = false
  let exit: Effect.Effect<never, E | Cause.Done> | undefined

  // The values are taken when this runs, so a consumer that is interrupted earlier leaves them to the next `take`.
  // Calling its stale `resume` does nothing.
  const take: Pull.Pull<Arr.NonEmptyReadonlyArray<A>, E> = Effect.callback((resume) => {
    const values = stored.drain()
    if (values !== undefined) resume(Effect.succeed(values))
    else if (exit !== undefined) resume(exit)
    else wake = resume
  })

  const takeLater = Effect.andThen(Effect.yieldNow, take)

  /** Wakes a sleeping consumer. */
  const notify = (next: typeof take): void => {
    const resume = wake
    wake = undefined
    resume?.(next)
  }

  const close = (reason: Effect.Effect<never, E | Cause.Done>): void => {
    if (exit !== undefined) return
    exit = reason
    notify(takeLater)
  }

  return {
    offer: (value) => {
      if (exit !== undefined) return
      stored.add(value)
      // The consumer runs once the producer yields, and takes everything stored by then.
      if (wake !== undefined && !isBatch) notify(takeLater)
    },
    batch: (body) => {
      if (isBatch) return body()
      isBatch = true
      try {
        return body()
      } finally {
        isBatch = false
        if (wake !== undefined && stored.size > 0) notify(take)
      }
    },
    end: () => close(Cause.done()),
    fail: (cause) => close(Effect.failCause(cause)),
    take,
    stream: Stream.fromPull(Effect.succeed(take)),
    isFull: () => stored.size >= options.limit,
    isIdle: () => wake !== undefined && stored.size === 0,
    dropped: () => stored.dropped
  }
}

/** Stored values. Above the limit, the oldest values that `keep` does not protect are dropped. */
class Stored<A> {
  dropped = 0
  readonly #limit: number
  readonly #keep: (value: A) => boolean
  #values: Arr.NonEmptyArray<A> | undefined
  #bound: number

  constructor(limit: number, keep: (value: A) => boolean) {
    this.#limit = limit
    this.#keep = keep
    this.#bound = slack(limit)
  }

  get size(): number {
    return this.#values?.length ?? 0
  }

  add(value: A): void {
    if (this.#values === undefined) this.#values = [value]
    else this.#values.push(value)
    if (this.#values.length <= this.#bound) return
    this.#trim()
    this.#bound = slack(Math.max(this.#limit, this.size))
  }

  drain(): Arr.NonEmptyReadonlyArray<A> | undefined {
    this.#trim()
    const values = this.#values
    this.#values = undefined
    this.#bound = slack(this.#limit)
    return values
  }

  #trim(): void {
    const values = this.#values
    if (values === undefined || values.length <= this.#limit) return
    let excess = values.length - this.#limit
    const kept = values.filter((value) => {
      if (excess === 0 || this.#keep(value)) return true
      excess -= 1
      return false
    })
    this.dropped += values.length - kept.length
    this.#values = isNonEmpty(kept) ? kept : undefined
  }
}

/**
 * Returns the size at which to trim. Trimming a quarter at a time costs a few steps per value, while trimming one by
 * one would copy the buffer each time.
 */
const slack = (size: number): number => size + (size >> 2)

const isNonEmpty = <A>(values: Array<A>): values is Arr.NonEmptyArray<A> => values.length > 0
