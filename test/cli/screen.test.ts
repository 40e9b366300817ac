import { assert, describe, it } from "@effect/vitest"
import { isUnread, wantsColors } from "../../src/cli/screen.ts"

describe("wantsColors", () => {
  it("is for terminals, and for nobody when NO_COLOR is set", () => {
    assert.isTrue(wantsColors(true, {}))
    assert.isTrue(wantsColors(true, { NO_COLOR: "" }))
    assert.isFalse(wantsColors(true, { NO_COLOR: "1" }))
    assert.isFalse(wantsColors(true, { TERM: "dumb" }))
    assert.isFalse(wantsColors(false, {}))
  })
})

describe("isUnread", () => {
  it("is what is written for a reader who left, not for a disk that failed", () => {
    assert.isTrue(isUnread("EPIPE", false))
    assert.isTrue(isUnread("EIO", true))
    assert.isFalse(isUnread("EIO", false))
    assert.isFalse(isUnread("ENOSPC", false))
  })
})
