/**
 * Marks the dates of a Schema in its JSON Schema, which names only their strings.
 */

import * as DateTime from "effect/DateTime"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"
import * as SchemaParser from "effect/SchemaParser"
import { isRecord, own } from "./json.ts"

interface Document {
  readonly schema: Record<string, unknown>
  readonly definitions: Record<string, unknown>
}

/** Adds `format: "date-time"` to every string that is read as an instant, such as a `Schema.Date`. */
export const withDates = (schema: Schema.Constraint, { definitions, schema: root }: Document): Document => {
  const copy = structuredClone({ schema: root, definitions })
  mark(schema.ast, copy.schema, { definitions: copy.definitions, seen: new Set() })
  return copy
}

interface Walk {
  readonly definitions: Record<string, unknown>
  readonly seen: Set<SchemaAST.AST>
}

const mark = (ast: SchemaAST.AST, part: unknown, walk: Walk): void => {
  const here = referred(part, walk)
  if (here === undefined) return
  if (isInstant(ast)) return markString(here, walk)
  const [link] = ast.encoding?.slice(-1) ?? []
  if (link !== undefined) return mark(link.to, here, walk)
  if (SchemaAST.isSuspend(ast)) {
    if (walk.seen.has(ast)) return
    walk.seen.add(ast)
    return mark(ast.thunk(), here, walk)
  }
  if (SchemaAST.isUnion(ast)) return markUnion(ast, here, walk)
  if (SchemaAST.isDeclaration(ast)) return ast.typeParameters.forEach((type) => mark(type, here, walk))
  if (SchemaAST.isArrays(ast)) return markArray(ast, here, walk)
  if (SchemaAST.isObjects(ast)) markObject(ast, here, walk)
}

const markUnion = (ast: SchemaAST.Union, here: Record<string, unknown>, walk: Walk): void => {
  const members = own(here, "anyOf") ?? own(here, "oneOf")
  const parts: ReadonlyArray<unknown> = Array.isArray(members) ? members : [here]
  // A member of its own that is any text would be called a date as well.
  const isText = ast.types.some((type) => SchemaAST.isString(type))
  for (const type of ast.types) {
    if (isText && isInstant(type)) continue
    for (const part of parts) mark(type, part, walk)
  }
}

const markArray = (ast: SchemaAST.Arrays, here: Record<string, unknown>, walk: Walk): void => {
  const prefix = own(here, "prefixItems")
  ast.elements.forEach((type, index) => mark(type, Array.isArray(prefix) ? prefix[index] : undefined, walk))
  for (const type of ast.rest.slice(0, 1)) mark(type, own(here, "items"), walk)
}

const markObject = (ast: SchemaAST.Objects, here: Record<string, unknown>, walk: Walk): void => {
  const properties = own(here, "properties")
  for (const { name, type } of ast.propertySignatures) {
    if (isRecord(properties)) mark(type, own(properties, String(name)), walk)
  }
  for (const { type } of ast.indexSignatures) mark(type, own(here, "additionalProperties"), walk)
}

const markString = (here: Record<string, unknown>, walk: Walk): void => {
  const members = own(here, "anyOf") ?? own(here, "oneOf")
  if (Array.isArray(members)) {
    for (const member of members) {
      const part = referred(member, walk)
      if (part !== undefined) markString(part, walk)
    }
  } else if (own(here, "type") === "string" && here["format"] === undefined && here["enum"] === undefined) {
    here["format"] = "date-time"
  }
}

const referred = (part: unknown, { definitions }: Walk): Record<string, unknown> | undefined => {
  if (!isRecord(part)) return undefined
  const name = /^#\/\$defs\/(.+)$/.exec(String(own(part, "$ref") ?? ""))?.[1]
  if (name === undefined) return part
  const found = own(definitions, decodeURIComponent(name).replaceAll("~1", "/").replaceAll("~0", "~"))
  return isRecord(found) ? found : undefined
}

/** Whether a Schema of instants writes them as ISO 8601, whatever else it accepts. */
const isInstant = (ast: SchemaAST.AST): boolean => {
  if (!SchemaAST.isDeclaration(ast)) return false
  const encode = SchemaParser.encodeUnknownEffect(Schema.toCodecJson(Schema.make<Schema.Codec<unknown, unknown>>(ast)))
  return samples.some((sample) => {
    const written = encode(sample)
    if (!Exit.isExit(written) || !Exit.isSuccess(written)) return false
    return typeof written.value === "string" && isoInstant.test(written.value)
  })
}

const isoInstant = /^\d{4}-\d\d-\d\dT[\d:.]+Z$/

// Several of each, because a check may refuse some.
const samples: ReadonlyArray<unknown> = [0, 946_684_800_000, 2_000_000_000_000, 7_000_000_000_000].flatMap((time) => [
  new Date(time),
  DateTime.makeUnsafe(time)
])
