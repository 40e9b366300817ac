import { assert, describe, it } from "@effect/vitest"
import { Result } from "effect"
import { freeze, take } from "../../src/kit/snapshot.ts"

const bounds = { jsonDepth: 2, jsonNodes: 3 }

const judged = (value: unknown) =>
  Result.match(take(value, bounds), {
    onSuccess: (json) => JSON.stringify(json),
    onFailure: ({ path, reason }) => `${path}: ${reason}`
  })

describe("Snapshot.take", () => {
  it("copies a value up to the limits of depth and parts, and no larger one (R-22)", () => {
    assert.strictEqual(judged({ a: [1, null] }), '{"a":[1,null]}')
    assert.strictEqual(judged({ a: [{}] }), "/a/0: nested too deeply")
    assert.strictEqual(judged([[], {}]), "[[],{}]")
    assert.strictEqual(judged([[], {}, [], "x"]), "/2: too large")
  })

  it("reports the path of a value that is not JSON, without the text of what it throws (R-22)", () => {
    const broken = {
      get a() {
        throw new Error("hunter2")
      }
    }
    for (const [value, expected] of [
      [{ a: { b: 1n } }, "/a/b: bigint is not JSON"],
      [[undefined], "/0: undefined is not JSON"],
      [{ "a/b~": Infinity }, "/a~1b~0: Infinity is not a JSON number"],
      [{ a: new Date(0) }, "/a: Date is not JSON"],
      [{ b: broken }, "/b/a: cannot be read"]
    ] as const) {
      assert.strictEqual(judged(value), expected)
    }
  })

  it("copies the JSON of an instance with a toJSON method, and treats other values of that name as fields", () => {
    class Point {
      toJSON() {
        return [1, 2]
      }
    }
    assert.strictEqual(judged(new Point()), "[1,2]")
    assert.strictEqual(judged({ toJSON: "x" }), '{"toJSON":"x"}')
    const endless: object = { toJSON: () => endless }
    assert.strictEqual(judged(endless), ": nested too deeply")
  })

  it("shares nothing with the original, and freezes the whole copy, whatever its keys (S-10)", () => {
    const value: unknown = JSON.parse('{"__proto__":{"polluted":[1]}}')
    const copy = Result.getOrThrow(take(value))
    assert.strictEqual(JSON.stringify(copy), '{"__proto__":{"polluted":[1]}}')
    assert.notStrictEqual<unknown>(copy, value)
    assert.isTrue(Object.isFrozen(copy) && Object.values(copy as object).every(Object.isFrozen))
    assert.notProperty({}, "polluted")
  })
})

describe("Snapshot.freeze", () => {
  it("freezes plain data at every depth, and no instances", () => {
    const map = new Map()
    const value = freeze({ a: [{ b: map }] })
    assert.isTrue(Object.isFrozen(value) && Object.isFrozen(value.a) && Object.isFrozen(value.a[0]))
    assert.isFalse(Object.isFrozen(map))
  })
})
