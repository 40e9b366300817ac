import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { calculate } from "../../../src/cli/demo/calculator.ts"

describe("calculate", () => {
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
  it.effect.each(sums)("works out %s", ([sum, result]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* calculate(sum), result)
    })
  )

  const mistakes: ReadonlyArray<readonly [sum: string, reason: string]> = [
    ["", "a number is missing"],
    ["1 +", "a number is missing"],
    ["(1", "a ')' is missing"],
    ["1 2", "'2' was not expected"],
    ["1 / 0", "nothing can be divided by 0"],
    ["1 / 0.0", "nothing can be divided by 0"],
    ["process.exit()", "'p' is not part of a sum; use numbers, + - * / and parentheses"],
    ["9".repeat(400), "the result is no number"],
    ["1".repeat(501), "a sum has at most 500 characters"]
  ]
  it.effect.each(mistakes)("says what is wrong with %j", ([sum, reason]) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* Effect.flip(calculate(sum))).message, reason)
    })
  )
})
