/**
 * Values that fight whoever reads them, and the ways in which code of others gives them away.
 */
import { Effect } from "effect"
import { KernelError } from "kernai"

const refuse = (): never => {
  throw new Error("unreadable")
}

/** A proxy all of whose traps throw. */
export const armed = (): object =>
  new Proxy(
    {},
    {
      get: refuse,
      has: refuse,
      ownKeys: refuse,
      getPrototypeOf: refuse,
      getOwnPropertyDescriptor: refuse,
      isExtensible: refuse,
      set: refuse
    }
  )

const revoked = (target: object): object => {
  const { proxy, revoke } = Proxy.revocable(target, {})
  revoke()
  return proxy
}

/** A value whose property cannot be read. */
const without = <A extends object>(value: A, key: PropertyKey): A =>
  Object.defineProperty(value, key, { get: refuse, enumerable: true, configurable: true })

const endless = (): object => ({
  message: "endless",
  get cause() {
    return endless()
  }
})

const circular = (): object => {
  const value: Record<string, unknown> = { message: "circular" }
  value["self"] = value
  value["cause"] = value
  return value
}

/** Each value by its name, made anew whenever it is asked for. */
export const hostileValues: ReadonlyArray<readonly [name: string, make: () => unknown]> = [
  ["a message that throws", () => without({}, "message")],
  ["an error whose message throws", () => without(new Error("x"), "message")],
  ["an error whose name throws", () => without(new Error("x"), "name")],
  ["an error whose stack throws", () => without(new Error("x"), "stack")],
  ["an error whose cause throws", () => without(new Error("x"), "cause")],
  ["an error whose toString throws", () => Object.assign(new Error("x"), { toString: refuse })],
  ["a toString that throws", () => ({ toString: refuse })],
  ["a toString that is no text", () => ({ toString: () => Symbol("x") })],
  ["a toPrimitive that throws", () => ({ [Symbol.toPrimitive]: refuse })],
  ["a toJSON that throws", () => ({ message: 1, toJSON: refuse })],
  ["a tag that throws", () => without({ message: "x" }, "_tag")],
  ["a tag that is a symbol", () => ({ _tag: Symbol("x"), message: Symbol("y"), name: Symbol("z") })],
  ["a constructor that throws", () => without(new Error("x"), "constructor")],
  ["a revoked proxy", () => revoked({})],
  ["a revoked proxy of an error", () => revoked(new Error("x"))],
  ["a revoked proxy of a list", () => revoked([])],
  ["a proxy whose traps throw", armed],
  ["a cause that is such a proxy", () => new Error("x", { cause: armed() })],
  ["a list of such proxies", () => [armed(), revoked({})]],
  ["a circle", circular],
  ["causes without end", endless],
  ["a long message", () => new Error("m".repeat(1_000_000))],
  ["a long name", () => Object.assign(new Error("x"), { name: "n".repeat(1_000_000) })],
  ["a long tag", () => ({ _tag: "t".repeat(1_000_000), message: "x" })],
  ["a message that is no text", () => Object.assign(new Error("x"), { message: { a: 1 } })],
  ["half a character", () => new Error("\ud800")],
  ["a symbol", () => Symbol("x")],
  ["null", () => null],
  ["undefined", () => undefined],
  ["a function", () => () => "x"],
  ["a function whose name throws", () => without(() => "x", "name")],
  ["a big integer", () => 10n ** 40n],
  ["not a number", () => Number.NaN],
  ["an object without a prototype", () => Object.create(null)],
  ["a date without a time", () => new Date(Number.NaN)],
  ["an imposter of a store error", () => without({ _tag: "StoreError", operation: "x" }, "reason")],
  ["an imposter of a lost run", () => without({ _tag: "ConcurrentAppendError" }, "message")],
  ["an imposter of a pause", () => without({ _tag: "RunPaused" }, "metadata")],
  ["an imposter of a cancellation", () => ({ _tag: "CancellationError" })],
  ["an imposter of a termination", () => without({ _tag: "MiddlewareTermination" }, "reason")],
  [
    "an error of the kernel whose message throws",
    () => without(new KernelError.ExtensionFailed({ extension: "x", detail: "y" }), "message")
  ],
  ["a termination whose reason throws", () => without(new KernelError.MiddlewareTermination({ reason: "x" }), "reason")]
]

/** Code that gives such a value away. */
export type Culprit = (value: unknown) => Effect.Effect<never, never>

/** Effects never fail with what their type does not say, unless somebody lied to the compiler. */
const untyped = (failure: Effect.Effect<never, unknown>): Effect.Effect<never> => failure as Effect.Effect<never>

/** The ways by name. Each but the first two throws, rejects or fails inside of an effect. */
export const ways: ReadonlyArray<readonly [name: string, culprit: Culprit]> = [
  ["fails with", (value) => untyped(Effect.fail(value))],
  ["dies with", (value) => Effect.die(value)],
  [
    "throws",
    (value) => {
      throw value
    }
  ],
  ["rejects with", (value) => Effect.promise(() => Promise.reject(value))],
  [
    "throws inside of an effect",
    (value) =>
      Effect.sync(() => {
        throw value
      })
  ]
]
