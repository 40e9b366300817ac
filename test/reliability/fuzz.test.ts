import { assert, describe, it } from "vitest"
import { fuzz } from "./fuzz.ts"

// A limit for what hangs: a busy machine takes several times as long.
const patience = 600_000

describe("mutated inputs", () => {
  it(
    "give only typed errors in every reader, and what is read can be written and read again",
    async () => {
      const { findings, inputs } = await fuzz(20_000, 1)
      assert.deepStrictEqual(findings, [])
      console.log(`inputs: ${inputs}`)
    },
    patience
  )

  it("reveal a reader that throws, and one that returns a wrong value", async () => {
    const { findings } = await fuzz(500, 1, {
      readings: [
        ["thrower", "vectors/parser.json", (text) => void (text.includes("__proto__") && JSON.parse("{"))],
        ["liar", "vectors/params.json", (text) => (text.includes("[DONE]") ? "done" : undefined)]
      ]
    })
    assert.isTrue(findings.some((finding) => finding.startsWith("thrower") && finding.includes("it threw SyntaxError")))
    assert.isTrue(findings.some((finding) => finding.startsWith("liar") && finding.endsWith("done")))
  })
})
