import { assert, describe, it } from "@effect/vitest"
import { outward } from "../../src/http/internal/shownEvents.ts"

describe("the error of a run, as callers see it", () => {
  it("says that workers gave up a poisoned run, without the calls it was making", () => {
    const error = { tag: "RunPoisoned", message: "during send (c1)", fields: { calls: [{ name: "send" }] } }
    assert.deepStrictEqual(outward(error), { tag: "RunPoisoned", message: "The run ended its process too often." })
  })
})
