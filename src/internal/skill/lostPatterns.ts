/**
 * Finds the patterns of an input that models are not shown.
 *
 * JSON Schema can express a regular expression only with the flag `u`, and a grammar only one without lookaround and
 * backreferences. Calls are checked against both all the same.
 */

import * as Result from "effect/Result"
import * as SchemaAST from "effect/SchemaAST"
import { isRecord, own } from "../base/json.ts"
import * as Pattern from "../pattern/pattern.ts"

/** Returns a sentence for each pattern that cannot be exported. */
export const find = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  const found = new Set<string>()
  visit(ast, "", { found, seen: new Set() })
  return [...found]
}

interface Walk {
  readonly found: Set<string>
  readonly seen: Set<SchemaAST.AST>
}

const visit = (ast: SchemaAST.AST, path: string, walk: Walk): void => {
  if (walk.seen.has(ast)) return
  walk.seen.add(ast)
  const at = (part: SchemaAST.AST, name: string) => visit(part, path === "" ? name : `${path}.${name}`, walk)
  for (const check of (ast.checks ?? []).flatMap(filtersOf)) {
    const lost = lostBy(check)
    if (lost !== undefined) walk.found.add(`${lost.pattern} of ${path === "" ? "the input" : `'${path}'`} ${lost.why}`)
  }
  if (SchemaAST.isSuspend(ast)) return visit(ast.thunk(), path, walk)
  if (SchemaAST.isUnion(ast)) return ast.types.forEach((member) => visit(member, path, walk))
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
