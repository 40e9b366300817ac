/**
 * Streams with nothing between their pulls.
 *
 * A token that comes alone passes every effect of its stream alone: what these
 * two leave out is paid for each of them.
 */

import type * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Channel from "effect/Channel"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"

/** The stream an effect gives, begun where this one is. The effect may use the scope of the stream. */
export const begin = <A, E, R, E2, R2>(
  open: (scope: Scope.Scope) => Effect.Effect<Stream.Stream<A, E, R>, E2, R2>
): Stream.Stream<A, E | E2, R | R2> =>
  Stream.fromChannel(
    Channel.fromTransform((upstream: Pull.Pull<unknown, unknown, unknown>, scope) =>
      Effect.flatMap(open(scope), (stream) => Channel.toTransform(Stream.toChannel(stream))(upstream, scope))
    )
  )

/** Gives each array to `take`, and goes on: after what `take` asks for, else at once. */
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
