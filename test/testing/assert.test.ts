import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Option } from "effect"
import { deepStrictEqual } from "node:assert"
import { inspect } from "node:util"
import { InvalidModel } from "../../src/KernelError.ts"
import * as Assert from "../../src/testing/internal/assert.ts"

const passes = (body: () => void): boolean => Exit.isSuccess(Effect.runSyncExit(Effect.sync(body)))

const date = new Date(0)
const values: ReadonlyArray<unknown> = [
  undefined,
  null,
  0,
  -0,
  NaN,
  "",
  "0",
  [],
  [1, [2]],
  [1, [3]],
  [undefined],
  {},
  { a: undefined },
  { a: 1, b: { c: [1] } },
  { b: { c: [1] }, a: 1 },
  { a: 1, b: { c: [1, 2] } },
  Object.create(null),
  date,
  new Date(0),
  new Date(1),
  /a/,
  /a/g,
  new URL("https://a.example"),
  new URL("https://b.example"),
  new Uint8Array([1, 2]),
  new Uint8Array([1, 3]),
  new Uint8ClampedArray([1, 2]),
  new Map([["a", { n: 1 }]]),
  new Map([["a", { n: 2 }]]),
  new Set(["a"]),
  new Set(["b"]),
  new Error("a"),
  new Error("b"),
  new InvalidModel({ input: "a" }),
  new InvalidModel({ input: "b" }),
  Option.some({ n: 1 }),
  Option.some({ n: 2 }),
  { [Symbol.for("a")]: 1 }
]

describe("the assertions of the suites", () => {
  it("compare any two values as node:assert does", () => {
    for (const one of values) {
      for (const other of values) {
        assert.strictEqual(
          passes(() => Assert.deepEqual(one, other)),
          passes(() => deepStrictEqual(one, other)),
          inspect({ one, other })
        )
        assert.strictEqual(
          passes(() => Assert.equal(one, other)),
          Object.is(one, other)
        )
      }
    }
  })

  it("throw errors with both values, from which a test framework shows the difference", () => {
    try {
      Assert.deepEqual({ a: 1 }, { a: 2 })
    } catch (error) {
      assert.instanceOf(error, Assert.AssertionError)
      assert.strictEqual(error.name, "AssertionError")
      assert.deepStrictEqual([error.actual, error.expected], [{ a: 1 }, { a: 2 }])
      assert.strictEqual(error.message, 'expected {"a":2}, received {"a":1}')
      return
    }
    assert.fail("nothing was thrown")
  })

  it("fail for a value that is not true or not another one, with the message given", () => {
    assert.throws(() => Assert.ok(0, "no zero"), "no zero")
    assert.throws(() => Assert.notEqual("a", "a"), 'expected another value than "a"')
    assert.throws(() => Assert.fail("never"), "never")
    assert.throws(() => Assert.equal(1, 2), "expected 2, received 1")
    Assert.ok("a")
    Assert.notEqual("a", "b")
  })
})
