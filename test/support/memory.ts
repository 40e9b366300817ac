/**
 * The checks of memories as tests.
 */
import { it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { Memory } from "kernai"
import { MemorySuite } from "kernai/testing"

/** One test for each check, with a memory of its own. */
export const memorySuite = <E>(layer: Layer.Layer<Memory.Memory, E>): void => {
  const open = Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, Memory.Memory))
  for (const { name, run } of MemorySuite.checks(open)) it.effect(name, () => run, 60_000)
}
