/**
 * Decodes and encodes the wire form of contents.
 *
 * A fault names the innermost place that is wrong. Unknown data is kept: unknown types verbatim, unknown fields under
 * their own names.
 */

import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import { BlockValidationError } from "../../KernelError.ts"
import { blockDepth, jsonDepth, jsonNodes } from "../base/bounds.ts"
import { defineBytes } from "../base/snapshot.ts"
import * as Shape from "./contentShape.ts"
import type { Content, Custom, Unknown } from "../../ContentModel.ts"
import * as Fault from "../base/fault.ts"
import { isJsonObject, type Json, type JsonObject } from "../base/json.ts"
import * as Snapshot from "../base/snapshot.ts"

/** Returns the reader of a registered content type. */
export type Lookup = (type: string) => ((raw: JsonObject) => Result.Result<unknown, Fault.Fault>) | undefined

const usual = { blockDepth, jsonDepth, jsonNodes }

/** Decodes a wire form. */
export const decode = (
  input: unknown,
  lookup: Lookup,
  bounds: Snapshot.Bounds & { readonly blockDepth: number } = usual
): Result.Result<Content, BlockValidationError> => {
  // Each level of contents is two levels of JSON: a list and an object.
  const jsonDepth = bounds.jsonDepth + 2 * bounds.blockDepth
  return Snapshot.take(input, { ...bounds, jsonDepth }).pipe(
    Result.flatMap((raw) => read(raw, "", { depth: bounds.blockDepth, lookup })),
    Result.mapError((fault) => new BlockValidationError(fault))
  )
}

/** Encodes the wire form. */
export const encode = (content: Content): JsonObject => {
  if (content.type === "unknown" || content.type === "custom") return content.raw
  const shape = Shape.find(content.type)
  const wire: { [name: string]: Json } = {}
  for (const [field, value] of fieldsOf(content)) {
    const name = shape === undefined ? field : Shape.wireName(field, shape)
    if (content.type === "tool_result" && field === "content") wire[name] = content.content.map(encode)
    else if (value instanceof Uint8Array) wire[name] = Base64.encode(value)
    else if (isJson(value)) Snapshot.define(wire, name, value)
  }
  return wire
}

/** `decode` and `encode` as a schema. */
export const schema = (lookup: Lookup): Schema.Codec<Content, Json> =>
  Schema.Json.pipe(
    Schema.decodeTo(Schema.declare(isContent, { identifier: "Content", expected: "a content" }), {
      decode: SchemaGetter.transformEffect((input) =>
        Effect.fromResult(Result.mapError(decode(input, lookup), Fault.toIssue))
      ),
      encode: SchemaGetter.transform(encode)
    })
  )

/** Returns the fields its type does not declare, under their wire names. */
export const extras = (content: Content): JsonObject => {
  const out: { [name: string]: Json } = {}
  const shape = Shape.find(content.type)
  if (shape === undefined) return out
  for (const [field, value] of fieldsOf(content)) {
    const name = Shape.wireName(field, shape)
    if (!shape.names.has(name) && isJson(value)) Snapshot.define(out, name, value)
  }
  return Object.freeze(out)
}

/** Is this a content? Only the `type` is checked; the fields were checked when it was created. */
export const isContent = (value: unknown): value is Content =>
  typeof value === "object" &&
  value !== null &&
  "type" in value &&
  typeof value.type === "string" &&
  (value.type === "custom" || value.type === "unknown" || Shape.find(value.type) !== undefined)

// ---------------------------------------------------------------- reading

type Decoded = Result.Result<Content, Fault.Fault>

interface Reading {
  readonly depth: number
  readonly lookup: Lookup
}

const read = (raw: Json, path: string, reading: Reading): Decoded => {
  if (!isJsonObject(raw)) return fault(path, "expected an object")
  if (reading.depth < 0) return fault(path, "contents nest too deeply")
  const type = Object.hasOwn(raw, "type") ? raw["type"] : undefined
  if (typeof type !== "string" || type === "") return fault(`${path}/type`, "expected a non-empty string")

  const shape = Shape.find(type)
  if (shape === undefined) return Result.mapError(readForeign(type, raw, reading.lookup), within(path))
  return shape.decode(raw).pipe(
    Result.mapError(within(path)),
    Result.flatMap((wire) => assemble(wire, shape, path, reading))
  )
}

const readForeign = (type: string, raw: JsonObject, lookup: Lookup): Decoded => {
  const registered = lookup(type)
  if (registered === undefined) return Result.succeed(Object.freeze<Unknown>({ type: "unknown", wireType: type, raw }))
  return Result.map(registered(raw), (value) => Object.freeze<Custom>({ type: "custom", wireType: type, raw, value }))
}

const assemble = (
  wire: { readonly [name: string]: unknown },
  shape: Shape.Shape,
  path: string,
  reading: Reading
): Decoded => {
  const content: { [field: string]: unknown } = {}
  for (const [name, value] of fieldsOf(wire)) {
    const field = Shape.fieldName(name, shape)
    // In a declared field, `null` is the same as absent; an unknown field keeps it.
    if (value === null && shape.names.has(name)) continue
    if (value instanceof Uint8Array) defineBytes(content, field, value)
    else if (wire["type"] === "tool_result" && name === "content" && Array.isArray(value)) {
      const parts = readAll(value, `${path}/content`, { ...reading, depth: reading.depth - 1 })
      if (Result.isFailure(parts)) return Result.fail(parts.failure)
      Snapshot.define(content, field, parts.success)
    } else Snapshot.define(content, field, value)
  }
  Object.freeze(content)
  return isContent(content) ? Result.succeed(content) : fault(path, "expected a known content")
}

const readAll = (
  parts: ReadonlyArray<Json>,
  path: string,
  reading: Reading
): Result.Result<ReadonlyArray<Content>, Fault.Fault> => {
  const out: Array<Content> = []
  for (const [index, part] of parts.entries()) {
    const content = read(part, `${path}/${index}`, reading)
    if (Result.isFailure(content)) return Result.fail(content.failure)
    out.push(content.success)
  }
  return Result.succeed(Object.freeze(out))
}

// ---------------------------------------------------------------- helpers

const fault = (path: string, reason: string): Result.Result<never, Fault.Fault> => Result.fail({ path, reason })

const within =
  (path: string) =>
  (inner: Fault.Fault): Fault.Fault => ({ ...inner, path: path + inner.path })

// Constructors and decoder ensure that contents hold only JSON, bytes and contents.
const isJson = (value: unknown): value is Json => value !== undefined && typeof value !== "function"

const fieldsOf = (value: object): ReadonlyArray<[string, unknown]> => Object.entries(value)
