/**
 * The wire shape of every known content type: its fields, their rules and their names.
 *
 * Each shape is a struct with a rest: declared fields are checked, others pass unchanged. The table is built when the
 * first content is decoded.
 */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as Fault from "../base/fault.ts"
import { isJsonObject, type JsonObject } from "../base/json.ts"

/** The wire shape of one content type. */
export interface Shape {
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
export const find = (type: string): Shape | undefined => (table ??= make()).get(type)

/**
 * Returns the field that holds a wire name of a content type. An unknown wire field with the name of a declared field
 * (`callId`) is prefixed with `~`, so the two stay apart.
 */
export const fieldName = (name: string, shape: Shape): string =>
  shape.names.has(name) ? (shape.fields.get(name) ?? name) : isReserved(name, shape) ? `~${name}` : name

/** Returns the wire name of a field of a content type. */
export const wireName = (field: string, shape: Shape): string =>
  shape.wireNames.get(field) ?? (isReserved(field, shape) ? field.slice(1) : field)

/** Is this name, without its `~`, a field whose wire name differs? */
const isReserved = (name: string, { wireNames }: Shape): boolean => wireNames.has(name.replace(/^~+/, ""))

let table: ReadonlyMap<string, Shape> | undefined

const make = (): ReadonlyMap<string, Shape> => {
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
    ]
  ])
}

type Fields = { readonly [name: string]: Schema.ConstraintDecoder<unknown> }
type Rule = (value: { readonly [name: string]: unknown }) => string | undefined

const shape = (fields: Fields, rule: Rule = () => undefined, wireNames = commonNames): Shape => {
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

// The input is JSON already: the codec takes a snapshot first.
const JsonObjectShape = Schema.declare(isJsonObject, { expected: "an object" })

// Is this Base64 written back unchanged? It is when it is padded, has no line breaks, and its unused bits are zero.
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

/** The wire names of a call are older than the names it has everywhere else. */
const callNames: ReadonlyMap<string, string> = new Map([...commonNames, ["name", "tool_name"], ["input", "arguments"]])
