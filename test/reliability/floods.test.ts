import { assert, describe, it } from "vitest"
import { flood, megabyte, shapes } from "./floods.ts"

describe("64 MB of a reply that does not want to end (R-20)", () => {
  for (const [name, shape] of Object.entries(shapes)) {
    it(`${name}: is refused with a typed error, and hardly any of it is kept`, async () => {
      const { error, peak, read } = await flood(shape, 64 * megabyte)
      assert.match(error ?? "", /^ProviderError: /)
      assert.isBelow(peak, 64 * megabyte)
      assert.isAbove(read, 4 * megabyte)
    }, 30_000)
  }
})
