/**
 * The checks of media stores as tests.
 */
import { it } from "@effect/vitest"
import { Context, Effect, Layer, type Scope } from "effect"
import { MediaStore } from "kernai"
import { MediaStoreSuite } from "kernai/testing"

/** A store of its own each time; what the layer points at is shared. */
export const open = <E, R>(layer: Layer.Layer<MediaStore.MediaStore, E, R>) =>
  Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, MediaStore.MediaStore))

/** One test for each check. */
export const suite = <E>(
  store: Effect.Effect<MediaStore.MediaStoreShape, E, Scope.Scope>,
  options: { readonly durable: boolean }
): void => {
  for (const { name, run } of MediaStoreSuite.checks(store, options)) it.effect(name, () => run, 30_000)
}
