import { assert, describe, it } from "vitest"
import { frameLength } from "../../src/kit/bounds.ts"
import { flood, megabyte, shapes } from "./floods.ts"

const all = 64 * megabyte
const limits = { replyLength: megabyte / 4 }

describe("a reply of 64 MB (R-20)", () => {
  for (const [name, shape] of Object.entries(shapes)) {
    it(`of ${name} is refused as soon as it exceeds a limit, and hardly any of it is kept in memory`, async () => {
      const { error, peak, read } = await flood(shape, all, limits)
      assert.match(error ?? "", /^ProviderError: .*exceeds a limit/)
      // A line is kept until it is too long for a frame.
      assert.isBelow(peak, 8 * megabyte + (name === "one line" ? frameLength : 0))
      assert.isBelow(read, all)
    }, 30_000)
  }

  it("is kept in memory as a whole without limits", async () => {
    const unlimited = { replyLength: Infinity }
    const { error, peak } = await flood(shapes["64 KiB deltas"], all / 4, unlimited)
    assert.match(error ?? "", /the reply was cut/)
    assert.isAbove(peak, all / 8)
  }, 30_000)
})
