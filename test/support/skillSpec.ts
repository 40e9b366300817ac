/**
 * The inputs of a vector as a Schema, and its Ruby type names as ours (BP-84, BP-85, BP-88).
 */
import { Effect, Schema, SchemaGetter } from "effect"

/** A type word, a union of them, a full spec (with `type`), or the keys of an object. */
export type Spec = string | ReadonlyArray<string> | { readonly [key: string]: unknown }

const words: ReadonlyMap<string, string> = new Map([
  ["String", "string"],
  ["Integer", "integer"],
  ["Float", "number"],
  ["Numeric", "number"],
  ["NilClass", "null"],
  ["TrueClass", "boolean"],
  ["FalseClass", "boolean"],
  ["Array", "array"],
  ["Hash", "object"],
  ["Kernai::Media", "media"]
])

const pattern = /Kernai::Media|\b(?:String|Integer|Float|Numeric|NilClass|TrueClass|FalseClass|Array|Hash)\b/g

/** Ruby's type names in a text as ours; `TrueClass or FalseClass` is one type here. */
export const ours = (text: string): string =>
  text
    .replace(pattern, (word) => words.get(word) ?? word)
    .replaceAll("boolean or boolean", "boolean")
    .replaceAll("boolean|boolean", "boolean")

/** Ruby's notation of hashes and lists as the JSON that ours is (BP-73). */
export const hashesAsJson = (text: string): string =>
  text.replace(/"(?:[^"\\]|\\.)*"|:(\w+)(?==>)|=>|\bnil\b|, /g, (token, symbol: string | undefined) => {
    if (symbol !== undefined) return `"${symbol}"`
    return (
      new Map([
        ["=>", ":"],
        ["nil", "null"],
        [", ", ","]
      ]).get(token) ?? token
    )
  })

/** A listing in our words: a default that is a list or a hash is JSON. */
export const ourListing = (text: string): string =>
  ours(text).replace(/(?<= default: )[[{].*?[\]}](?=, [^,]+ \(|$)/gm, hashesAsJson)

const isObject = (value: unknown): value is { readonly [key: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const isSpec = (value: unknown): value is Spec =>
  typeof value === "string" ||
  isObject(value) ||
  (Array.isArray(value) && value.every((word) => typeof word === "string"))

class NotUnderstood extends Error {}

const bare = (word: string): Schema.Codec<unknown> => {
  switch (word) {
    case "string":
      return Schema.String
    case "integer":
      return Schema.Int
    case "float":
    case "number":
      return Schema.Finite
    case "boolean":
      return Schema.Boolean
    case "null":
    case "nil":
      return Schema.Null
    case "array":
      return Schema.Array(Schema.Json)
    case "object":
    case "hash":
      return Schema.Record(Schema.String, Schema.Json)
    case "media":
      return Schema.String.annotate({ format: "media" })
    default:
      throw new NotUnderstood(`type '${word}'`)
  }
}

const typed = (type: unknown, parts: { readonly of?: unknown; readonly schema?: unknown }): Schema.Codec<unknown> => {
  const names = Array.isArray(type) ? type : [type]
  const members = names.flatMap((name): ReadonlyArray<Schema.Codec<unknown>> => {
    if (typeof name !== "string") throw new NotUnderstood(`type ${JSON.stringify(type)}`)
    if (name === "array" && parts.of !== undefined) return [Schema.Array(element(parts.of))]
    if ((name === "object" || name === "hash") && isObject(parts.schema)) return [fields(parts.schema)]
    // Two classes in Ruby, one type here.
    if (name === "true" || name === "false") return [Schema.Boolean]
    return [bare(name)]
  })
  const [only, ...others] = members
  return only !== undefined && others.length === 0 ? only : Schema.Union(members)
}

const element = (spec: unknown): Schema.Codec<unknown> => {
  if (!isSpec(spec)) throw new NotUnderstood(`spec ${JSON.stringify(spec)}`)
  if (typeof spec === "string" || !isObject(spec)) return typed(spec, {})
  return "type" in spec ? typed(spec["type"], spec) : fields(spec)
}

const fields = (specs: { readonly [key: string]: unknown }): Schema.Codec<unknown> => inputs(specs)

/** The Schema of declared inputs. A default is taken as it is, never checked (BP-86). */
export const inputs = (specs: { readonly [key: string]: unknown }) =>
  Schema.Struct(
    Object.fromEntries(
      Object.entries(specs).map(([name, spec]) => {
        const schema = element(spec)
        if (!isObject(spec) || !("type" in spec) || !("default" in spec)) return [name, schema]
        return [
          name,
          Schema.optionalKey(schema).pipe(
            Schema.decodeTo(Schema.Unknown, {
              decode: SchemaGetter.withDefault(Effect.succeed(spec["default"])),
              encode: SchemaGetter.passthrough({ strict: false })
            })
          )
        ]
      })
    )
  )

/** The declared types at the top of an input. */
export const declared = (spec: unknown): ReadonlyArray<unknown> =>
  isObject(spec) && "type" in spec ? (Array.isArray(spec["type"]) ? spec["type"] : [spec["type"]]) : [spec]

/** Where a call of these tests happens. */
export const scope = {
  runId: "run",
  rootRunId: "run",
  callId: "run.0",
  idempotencyKey: "run.0",
  step: 0,
  depth: 0,
  taskId: undefined,
  runContext: {}
} as const
