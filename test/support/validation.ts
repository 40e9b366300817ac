/**
 * What validating a call must give, in the words of the vectors.
 */
import { assert } from "@effect/vitest"
import { Effect, Result } from "effect"
import { InvalidArguments } from "../../src/KernelError.ts"
import { ours } from "./skillSpec.ts"
import type { Keys } from "./vectors.ts"

export type Validation =
  | { readonly ok: unknown }
  | {
      readonly error: string
      readonly code: string
      readonly path: string
      readonly expected?: string
      readonly actual?: string
      readonly reminder?: string
    }

/** The keys of a `Validation`. */
export const validationKeys: Keys = {
  ok: true,
  error: true,
  code: new Set(["type", "missing"]),
  path: true,
  expected: true,
  actual: true,
  reminder: true
}

const strip = (text: string) => text.replace(/^[\0\t\n\v\f\r ]+|[\0\t\n\v\f\r ]+$/g, "")

/** Text that Ruby's JSON reads and strict JSON does not, or not to the same value (BP-69). */
export const isExtension = (content: string): boolean => {
  const text = strip(content)
  if (!text.startsWith("{") || !text.endsWith("}")) return false
  try {
    const value: unknown = JSON.parse(text)
    return JSON.stringify(value).includes("null") && /[eE]\+?\d{3}|\d{309}/.test(text)
  } catch {
    return /\/\*|\/\//.test(text)
  }
}

const at = (value: unknown, path: string): unknown =>
  path
    .split(/[.[\]]+/)
    .filter((key) => key !== "")
    .reduce<unknown>(
      (found, key) => (typeof found === "object" && found !== null ? Reflect.get(found, key) : undefined),
      value
    )

/** A number is a number here; Ruby tells 5 from 5.0 (BP-88). A medium is written by its id (W-21). */
const acceptsMore = (expected: Extract<Validation, { readonly error: string }>, params: unknown): boolean => {
  const names = (expected.expected ?? "").split(" or ")
  const value = at(params, expected.path)
  return (
    (expected.actual === "Integer" && names.includes("Float")) ||
    (expected.actual === "Float" && names.includes("Integer") && Number.isInteger(value)) ||
    (expected.actual === "String" && names.includes("Kernai::Media"))
  )
}

const hasUnsafeInteger = (value: unknown): boolean =>
  typeof value === "number"
    ? Number.isInteger(value) && !Number.isSafeInteger(value)
    : typeof value === "object" && value !== null && Object.values(value).some(hasUnsafeInteger)

/** Checks a call of a skill that returns its input. */
export const checkValidation = <E>(call: Effect.Effect<unknown, E>, expected: Validation, params: unknown) =>
  Effect.map(Effect.result(call), (result) => {
    if ("ok" in expected) {
      // An integer that a double cannot hold is refused, not changed (BP-69).
      if (Result.isFailure(result) && hasUnsafeInteger(expected.ok)) return
      assert.deepStrictEqual(Result.getOrThrow(result), expected.ok)
      return
    }
    if (Result.isSuccess(result) && acceptsMore(expected, params)) return
    assert.isTrue(Result.isFailure(result), `expected: ${expected.error}`)
    if (!Result.isFailure(result)) return
    const error: unknown = result.failure
    if (!(error instanceof InvalidArguments)) throw error
    const [sentence, reminder, hint, ...more] = error.detail.split("\n\n")
    assert.strictEqual(sentence, ours(expected.error))
    assert.strictEqual(error.path, expected.path)
    assert.strictEqual(reminder, expected.reminder)
    if (hint !== undefined) assert.match(hint, /^Hint: /)
    assert.deepStrictEqual(more, [])
  })
