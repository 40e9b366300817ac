/**
 * Texts as JSON and JSON as texts, with errors that say what is wrong: a value that a store cannot keep, or a text that
 * is damaged.
 */

import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as Fault from "../../kit/fault.ts"
import type { Json } from "../../kit/json.ts"
import * as Snapshot from "../../kit/snapshot.ts"
import * as Storable from "../../kit/storable.ts"
import { StoreError } from "../../KernelError.ts"

type Reader<A> = (input: unknown) => Result.Result<A, Schema.SchemaError>

/** Parses a text. */
export const json = (text: string): Result.Result<Json, StoreError> =>
  Result.try({ try: (): Json => JSON.parse(text), catch: () => fault("corrupt", "read", "a text is not JSON") })

/** Parses a text and checks its checksum, which texts written by hand lack. */
export const opened = (text: string): Result.Result<Json, StoreError> =>
  Storable.check(text) === "wrong" ? corrupt("its checksum is wrong") : json(text)

/** Decodes a value with a schema. */
export const reading =
  <A>(read: Reader<A>) =>
  (value: unknown): Result.Result<A, StoreError> =>
    Result.try({ try: () => read(value), catch: () => fault("corrupt", "read", "a text nests too deeply") }).pipe(
      Result.flatMap(Result.mapError((error) => fault("corrupt", "read", sentence(Fault.ofSchema(error)))))
    )

/** Writes a value, and grades it. */
export const take = (
  wire: () => object
): Result.Result<{ readonly wire: object; readonly grade: Storable.Grade }, StoreError> =>
  Result.try({
    try: () => {
      const taken = wire()
      return { wire: taken, grade: Storable.grade(taken) }
    },
    // A getter may throw anything, so its error is left out.
    catch: () => fault("invalid", "write", "a value cannot be read")
  }).pipe(Result.flatMap((taken) => (taken.grade === 0 ? Result.fail(misfit(taken.wire)) : Result.succeed(taken))))

/** Writes a value as text. */
export const write = (wire: () => object): Result.Result<string, StoreError> =>
  Result.flatMap(take(wire), ({ grade, wire }) =>
    Result.try({
      try: () => (grade === 2 ? Storable.stringify(wire) : JSON.stringify(wire)),
      catch: () => fault("limit_exceeded", "write", "a text is longer than a string can be")
    })
  )

/** Returns an error that says where a value is not JSON. */
const misfit = (wire: object): StoreError => {
  const found = Snapshot.take(wire, Storable.bounds)
  return fault("invalid", "write", Result.isFailure(found) ? sentence(found.failure) : "a value is not JSON")
}

const sentence = ({ path, reason }: Fault.Fault): string => `at '${path}': ${reason}`

export const fault = (reason: StoreError["reason"], operation: string, detail: string): StoreError =>
  new StoreError({ operation, reason, detail })

export const corrupt = (detail: string): Result.Result<never, StoreError> =>
  Result.fail(fault("corrupt", "read", detail))
