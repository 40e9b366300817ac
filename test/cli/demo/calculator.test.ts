import { assert, describe, it } from "@effect/vitest"
import { calculate } from "../../../src/cli/demo/calculator.ts"

describe("the calculator", () => {
  const sums: ReadonlyArray<readonly [sum: string, result: string]> = [
    ["3 + 2", "5"],
    ["2", "2"],
    ["2.0 / 5", "0.4"],
    ["0.4 * 100", "40.0"],
    ["(2 / 4) * 100", "0"],
    ["2 + 3 * 4", "14"],
    ["10 - 2 - 3", "5"],
    ["-7 / 2", "-4"],
    ["-(1 + 2) * -1.5", "4.5"],
    ["100 / 10 / 2", "5"]
  ]
  it.each(sums)("evaluates %s", (sum, result) => {
    assert.strictEqual(calculate(sum), result)
  })

  const mistakes = ["", "1 +", "(1", "1 2", "1)", "1 / 0", "process.exit()", "9".repeat(400), "1".repeat(501)]
  it.each(mistakes)("finds no value in %j", (sum) => {
    assert.isUndefined(calculate(sum))
  })
})
