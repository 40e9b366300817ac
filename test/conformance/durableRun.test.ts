import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { RunStore } from "kernai"
import { play, type Scenario } from "../support/durable.ts"

const { scenarios }: { readonly scenarios: ReadonlyArray<Scenario> } = JSON.parse(
  readFileSync(new URL("../fixtures/vectors/durable-run.json", import.meta.url), "utf8")
)

describe("durable runs on the memory store (DR-1 to DR-23)", () => {
  for (const scenario of scenarios) {
    it.live(`${scenario.id}: ${scenario.title}`, () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* play(scenario), [])
      }).pipe(Effect.provide(RunStore.layerMemory))
    )
  }
})
