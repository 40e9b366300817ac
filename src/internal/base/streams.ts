/**
 * Streams with as little as possible between their pulls, as each token of a reply passes through on its own.
 */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"

/** Returns the stream an effect produces. The effect runs when the stream starts and may use its scope. */
export const begin = <A, E, R, E2, R2>(
  open: (scope: Scope.Scope) => Effect.Effect<Stream.Stream<A, E, R>, E2, R2>
): Stream.Stream<A, E | E2, R | R2> =>
  Stream.fromChannel(
    Channel.fromTransform((upstream: Pull.Pull<unknown, unknown, unknown>, scope) =>
      Effect.flatMap(open(scope), (stream) => Channel.toTransform(Stream.toChannel(stream))(upstream, scope))
    )
  )

/** Passes each array to `take`. If `take` returns an effect, it runs before the next array is pulled. */
export const runForEachArray = <A, E, R, E2, R2>(
  self: Stream.Stream<A, E, R>,
  take: (values: Arr.NonEmptyReadonlyArray<A>) => Effect.Effect<unknown, E2, R2> | undefined
): Effect.Effect<void, E | E2, R | R2> =>
  Effect.suspend(() => {
    const scope = Scope.makeUnsafe()
    const reading = Effect.flatMap(Channel.toTransform(Stream.toChannel(self))(Cause.done(), scope), (pull) => {
      const loop: Effect.Effect<never, E | E2 | Cause.Done, R2> = Effect.flatMap(pull, (values) => {
        const first = take(values)
        return first === undefined ? loop : Effect.andThen(first, loop)
      })
      return loop
    })
    return Effect.onExit(
      Pull.catchDone(reading, () => Effect.void),
      (exit) => Scope.closeUnsafe(scope, exit) ?? Effect.void
    )
  })

/** A mutable fold of arrays of values that arrived together. `failure` is set once it can take no more. */
export interface Fold<A, B, F> {
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
