/**
 * Describes invalid parameters of a call so that a model can correct them.
 *
 * Only the first problem is described: its path, the expected type and the received value. The expected names and a
 * usage example follow, and a hint if the parameters are text that should be JSON.
 */

import * as Result from "effect/Result"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Bounds from "../../kit/bounds.ts"
import { InvalidArguments } from "../../KernelError.ts"
import type { DialectName } from "../../Dialect.ts"
import { shorten } from "../../kit/text.ts"
import type { JsonObject } from "../../kit/json.ts"
import { at, mediaId, typeNames } from "../../kit/jsonSchema.ts"
import { pathText } from "../../kit/fault.ts"
import { type Input, command, nativeUsage, usage } from "./skillInput.ts"
import { isRecord, own, parseJson } from "../../kit/json.ts"

/** A call whose parameters do not fit its skill. */
interface Misfit {
  readonly skill: string
  readonly input: Input
  readonly params: JsonObject
  readonly issue: SchemaIssue.Issue
  /** The dialect of the call. Default: `blocks`. */
  readonly dialect?: DialectName | undefined
}

interface Fault {
  readonly path: ReadonlyArray<PropertyKey>
  readonly issue: SchemaIssue.Issue
}

/** Returns the error for the first problem. */
export const faultOf = (misfit: Misfit): InvalidArguments => {
  const fault = first(misfit.issue, [])
  const path = shorten(pathText(fault.path), 200)
  // If a nested part is missing, a reminder of the top-level names does not help.
  const deep = fault.issue._tag === "MissingKey" && fault.path.length > 1
  const paragraphs = [sentence(misfit, fault, path), ...(deep ? [] : [reminder(misfit), ...hint(misfit)])]
  return new InvalidArguments({ skill: misfit.skill, path, detail: paragraphs.join("\n\n") })
}

/** Follows an issue to its first leaf. */
const first = (issue: SchemaIssue.Issue, path: ReadonlyArray<PropertyKey>): Fault => {
  switch (issue._tag) {
    case "Pointer":
      return first(issue.issue, [...path, ...issue.path])
    case "Composite":
      return first(issue.issues[0], path)
    case "Encoding":
      return first(issue.issue, path)
    case "AnyOf":
      // If no member matches the type of the value, the union itself was expected.
      return issue.issues[0] === undefined ? { path, issue } : first(issue.issues[0], path)
    default:
      return { path, issue }
  }
}

const sentence = (misfit: Misfit, { issue, path }: Fault, where: string): string => {
  const subject = where === "" ? "the parameters" : where
  if (issue._tag === "MissingKey") return `Missing required input: ${subject} for skill '${misfit.skill}'.`
  if (issue._tag === "UnexpectedKey") return `Unexpected input: ${subject} for skill '${misfit.skill}'.`
  const root = misfit.input.schema()
  const expected = Array.from(new Set(at(root, path).flatMap((schema) => typeNames(schema, root))))
  const value = valueAt(misfit.params, path)
  if (value !== undefined && expected.length > 0 && !expected.some((type) => isOf(value, type))) {
    const got = expected.some(isLiteral) ? shown(value) : typeOf(value)
    return `Expected ${subject} to be ${expected.join(" or ")}, got ${got}.`
  }
  const message = format(issue).issues[0]?.message ?? "it does not fit"
  if (!message.startsWith("Expected ")) {
    return `Invalid ${where === "" ? "parameters" : where} for skill '${misfit.skill}': ${message}`
  }
  const got = value === undefined ? "" : `, got ${shown(value)}`
  return `Expected ${subject} to be ${message.slice("Expected ".length)}${got}.`
}

const reminder = (misfit: Misfit): string => {
  const received = Object.keys(misfit.params).join(", ")
  const names = misfit.input.names()
  return [
    `Got params:      ${received === "" ? "(none)" : shorten(received, 500)}`,
    `Expected params: ${names.join(", ")}`,
    `Usage:           ${misfit.dialect === "tools" ? nativeUsage(misfit.input) : usage(misfit.skill, names)}`
  ].join("\n")
}

/** Shows a model that wrote text how to write JSON. */
const hint = ({ dialect, input, params, skill }: Misfit): ReadonlyArray<string> => {
  const [name, ...others] = Object.keys(params)
  const text = name === undefined || others.length > 0 ? undefined : params[name]
  if (name === undefined || typeof text !== "string") return []
  if (text.startsWith("{")) {
    const parsed = parseJson(text, Bounds.jsonDepth)
    return Result.isFailure(parsed) ? [`Hint: the content was read as text, for it is not JSON: ${parsed.failure}`] : []
  }
  const names = input.names()
  const root = input.schema()
  const type =
    names.length === 1 && names[0] === name ? at(root, [name]).flatMap((part) => typeNames(part, root))[0] : undefined
  const example = type === undefined ? undefined : examples.get(type)
  if (example === undefined) return []
  return [`Hint: write it as JSON: ${command(skill, `{${JSON.stringify(name)}: ${example}}`, dialect)}`]
}

const examples: ReadonlyMap<string, string> = new Map([
  ["integer", "1"],
  ["number", "1.5"],
  ["boolean", "true"],
  ["null", "null"],
  ["array", "[...]"],
  ["object", "{...}"]
])

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const valueAt = (params: JsonObject, path: ReadonlyArray<PropertyKey>): unknown =>
  path.reduce<unknown>(
    (value, key) =>
      Array.isArray(value) && typeof key === "number"
        ? value[key]
        : isRecord(value)
          ? own(value, String(key))
          : undefined,
    params
  )

const typeOf = (value: unknown): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "array"
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number"
  return typeof value
}

const isLiteral = (type: string) => type !== mediaId && !/^[a-z]+$/.test(type)

const isOf = (value: unknown, type: string): boolean => {
  const actual = typeOf(value)
  return (
    type === "any" ||
    type === actual ||
    (type === "number" && actual === "integer") ||
    ((type === "media" || type === mediaId) && actual === "string") ||
    type === JSON.stringify(value)
  )
}

const shown = (value: unknown): string => shorten(JSON.stringify(value) ?? String(value), 100)
