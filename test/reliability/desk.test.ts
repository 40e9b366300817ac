import { assert, describe, it } from "vitest"
import { isLong } from "../support/longRun.ts"
import { kills } from "./real.ts"

describe("a support desk with three specialists and an approval on the second level", () => {
  it("is finished by another process when it is killed at any moment, with nothing lost and nothing doubled", async () => {
    const { entered, findings, rounds } = await kills(isLong ? 50 : 5, { prefix: "desk" })
    assert.deepStrictEqual(findings, [])
    assert.isAbove(entered, 8)
    console.log(`desk kills: ${rounds}`)
  }, 300_000)
})
