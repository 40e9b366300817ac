/**
 * Recognises contents among foreign values, and decodes and encodes their wire form.
 *
 * A fault has the path of the innermost invalid value. Unknown data is kept: unknown types verbatim, unknown fields
 * under their own names.
 *
 * The wire shape of a type is a struct with a rest: declared fields are checked, others pass unchanged. The table of
 * shapes is built when the first content is decoded.
 */

import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import type { Content, Custom, Unknown } from "../../ContentModel.ts"
import { BlockValidationError } from "../../KernelError.ts"
import { blockDepth, jsonDepth, jsonNodes } from "../../kit/bounds.ts"
import * as Fault from "../../kit/fault.ts"
import { type Json, type JsonObject, isJsonObject } from "../../kit/json.ts"
import * as Snapshot from "../../kit/snapshot.ts"
import { defineBytes } from "../../kit/snapshot.ts"

// ---------------------------------------------------------------- recognition

/**
 * Returns whether a value is a content, not another value with the same `type`.
 *
 * Values of skills and other untyped code may also have a `type` of `data` or `error`, and may be frozen. Only required
 * fields are checked; `decode` checks everything.
 */
export const isWhole = (value: unknown): value is Content =>
  typeof value === "object" &&
  value !== null &&
  "type" in value &&
  typeof value.type === "string" &&
  (needs.get(value.type)?.(value) ?? false)

type Fields = { readonly [field: string]: unknown }
type Fits = (value: Fields) => boolean

const texts =
  (...fields: ReadonlyArray<string>): Fits =>
  (value) =>
    fields.every((field) => typeof value[field] === "string")

// Bytes are checked last, because every read copies them.
const hasSource: Fits = (value) => texts("url")(value) || texts("fileId")(value) || value["data"] instanceof Uint8Array

const needs: ReadonlyMap<string, Fits> = new Map<Content["type"], Fits>([
  ["text", texts("text")],
  ["code", texts("code")],
  ["data", ({ data }) => isJsonObject(data)],
  ["error", texts("errorType", "message")],
  ["image", hasSource],
  ["audio", hasSource],
  ["video", hasSource],
  ["document", hasSource],
  ["tool_use", (value) => texts("callId", "name")(value) && isJsonObject(value["input"])],
  [
    "tool_result",
    ({ callId, content }) => typeof callId === "string" && Array.isArray(content) && content.every(isWhole)
  ],
  ["thinking", texts("content")],
  ["ui_resource", texts("uri", "renderMode", "text")],
  ["source", (value) => texts("url")(value) || texts("title")(value)],
  ["custom", ({ raw, wireType }) => typeof wireType === "string" && isJsonObject(raw)],
  ["unknown", ({ raw, wireType }) => typeof wireType === "string" && isJsonObject(raw)]
])

// ---------------------------------------------------------------- wire form

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
  const shape = shapeOf(content.type)
  const wire: { [name: string]: Json } = {}
  for (const [field, value] of fieldsOf(content)) {
    const name = shape === undefined ? field : wireName(field, shape)
    if (content.type === "tool_result" && field === "content") wire[name] = content.content.map(encode)
    else if (value instanceof Uint8Array) wire[name] = Base64.encode(value)
    else if (isJson(value)) Snapshot.define(wire, name, value)
  }
  return wire
}

/** Returns `decode` and `encode` as a schema. */
export const schema = (lookup: Lookup): Schema.Codec<Content, Json> =>
  Schema.Json.pipe(
    Schema.decodeTo(Schema.declare(isContent, { identifier: "Content", expected: "a content" }), {
      decode: SchemaGetter.transformEffect((input) =>
        Effect.fromResult(Result.mapError(decode(input, lookup), Fault.toIssue))
      ),
      encode: SchemaGetter.transform(encode)
    })
  )

/** Returns the undeclared fields of a content, under their wire names. */
export const extras = (content: Content): JsonObject => {
  const out: { [name: string]: Json } = {}
  const shape = shapeOf(content.type)
  if (shape === undefined) return out
  for (const [field, value] of fieldsOf(content)) {
    const name = wireName(field, shape)
    if (!shape.names.has(name) && isJson(value)) Snapshot.define(out, name, value)
  }
  return Object.freeze(out)
}

/** Returns whether a value is a content. Only the `type` is checked; the fields were checked when it was created. */
export const isContent = (value: unknown): value is Content =>
  typeof value === "object" &&
  value !== null &&
  "type" in value &&
  typeof value.type === "string" &&
  (value.type === "custom" || value.type === "unknown" || shapeOf(value.type) !== undefined)

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

  const shape = shapeOf(type)
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
  shape: Shape,
  path: string,
  reading: Reading
): Decoded => {
  const content: { [field: string]: unknown } = {}
  for (const [name, value] of fieldsOf(wire)) {
    const field = fieldName(name, shape)
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

// Constructors and the decoder ensure that contents hold only JSON, bytes and contents.
const isJson = (value: unknown): value is Json => value !== undefined && typeof value !== "function"

const fieldsOf = (value: object): ReadonlyArray<[string, unknown]> => Object.entries(value)

// ---------------------------------------------------------------- shapes

/** The wire shape of one content type. */
interface Shape {
  /** Wire names of the declared fields. */
  readonly names: ReadonlySet<string>
  /** Wire names that differ from the field name, by field name. */
  readonly wireNames: ReadonlyMap<string, string>
  /** The same, reversed: field names by wire name. */
  readonly fields: ReadonlyMap<string, string>
  /** Checks a wire form. Fills in defaults, leaves out absent optional fields and decodes bytes. */
  readonly decode: (raw: JsonObject) => Result.Result<{ readonly [name: string]: unknown }, Fault.Fault>
}

/** Returns the shape of a known content type. */
export const shapeOf = (type: string): Shape | undefined => (table ??= shapes()).get(type)

/**
 * Returns the field that holds a wire name of a content type. An unknown wire field with the name of a declared field
 * (`callId`) is prefixed with `~`, so the two stay apart.
 */
const fieldName = (name: string, shape: Shape): string =>
  shape.names.has(name) ? (shape.fields.get(name) ?? name) : isReserved(name, shape) ? `~${name}` : name

/** Returns the wire name of a field of a content type. */
const wireName = (field: string, shape: Shape): string =>
  shape.wireNames.get(field) ?? (isReserved(field, shape) ? field.slice(1) : field)

/** Returns whether a name without its `~` is a field whose wire name differs. */
const isReserved = (name: string, { wireNames }: Shape): boolean => wireNames.has(name.replace(/^~+/, ""))

let table: ReadonlyMap<string, Shape> | undefined

const shapes = (): ReadonlyMap<string, Shape> => {
  const optional = { text: nullable(Schema.String), object: nullable(JsonObjectShape), bytes: nullable(Bytes) }
  const media = { url: optional.text, data: optional.bytes, file_id: optional.text, media_type: optional.text }
  return new Map([
    ["text", shape({ text: Schema.String })],
    ["code", shape({ code: Schema.String, language: optional.text })],
    ["data", shape({ data: JsonObjectShape, schema_id: optional.text })],
    [
      "error",
      shape({
        error_type: Schema.String,
        message: Schema.String,
        recoverable: withDefault(Schema.Boolean, true),
        details: optional.object
      })
    ],
    ["image", shape(media, oneSource)],
    ["audio", shape({ ...media, transcript: optional.text }, someSource)],
    ["video", shape(media, someSource)],
    ["document", shape({ ...media, filename: optional.text }, oneSource)],
    [
      "tool_use",
      shape(
        {
          call_id: Schema.String,
          tool_name: Schema.String,
          arguments: withDefault(JsonObjectShape, Object.freeze({}))
        },
        undefined,
        callNames
      )
    ],
    // The codec decodes the contents inside one by one.
    [
      "tool_result",
      shape({
        call_id: Schema.String,
        content: withDefault(Schema.Array(Schema.Unknown), []),
        is_error: withDefault(Schema.Boolean, false)
      })
    ],
    ["thinking", shape({ content: Schema.String, redacted: withDefault(Schema.Boolean, false) })],
    [
      "ui_resource",
      shape({
        uri: Schema.String.check(Schema.isPattern(/^ui:\/\/\S+$/, { expected: "ui:// and a name without spaces" })),
        render_mode: withDefault(Schema.String, "inline"),
        text: withDefault(Schema.String, ""),
        structured_content: optional.object,
        mime_type: optional.text
      })
    ],
    ["source", shape({ url: optional.text, title: optional.text, quote: optional.text }, addressed)]
  ])
}

type FieldSchemas = { readonly [name: string]: Schema.ConstraintDecoder<unknown> }
type Rule = (value: { readonly [name: string]: unknown }) => string | undefined

const shape = (fields: FieldSchemas, rule: Rule = () => undefined, wireNames = commonNames): Shape => {
  const schema = Schema.StructWithRest(Schema.Struct({ type: Schema.String, ...fields }), [
    Schema.Record(Schema.String, Schema.Unknown)
  ]).check(Schema.makeFilter(rule))
  const decode = Schema.decodeUnknownResult(schema)
  return {
    names: new Set(["type", ...Object.keys(fields)]),
    wireNames,
    fields: new Map(Array.from(wireNames, ([field, wire]) => [wire, field])),
    decode: (raw) => Result.mapError(decode(raw), Fault.ofSchema)
  }
}

// ---------------------------------------------------------------- fields

const nullable = <S extends Schema.Constraint>(schema: S) => Schema.optionalKey(Schema.NullOr(schema))

const withDefault = <S extends Schema.Constraint>(schema: S, value: S["Encoded"]) =>
  Schema.withDecodingDefaultKey<S>(Effect.succeed(value))(schema)

// The input is JSON, because the codec takes a snapshot first.
const JsonObjectShape = Schema.declare(isJsonObject, { expected: "an object" })

// Returns whether Base64 survives a round trip: it is padded, has no line breaks, and its unused bits are zero.
const isCanonical = (text: string): boolean =>
  !/[\r\n]/.test(text) &&
  (text.endsWith("==")
    ? "AQgw".includes(text.charAt(text.length - 3))
    : !text.endsWith("=") || "AEIMQUYcgkosw048".includes(text.charAt(text.length - 2)))

const Bytes = (() =>
  Schema.String.check(Schema.makeFilter(isCanonical, { expected: "canonical Base64" })).pipe(
    Schema.decodeTo(Schema.Uint8Array, { decode: SchemaGetter.decodeBase64(), encode: SchemaGetter.encodeBase64() })
  ))()

const sources = (value: { readonly [name: string]: unknown }): number =>
  ["url", "data", "file_id"].filter((name) => value[name] !== undefined && value[name] !== null).length

const oneSource: Rule = (value) => (sources(value) === 1 ? undefined : "expected exactly one of url, data and file_id")

const addressed: Rule = ({ title, url }) =>
  typeof url === "string" || typeof title === "string" ? undefined : "expected a url or a title"

const someSource: Rule = (value) => (sources(value) > 0 ? undefined : "expected one of url, data and file_id")

// ---------------------------------------------------------------- names

const commonNames: ReadonlyMap<string, string> = new Map([
  ["schemaId", "schema_id"],
  ["errorType", "error_type"],
  ["fileId", "file_id"],
  ["mediaType", "media_type"],
  ["callId", "call_id"],
  ["isError", "is_error"],
  ["renderMode", "render_mode"],
  ["structuredContent", "structured_content"],
  ["mimeType", "mime_type"]
])

/** Wire names of a call that differ from its field names for compatibility. */
const callNames: ReadonlyMap<string, string> = new Map([...commonNames, ["name", "tool_name"], ["input", "arguments"]])
