import { assert, describe, it } from "@effect/vitest"
import { Cause } from "effect"
import { KernelError } from "kernai"

describe("ProviderError", () => {
  it("shows its reason when it has no other detail", () => {
    const error = (detail: string) =>
      new KernelError.ProviderError({ provider: "house", reason: "server_error", detail }).message
    assert.strictEqual(error("status 503"), "house: status 503")
    assert.strictEqual(error(""), "house: server_error")
  })
})

describe("isKernelError", () => {
  it("recognizes the errors of the union, and those that may be retried (CP-16)", () => {
    const error = new KernelError.RunBusy({ runId: "r", workerId: "w", expiresAt: 0 })
    assert.isTrue(KernelError.isKernelError(error))
    assert.isTrue(KernelError.isRecoverable(error))
    assert.isFalse(KernelError.isKernelError(new Error("x")))
    assert.isFalse(Cause.isCause(error))
  })
})
