import { readFileSync } from "node:fs"
import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { play, type Scenario } from "../support/durable.ts"
import { stores } from "../support/stores.ts"

const { scenarios }: { readonly scenarios: ReadonlyArray<Scenario> } = JSON.parse(
  readFileSync(new URL("../fixtures/vectors/durable-run.json", import.meta.url), "utf8")
)

for (const { isThere, name, place } of stores) {
  describe.skipIf(!isThere)(`durable runs on ${name} (DR-1 to DR-23)`, () => {
    const scope = Scope.makeUnsafe()
    afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const shared = Effect.runSync(
      Effect.cached(Effect.flatMap(Scope.provide(place, scope), (layer) => Layer.buildWithScope(layer, scope)))
    )
    for (const scenario of scenarios) {
      it.live(`${scenario.id}: ${scenario.title}`, () =>
        Effect.gen(function* () {
          assert.deepStrictEqual(yield* Effect.provideContext(play(scenario), yield* shared), [])
        })
      )
    }
  })
}
