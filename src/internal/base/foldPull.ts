/**
 * Puts a fold into a pipeline: a pull of its input becomes a pull of its output.
 *
 * What the fold found is told before the failure or the end that follows it.
 * Only a source that ended is flushed; a failing one ends the output where it is.
 */

import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Pull from "effect/Pull"

/** A mutable fold, fed arrays of what arrived together. */
export interface Fold<A, B, F> {
  readonly failure: F | undefined
  readonly pushAll: (input: ReadonlyArray<A>) => ReadonlyArray<B>
  readonly flush: () => ReadonlyArray<B>
}

/** The pull of what a fold makes of what is pulled. */
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
