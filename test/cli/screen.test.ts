import { assert, describe, it } from "@effect/vitest"
import { wantsColors } from "../../src/cli/screen.ts"

describe("wantsColors", () => {
  it("is for terminals, and for nobody when NO_COLOR is set", () => {
    assert.isTrue(wantsColors(true, {}))
    assert.isTrue(wantsColors(true, { NO_COLOR: "" }))
    assert.isFalse(wantsColors(true, { NO_COLOR: "1" }))
    assert.isFalse(wantsColors(true, { TERM: "dumb" }))
    assert.isFalse(wantsColors(false, {}))
  })
})
