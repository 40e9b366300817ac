import { assert, describe, it } from "vitest"
import { contentions } from "./real.ts"

describe("two processes on one run (R-5)", () => {
  it("are advanced by one of them, and the other does nothing", async () => {
    const { findings, refused, rounds } = await contentions(5)
    assert.deepStrictEqual(findings, [])
    assert.isAbove(refused, 0)
    console.log(`contentions: ${rounds}`)
  }, 60_000)
})
