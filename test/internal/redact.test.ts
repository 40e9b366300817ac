import { assert, describe, it } from "@effect/vitest"
import { deep } from "../../src/internal/redact.ts"

describe("redact.deep", () => {
  it("finds a secret as deep as JSON may nest, and deeper (S-7)", () => {
    const nested = Array.from({ length: 500 }).reduce<unknown>((inner) => [inner], "hunter2")
    const clean = deep(nested, (text) => text.replaceAll("hunter2", "-"))
    assert.strictEqual(clean === nested, false)
    assert.notInclude(JSON.stringify(clean), "hunter2")
  })
})
