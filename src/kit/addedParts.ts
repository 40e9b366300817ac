/**
 * References whose layers add to each other, wherever they are provided: a layer neither replaces one around it nor one
 * beside it in the same list.
 */

import * as Arr from "effect/Array"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"

/** The parts that layers and values of a reference add. */
export interface AddedParts<A> {
  /** Returns the parts in contexts, outermost first. A part that several contexts have is returned once. */
  readonly among: (...contexts: ReadonlyArray<Context.Context<never>>) => ReadonlyArray<A>
  /** Adds parts to those around the layer and beside it. */
  readonly layer: <E, R>(parts: Effect.Effect<A | ReadonlyArray<A>, E, R>) => Layer.Layer<never, E, R>
}

/** Creates the parts of a reference, whose own value is one of them, or a list of them. */
export const of = <A extends object>({
  key: own
}: Context.Reference<A | undefined> | Context.Reference<ReadonlyArray<A>>): AddedParts<A> => {
  const partsOf = ({ mapUnsafe }: Context.Context<never>): ReadonlyArray<A> =>
    [...mapUnsafe].flatMap(([key, given]) => ((key === own || key.startsWith(`${own}/`)) && given) || [])
  // Each part has its own key, so that two layers in one list do not replace each other or an outer part.
  const placed = (parts: ReadonlyArray<A>): Context.Context<never> =>
    Context.makeUnsafe(new Map([[`${own}/${places++}`, parts]]))
  return {
    among: (...contexts) => [...new Set(contexts.flatMap(partsOf))],
    layer: <E, R>(parts: Effect.Effect<A | ReadonlyArray<A>, E, R>) => {
      const made = Layer.effectContext(Effect.map(parts, (given) => placed(Arr.ensure<A>(given))))
      // The parts are built once, like every layer, but are added to what surrounds them wherever they are provided.
      return Layer.fromBuild((memoMap, scope) =>
        Effect.contextWith((outer: Context.Context<R>) =>
          Effect.map(Layer.buildWithMemoMap(made, memoMap, scope), (own) =>
            placed([...partsOf(outer), ...partsOf(own)])
          )
        )
      )
    }
  }
}

// Starts at a random number, so that keys differ from those of another copy of this module.
let places = Math.random()
