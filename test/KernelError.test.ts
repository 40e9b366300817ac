import { assert, describe, it } from "@effect/vitest"
import { KernelError } from "kernai"

describe("ProviderError", () => {
  it("shows its reason when it has no other detail", () => {
    const error = (detail: string) =>
      new KernelError.ProviderError({ provider: "house", reason: "server_error", detail }).message
    assert.strictEqual(error("status 503"), "house: status 503")
    assert.strictEqual(error(""), "house: server_error")
  })
})
