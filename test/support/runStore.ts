/**
 * The checks of run stores as tests, and stores that share their runs.
 */
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer, type Scope, Stream } from "effect"
import { RunStore } from "kernai"
import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { RunStoreSuite } from "../../src/testing/index.ts"
import { folder } from "./folder.ts"
import { type Kind, layerOf } from "./runStoreRacer.ts"

export { loads, put, putAll, resume, tagOf } from "../../src/testing/internal/runStore/check.ts"

/** A store of its own each time; what the layer points at is shared. */
export const open = <E, R>(layer: Layer.Layer<RunStore.RunStore, E, R>) =>
  Effect.map(Layer.build(Layer.fresh(layer)), (context) => Context.get(context, RunStore.RunStore))

/** One test for each check. */
export const suite = <E>(store: Effect.Effect<RunStore.Shape, E, Scope.Scope>): void => {
  for (const { name, run } of RunStoreSuite.checks(store)) it.effect(name, () => run, 30_000)
}

/** Lets two processes push one run on against each other, and checks what they were told against the journal. */
export const race = Effect.fnUntraced(function* (kind: Kind) {
  const directory = yield* folder
  const script = fileURLToPath(new URL("runStoreRacer.ts", import.meta.url))
  const racer = (workerId: string) =>
    Effect.map(
      Effect.tryPromise((signal) =>
        promisify(execFile)(process.execPath, [script, kind, directory, workerId], { signal })
      ),
      ({ stdout }): ReadonlyArray<readonly [number, string]> =>
        (JSON.parse(stdout) as ReadonlyArray<number>).map((revision) => [revision, workerId])
    )
  const won = yield* Effect.all([racer("a"), racer("b")], { concurrency: "unbounded" })
  const store = yield* open(layerOf(kind, directory))
  const stored = (yield* Stream.runCollect(store.read("race"))).map(
    ({ revision, workerId }): readonly [number, string] => [revision, workerId]
  )
  assert.deepStrictEqual(
    won.flat().toSorted(([a], [b]) => a - b),
    stored
  )
  assert.isAtLeast(stored.length, 60)
})
