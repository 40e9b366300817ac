import { afterAll, assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { play, type Scenario, unknownIn } from "../support/durable.ts"
import { stores } from "../support/stores.ts"
import { load, tally } from "../support/vectors.ts"

const { scenarios } = load<{ readonly scenarios: ReadonlyArray<Scenario> }>("durable-run", {
  // Each scenario is looked through before it is played.
  scenarios: true
})

for (const { isThere, name, place } of stores) {
  describe.skipIf(!isThere)(`durable runs on ${name} (DR-1 to DR-23)`, () => {
    const scope = Scope.makeUnsafe()
    afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))
    const shared = Effect.runSync(
      Effect.cached(Effect.flatMap(Scope.provide(place, scope), (layer) => Layer.buildWithScope(layer, scope)))
    )
    const count = tally(`durable-run.${name}`)
    for (const scenario of scenarios) {
      const unknown = unknownIn(scenario)
      if (unknown !== undefined) {
        count.skip(`${scenario.id}: ${unknown}`)
        continue
      }
      it.live(`${scenario.id}: ${scenario.title}`, () =>
        Effect.gen(function* () {
          count.ran()
          assert.deepStrictEqual(yield* Effect.provideContext(play(scenario), yield* shared), [])
        })
      )
    }
    count.report()
  })
}
