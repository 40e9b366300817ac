import { assert, describe, it } from "vitest"
import { kills, stops } from "./real.ts"

describe("real processes on SQLite (R-1 to R-7)", () => {
  it("killed at any moment, they lose nothing and double nothing", async () => {
    const { entered, findings, rounds } = await kills(10)
    assert.deepStrictEqual(findings, [])
    assert.isAbove(entered, 20)
    console.log(`kills: ${rounds}`)
  }, 60_000)

  it("stopped past its lease, one wakes to a run that is another's, and does nothing more (R-5)", async () => {
    const { findings, rounds } = await stops(1)
    assert.deepStrictEqual(findings, [])
    assert.strictEqual(rounds, 1)
  }, 60_000)
})
