/**
 * Assertions of the suites, for any test framework and any platform.
 *
 * A failed assertion throws an `AssertionError` with the fields `actual` and `expected`, from which test frameworks show
 * a difference. Values are compared as `node:assert/strict` compares them.
 */

import { format } from "effect/Formatter"
import { clip } from "../../kit/text.ts"

export class AssertionError extends Error {
  override readonly name = "AssertionError"
  readonly actual: unknown
  readonly expected: unknown

  constructor(message: string, actual?: unknown, expected?: unknown) {
    super(message)
    this.actual = actual
    this.expected = expected
  }
}

export function fail(message: string): never {
  throw new AssertionError(message)
}

export function ok(value: unknown, message = "expected a value that is true"): asserts value {
  if (!value) throw new AssertionError(message, value, true)
}

export function equal<A>(actual: unknown, expected: A, message?: string): asserts actual is A {
  if (!Object.is(actual, expected)) throw differing(actual, expected, message)
}

export function notEqual(actual: unknown, unexpected: unknown): void {
  if (Object.is(actual, unexpected)) throw new AssertionError(`expected another value than ${shown(actual)}`)
}

export function deepEqual<A>(actual: unknown, expected: A, message?: string): asserts actual is A {
  if (!isSame(actual, expected)) throw differing(actual, expected, message)
}

const differing = (actual: unknown, expected: unknown, message?: string) =>
  new AssertionError(message ?? `expected ${shown(expected)}, received ${shown(actual)}`, actual, expected)

const shown = (value: unknown): string => clip(format(value), 2000)

/** Whether two values have the same prototypes and contents. They contain no cycles. */
const isSame = (one: unknown, other: unknown): boolean => {
  if (Object.is(one, other)) return true
  if (!isObject(one) || !isObject(other)) return false
  if (Object.getPrototypeOf(one) !== Object.getPrototypeOf(other)) return false
  if (one instanceof Date && other instanceof Date) return Object.is(one.getTime(), other.getTime())
  if (one instanceof RegExp || one instanceof URL) return String(one) === String(other)
  if (one instanceof Error && other instanceof Error && one.message !== other.message) return false
  if (one instanceof Map && other instanceof Map) return areEntriesSame(one, other)
  if (one instanceof Set && other instanceof Set) {
    return one.size === other.size && [...one].every((value) => other.has(value))
  }
  return areEntriesSame(fieldsOf(one), fieldsOf(other))
}

const areEntriesSame = (one: ReadonlyMap<unknown, unknown>, other: ReadonlyMap<unknown, unknown>): boolean =>
  one.size === other.size && [...one].every(([key, value]) => other.has(key) && isSame(value, other.get(key)))

const fieldsOf = (object: object): ReadonlyMap<PropertyKey, unknown> =>
  new Map(
    Reflect.ownKeys(object)
      .filter((key) => Object.prototype.propertyIsEnumerable.call(object, key))
      .map((key) => [key, Reflect.get(object, key)])
  )

const isObject = (value: unknown): value is object => typeof value === "object" && value !== null
