import { assert, describe, it } from "@effect/vitest"
import { read } from "../../../src/internal/words/markup.ts"

describe("calls in a model's own markup", () => {
  it("may be more than the largest number of function arguments", () => {
    // Half as many arguments of one call overflow the stack.
    const count = 300_000
    const list = Array.from({ length: count }, () => '{"name":"a","args":0}').join(",")
    assert.strictEqual(read(`<tool_call>[${list}]</tool_call>`, ["tool_call"], 4)?.calls.length, count)
  })
})
