/**
 * The input of a skill, from a Schema or a JSON Schema: parameters, listing and decoder.
 *
 * The description for the model (names, types, usage) is derived from the JSON Schema, for local and foreign skills
 * alike. It is computed on demand. The decoder is built once.
 */

import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import { escape } from "../../Block.ts"
import type { DialectName } from "../../Dialect.ts"
import type { Kind } from "../../Media.ts"
import * as Bounds from "../../kit/bounds.ts"
import type { Json, JsonObject } from "../../kit/json.ts"
import { isJsonObject, isRecord, jsonObject, own, parseJson, requestOf } from "../../kit/json.ts"
import { properties, required, resolve, typeName, withDates, withDefinitions } from "../../kit/jsonSchema.ts"
import * as Snapshot from "../../kit/snapshot.ts"
import { strip, visible } from "../../kit/text.ts"
import * as Pattern from "../../kit/pattern.ts"
import type { Configs, Credentials } from "./skillSettings.ts"

/** The input of a skill as seen from outside. */
export interface Input {
  readonly schema: () => JsonObject
  readonly names: () => ReadonlyArray<string>
  readonly parameters: (text: string) => JsonObject
  /** A sentence for each pattern that models are not shown. */
  readonly lostPatterns: () => ReadonlyArray<string>
}

/** An input that can also be decoded, and encoded again. */
interface DecodedInput<A, RD, RE> extends Input {
  readonly decode: (params: JsonObject) => Effect.Effect<A, SchemaIssue.Issue, RD>
  readonly encode: (input: A) => Effect.Effect<JsonObject, SchemaIssue.Issue, RE>
}

/** Describes an input by its JSON Schema. */
export const fromJsonSchema = (schema: JsonObject): Input => describe(() => schema)

/** Describes an input by its Schema. Models write JSON, so it is decoded from its JSON form. */
export const fromSchema = <S extends Schema.Constraint>(
  schema: S
): DecodedInput<S["Type"], S["DecodingServices"], S["EncodingServices"]> => {
  const codec = Schema.toCodecJson(schema)
  const parse = SchemaParser.decodeUnknownEffect(codec)
  const write = SchemaParser.encodeUnknownEffect(codec)
  const encoded = SchemaAST.toEncoded(codec.ast)
  const shape = shapeOf(encoded)
  const inherits = lazy(() => namesMember(encoded, new Set()))
  const decode = (params: JsonObject): Effect.Effect<S["Type"], SchemaIssue.Issue, S["DecodingServices"]> => {
    if (shape === "object") return parse(inherits() ? bare(params) : params)
    if (shape === "none") return parse(null)
    // An empty struct accepts any object and would return it unchanged.
    if (shape === "empty") return parse({})
    const single = Object.hasOwn(params, fallback) ? params[fallback] : undefined
    return single === undefined ? Effect.fail(missingFallback) : atFallback(parse(inherits() ? bare(single) : single))
  }
  const encode = (input: S["Type"]): Effect.Effect<JsonObject, SchemaIssue.Issue, S["EncodingServices"]> =>
    Effect.map(write(input), (value) => (shape === "single" ? jsonObject({ [fallback]: value }) : jsonObject(value)))
  const lostPatterns = lazy(() => lostPatternsOf(encoded))
  return { ...describe(lazy(() => jsonSchema(schema, shape))), decode, encode, lostPatterns }
}

/** Returns the parameters of a call: an object unchanged, text parsed by the skill. */
export const paramsOf = ({ parameters }: Pick<Input, "parameters">, given: Json): JsonObject =>
  isJsonObject(given) ? given : parameters(requestOf(given))

/** Returns an example call of a skill in a block. */
export const usage = (skill: string, names: ReadonlyArray<string>): string =>
  command(
    skill,
    names.length === 1 ? `${names[0]} value` : `{${names.map((name) => `${JSON.stringify(name)}: "..."`).join(", ")}}`
  )

/** Returns the arguments of a native call, each with its type in the place of its value. */
export const nativeUsage = (input: Input): string => {
  const root = input.schema()
  const fields = properties(root).map(([name, part]) => `${JSON.stringify(name)}: <${typeName(part, root)}>`)
  return visible(`{${fields.join(", ")}}`)
}

/** Returns a command block, or only the arguments for a native call, whose form depends on the vendor. */
export const command = (skill: string, content: string, dialect?: DialectName): string =>
  dialect === "tools" ? visible(content) : `<block type="command" name="${skill}">${escape(visible(content))}</block>`

/** Describes the inputs in one line: names, types and defaults. */
const summary = (input: Input): string => {
  const root = input.schema()
  const needed = required(root)
  return properties(root)
    .map(([name, part]) => {
      const own = resolve(part, root)
      const rest = Object.hasOwn(own, "default")
        ? ` default: ${textOf(own["default"])}`
        : needed.has(name)
          ? ""
          : " optional"
      return `${name} (${typeName(part, root)})${rest}`
    })
    .join(", ")
}

/** Computes a value on first use. */
export const lazy = <A>(compute: () => A): (() => A) => {
  let known: { readonly value: A } | undefined
  return () => (known ??= { value: compute() }).value
}

/** Returns the entry of a skill: names, types and defaults of its inputs and settings, but no values of settings. */
export const listingOf = (name: string, options: Described, input: Input): string => {
  const names = input.names()
  const config = Object.entries(options.config ?? {}).map(
    ([key, spec]) => `${key} (${spec.type ?? "string"})${spec.default == null ? "" : ` default: ${spec.default}`}`
  )
  const credentials = Object.entries(options.credentials ?? {}).map(([key, spec]) =>
    spec.required === true ? `${key} (required)` : key
  )
  return [
    // Escaped, because a description from a server must not open or close a block.
    options.description === "" ? `- ${name}` : `- ${name}: ${escape(options.description)}`,
    ...(names.length === 0 ? [] : [`Inputs: ${escape(visible(summary(input)))}`, `Usage: ${usage(name, names)}`]),
    ...(options.produces === undefined || options.produces.length === 0
      ? []
      : [`Produces: ${options.produces.join(", ")}`]),
    ...(config.length === 0 ? [] : [`Config: ${config.join(", ")}`]),
    ...(credentials.length === 0 ? [] : [`Credentials: ${credentials.join(", ")}`])
  ].join("\n  ")
}

/**
 * Returns a sentence for each pattern that models are not shown.
 *
 * JSON Schema can express a regular expression only with the flag `u`, and a grammar only one without lookaround and
 * backreferences. Calls are still checked against all patterns.
 */
const lostPatternsOf = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  const found = new Set<string>()
  visitPatterns(ast, "", { found, seen: new Set() })
  return [...found]
}

/** The name of the only input of a skill whose schema is not an object, and of text without a matching input. */
const fallback = "input"

const textOf = (value: unknown): string => (typeof value === "string" ? value : (JSON.stringify(value) ?? ""))

const describe = (schema: () => JsonObject): Input => {
  const names = lazy(() => properties(schema()).map(([name]) => name))
  return { schema, names, parameters: (text) => parameters(text, names), lostPatterns: () => [] }
}

/** Parses a JSON object as the parameters. Other text is the value of the only declared input, or of `input`. */
const parameters = (content: string, names: () => ReadonlyArray<string>): JsonObject => {
  const text = strip(content)
  if (text.startsWith("{")) {
    const parsed = Result.getOrUndefined(parseJson(text, Bounds.jsonDepth))
    if (isJsonObject(parsed)) return overflows.test(text) ? withoutOverflow(text) : parsed
  }
  const declared = names()
  return { [declared.length === 1 ? (declared[0] ?? fallback) : fallback]: text }
}

/** Matches a number that may overflow a double. Only then are all numbers checked. */
const overflows = /[eE]\+?\d{3}|\d{309}/

/**
 * Parses JSON, with numbers beyond a double as text: JavaScript parses `1e400` as Infinity, which JSON cannot express.
 */
const withoutOverflow = (text: string): JsonObject => {
  const value: Json = JSON.parse(text, (_, value: Json) =>
    typeof value === "number" && !Number.isFinite(value) ? (value > 0 ? "Infinity" : "-Infinity") : value
  )
  return jsonObject(value)
}

type Shape = "object" | "empty" | "none" | "single"

const shapeOf = (ast: SchemaAST.AST): Shape => {
  if (SchemaAST.isNull(ast)) return "none"
  if (SchemaAST.isObjects(ast) && ast.propertySignatures.length + ast.indexSignatures.length === 0) return "empty"
  const members = SchemaAST.isUnion(ast) ? ast.types : [ast]
  const isObject = (member: SchemaAST.AST): boolean =>
    SchemaAST.isSuspend(member) ? isObject(member.thunk()) : SchemaAST.isObjects(member)
  return members.length > 0 && members.every(isObject) ? "object" : "single"
}

/**
 * Returns whether an object in the schema has a field named like a member of `Object.prototype`, which would be found
 * even if absent.
 */
const namesMember = (ast: SchemaAST.AST, seen: Set<SchemaAST.AST>): boolean => {
  if (seen.has(ast)) return false
  seen.add(ast)
  const inside = (part: SchemaAST.AST) => namesMember(part, seen)
  if (SchemaAST.isSuspend(ast)) return inside(ast.thunk())
  if (SchemaAST.isUnion(ast)) return ast.types.some(inside)
  if (SchemaAST.isArrays(ast)) return [...ast.elements, ...ast.rest].some(inside)
  if (!SchemaAST.isObjects(ast)) return false
  return (
    ast.propertySignatures.some(({ name, type }) => name in Object.prototype || inside(type)) ||
    ast.indexSignatures.some(({ type }) => inside(type))
  )
}

/** Copies JSON into objects without a prototype. */
const bare = (value: Json): Json => {
  if (Array.isArray(value)) return value.map(bare)
  if (!isJsonObject(value)) return value
  const copy: { [key: string]: Json } = Object.create(null)
  for (const [key, part] of Object.entries(value)) copy[key] = bare(part)
  return copy
}

const jsonSchema = (schema: Schema.Constraint, shape: Shape): JsonObject => {
  const document = withDates(schema, Schema.toJsonSchemaDocument(schema, { onExcessProperty: "error" }))
  const definitions = { $defs: document.definitions }
  const root = resolve(document.schema, jsonObject(definitions))
  const body =
    shape === "none" || shape === "empty"
      ? { type: "object", properties: {} }
      : shape === "single"
        ? { type: "object", properties: { [fallback]: document.schema }, required: [fallback] }
        : withDefaults(asObject(root, definitions), schema)
  return jsonObject(withDefinitions(body, document.definitions))
}

/**
 * Merges the members of a union into one object, because vendors require an object at the root. A field is required if
 * all members require it.
 */
const asObject = (root: Record<string, unknown>, definitions: Record<string, unknown>): Record<string, unknown> => {
  const union = root["anyOf"]
  if (!Array.isArray(union)) {
    return root["type"] === "object" ? { properties: {}, ...root } : { type: "object", properties: {} }
  }
  const members = union.map((member) => resolve(member, jsonObject(definitions)))
  const parts = new Map<string, Array<unknown>>()
  for (const member of members) {
    for (const [name, part] of properties(member)) parts.set(name, [...(parts.get(name) ?? []), part])
  }
  return {
    type: "object",
    properties: Object.fromEntries(
      Array.from(parts, ([name, found]) => [name, found.length === 1 ? found[0] : { anyOf: found }])
    ),
    required: Array.from(parts.keys()).filter((name) => members.every((member) => required(member).has(name)))
  }
}

/** Adds the constant defaults of a struct's fields to its JSON Schema. */
const withDefaults = (root: Record<string, unknown>, schema: Schema.Constraint): Record<string, unknown> => {
  const fields = "fields" in schema ? schema.fields : undefined
  if (typeof fields !== "object" || fields === null) return root
  const known = new Map(Object.entries(fields))
  return {
    ...root,
    properties: Object.fromEntries(
      properties(root).map(([name, part]) => {
        const found = defaultOf(known.get(name))
        return [name, found === undefined || typeof part !== "object" ? part : { default: found.value, ...part }]
      })
    )
  }
}

/** Returns the default of a field in JSON, if decoding an absent field gives one synchronously. */
const defaultOf = (field: unknown): { readonly value: Json } | undefined => {
  if (!Schema.isSchema(field)) return undefined
  const codec = Schema.toCodecJson(Schema.Struct({ field }))
  const decoded = SchemaParser.decodeEffect(codec)({})
  if (!Exit.isExit(decoded) || !Exit.isSuccess(decoded)) return undefined
  const encoded = SchemaParser.encodeUnknownEffect(codec)(decoded.value)
  const written = Exit.isExit(encoded) && Exit.isSuccess(encoded) ? encoded.value : decoded.value
  const json = Result.getOrUndefined(Snapshot.take(written))
  const value = isJsonObject(json) ? json["field"] : undefined
  return value === undefined ? undefined : { value }
}

const missingFallback = new SchemaIssue.Pointer([fallback], new SchemaIssue.MissingKey(undefined))

const atFallback = <A, R>(effect: Effect.Effect<A, SchemaIssue.Issue, R>) =>
  Effect.mapError(effect, (issue) => new SchemaIssue.Pointer([fallback], issue))

/** The options of a skill that its listing entry shows. */
interface Described {
  readonly description: string
  readonly config?: Configs | undefined
  readonly credentials?: Credentials | undefined
  readonly produces?: ReadonlyArray<Kind> | undefined
}

interface Visit {
  readonly found: Set<string>
  readonly seen: Set<SchemaAST.AST>
}

const visitPatterns = (ast: SchemaAST.AST, path: string, walk: Visit): void => {
  if (walk.seen.has(ast)) return
  walk.seen.add(ast)
  const at = (part: SchemaAST.AST, name: string) => visitPatterns(part, path === "" ? name : `${path}.${name}`, walk)
  for (const check of (ast.checks ?? []).flatMap(filtersOf)) {
    const lost = lostBy(check)
    if (lost !== undefined) walk.found.add(`${lost.pattern} of ${path === "" ? "the input" : `'${path}'`} ${lost.why}`)
  }
  if (SchemaAST.isSuspend(ast)) return visitPatterns(ast.thunk(), path, walk)
  if (SchemaAST.isUnion(ast)) return ast.types.forEach((member) => visitPatterns(member, path, walk))
  if (SchemaAST.isArrays(ast)) return [...ast.elements, ...ast.rest].forEach((item) => at(item, "[]"))
  if (!SchemaAST.isObjects(ast)) return
  for (const { name, type } of ast.propertySignatures) at(type, String(name))
  for (const { type } of ast.indexSignatures) at(type, "*")
}

const filtersOf = (check: SchemaAST.Check<never>): ReadonlyArray<SchemaAST.Check<never>> =>
  check._tag === "FilterGroup" ? check.checks.flatMap(filtersOf) : [check]

const lostBy = ({ annotations }: SchemaAST.Check<never>) => {
  const form: unknown = annotations?.["representation"]
  const payload = isRecord(form) && own(form, "id") === "effect/schema/isPattern" ? own(form, "payload") : undefined
  if (!isRecord(payload)) return undefined
  const source = String(own(payload, "source"))
  const flags = String(own(payload, "flags"))
  const pattern = `/${source}/${flags}`
  if (!/^[dg]*uy?$/.test(flags))
    return { pattern, why: "is not in its JSON Schema, which has patterns with the flag u alone" }
  return Result.isFailure(Pattern.regex(source)) ? { pattern, why: "is not in its grammar" } : undefined
}
