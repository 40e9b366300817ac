/**
 * Productions of the JSON that fits a JSON Schema.
 *
 * Everything drawn from them fits the schema, except for what productions cannot express: `multipleOf`, `uniqueItems`,
 * counts of members, lookaround in patterns, and a second pattern. There the grammar is wider, and the skill's own
 * Schema decides. Schemas may come from a foreign server: they are read within bounds, beyond which any JSON is
 * accepted.
 */

import { anyBut, anyObject, anyValue, blank, keyExcept, maxDepth } from "./anyJson.ts"
import type { JsonObject } from "../../../kit/json.ts"
import { properties, required, resolve } from "../../../kit/jsonSchema.ts"
import * as Numbers from "./numberRules.ts"
import { choice, empty, never, type Node, optional, repeat, rule, type Rules, sequence, text } from "./productions.ts"
import { boundsOf, constrains, count, formats, impliedType, merge, type Part } from "./schemaParts.ts"
import * as Strings from "./stringRules.ts"
import { isRecord, own } from "../../../kit/json.ts"

/** Returns the productions of the values that fit a schema. `name` is the prefix of their rules. */
export const fitting = (rules: Rules, schema: JsonObject, name: string): Node =>
  new SchemaRules(rules, schema).value(schema, name, 0)

const maxChoices = 500

class SchemaRules {
  readonly #rules: Rules
  readonly #root: JsonObject
  readonly #references = new Map<string, string>()

  constructor(rules: Rules, root: JsonObject) {
    this.#rules = rules
    this.#root = root
  }

  value(schema: unknown, name: string, depth: number): Node {
    if (schema === false) return never
    if (!isRecord(schema) || depth > maxDepth || !this.#rules.spend()) return anyValue(this.#rules)
    const reference = own(schema, "$ref")
    if (typeof reference === "string") return this.#referred(reference, name, depth)
    const parts = this.#parts(schema)
    const members = parts.flatMap((part) => {
      const any = own(part, "anyOf") ?? own(part, "oneOf")
      return Array.isArray(any) ? [any] : []
    })
    const [union] = members
    const base = merge(parts)
    if (union === undefined) return this.#typed(base, name, depth)
    // Constraints beside a union apply to each of its members.
    const beside = Object.keys(base).some((key) => constrains.has(key))
    const ways: Array<Node> = []
    for (const [index, member] of union.slice(0, maxChoices).entries()) {
      // Out of budget: the remaining alternatives become any JSON.
      if (this.#rules.isSpent) return choice(...ways, anyValue(this.#rules))
      const whole = beside && isRecord(member) ? { allOf: [base, member] } : member
      ways.push(this.value(whole, `${name}-${index + 1}`, depth + 1))
    }
    return choice(...ways)
  }

  /** A reference becomes its own rule, so a schema may be recursive. */
  #referred(reference: string, name: string, depth: number): Node {
    const known = this.#references.get(reference)
    if (known !== undefined) return rule(known)
    const target = reference === "#" ? this.#root : resolve({ $ref: reference }, this.#root)
    const named = this.#rules.name(name)
    this.#references.set(reference, named)
    this.#rules.map.set(named, this.value(target, name, depth + 1))
    return rule(named)
  }

  /** Returns a schema and its `allOf` parts, with references followed. */
  #parts(schema: Part, depth = 0): ReadonlyArray<Part> {
    const all = own(schema, "allOf")
    if (!Array.isArray(all) || depth > 4 || !this.#rules.spend()) return [schema]
    return [
      schema,
      ...all
        .slice(0, maxChoices)
        .flatMap((part: unknown) => this.#parts(isRecord(part) ? resolve(part, this.#root) : {}, depth + 1))
    ]
  }

  #typed(schema: Part, name: string, depth: number): Node {
    if (Object.hasOwn(schema, "const")) return text(Strings.literal(schema["const"]))
    const values = own(schema, "enum")
    if (Array.isArray(values) && values.length <= maxChoices) {
      return choice(...values.map((value: unknown) => text(Strings.literal(value))))
    }
    const not = own(schema, "not")
    if (isRecord(not) && Object.keys(not).length === 0) return never
    const type = own(schema, "type")
    // A struct without fields is written as anything but null.
    const others = isRecord(not) && type === undefined ? own(not, "type") : undefined
    if (others !== undefined) return anyBut(this.#rules, [others].flat())
    const types = Array.isArray(type) ? type : [type ?? impliedType(schema)]
    return choice(...types.map((type: unknown) => this.#one(type, schema, name, depth)))
  }

  #one(type: unknown, schema: Part, name: string, depth: number): Node {
    switch (type) {
      case "null":
        return text("null")
      case "boolean":
        return choice(text("true"), text("false"))
      case "integer":
        return this.#number(Numbers.integers, "integer", schema, name)
      case "number":
        return this.#number(Numbers.numbers, "number", schema, name)
      case "string":
        return this.#string(schema)
      case "array":
        return this.#array(schema, name, depth)
      case "object":
        return this.#object(schema, name, depth)
      default:
        return anyValue(this.#rules)
    }
  }

  #number(make: (bounds: Numbers.Bounds) => Node, shared: string, schema: Part, name: string): Node {
    const bounds = boundsOf(schema)
    return Object.values(bounds).every((bound) => bound === undefined || Math.abs(bound) === Number.MAX_SAFE_INTEGER)
      ? this.#rules.shared(shared, () => make({}))
      : this.#rules.add(name, make(bounds))
  }

  #string(schema: Part): Node {
    const patterns = [own(schema, "pattern"), formats.get(String(own(schema, "format")))]
    for (const pattern of patterns) {
      const fitting = typeof pattern === "string" ? Strings.fitting(this.#rules, pattern) : undefined
      if (fitting !== undefined) return fitting
    }
    return Strings.sized(this.#rules, count(schema, "minLength") ?? 0, count(schema, "maxLength"))
  }

  #array(schema: Part, name: string, depth: number): Node {
    const prefix = own(schema, "prefixItems")
    const first = Array.isArray(prefix) ? prefix.slice(0, maxChoices) : []
    const items = own(schema, "items")
    const min = count(schema, "minItems") ?? 0
    const max = Math.min(count(schema, "maxItems") ?? Infinity, items === false ? first.length : Infinity)
    if (min > max) return never
    const space = blank(this.#rules)
    const comma = sequence(text(","), space)
    let tail: Node = empty
    if (max > first.length) {
      const item = this.#rules.add(`${name}-item`, this.value(items ?? {}, `${name}-item`, depth + 1))
      const next = this.#rules.add(`${name}-more`, sequence(comma, item))
      const [from, to] = [Math.max(min - first.length, 0), max - first.length]
      tail =
        first.length > 0
          ? repeat(next, within(from), upTo(to))
          : sequence(item, repeat(next, within(Math.max(from - 1, 0)), upTo(to - 1)))
      if (first.length === 0 && from === 0) tail = optional(tail)
    }
    // Built from the end, since an absent optional item omits everything after it.
    for (let index = Math.min(first.length, max) - 1; index >= 0; index--) {
      const item = this.value(first[index], `${name}-${index + 1}`, depth + 1)
      const here = sequence(index === 0 ? empty : comma, item, tail)
      // A rule of its own, because hundreds of nested nodes would be too deep to walk.
      tail = index < min ? here : this.#rules.add(`${name}-from-${index + 1}`, optional(here))
    }
    return sequence(text("["), space, tail, space, text("]"))
  }

  #object(schema: Part, name: string, depth: number): Node {
    const needed = required(schema)
    const more = own(schema, "additionalProperties")
    const shaped = own(schema, "patternProperties")
    const listed = properties(schema)
    const names = new Set(listed.map(([key]) => key))
    // Required members are named even if the schema declares nothing else about them.
    const undeclared = isRecord(shaped) ? [] : Array.from(needed).filter((key) => !names.has(key))
    const declared = [...listed, ...undeclared.map((key) => [key, more ?? {}] as const)]
    if (declared.length > maxChoices) return anyObject(this.#rules)
    const space = blank(this.#rules)
    // Where members are declared, others are allowed only by a schema for them.
    const isOpen = isRecord(more) || (listed.length === 0 && more !== false)
    const others: Array<Node> = []
    for (const [pattern, part] of isRecord(shaped) ? Object.entries(shaped).slice(0, maxChoices) : []) {
      const key = Strings.fitting(this.#rules, pattern)
      if (key !== undefined) others.push(this.#member(key, part, `${name}-other`, depth))
    }
    if (isOpen && others.length === 0) {
      const keys = own(schema, "propertyNames")
      const key =
        isRecord(keys) && (own(keys, "pattern") !== undefined || own(keys, "enum") !== undefined)
          ? this.value(keys, `${name}-key`, depth + 1)
          : keyExcept(
              this.#rules,
              declared.map(([key]) => key),
              name
            )
      others.push(this.#member(key, isRecord(more) ? more : {}, `${name}-other`, depth))
    }
    const comma = sequence(text(","), space)
    const other = others.length === 0 ? never : this.#rules.add(`${name}-member`, choice(...others))
    const min = Math.max((count(schema, "minProperties") ?? 0) - declared.length, 0)
    const rest = repeat(sequence(comma, other), within(min))
    let later: Node = other === never ? empty : rest
    let begin: Node =
      other === never
        ? empty
        : min > 0
          ? sequence(other, repeat(sequence(comma, other), within(min - 1)))
          : optional(sequence(other, repeat(sequence(comma, other), 0)))
    // Built from the end, with each member twice: as the first one written, and after another.
    for (let index = declared.length - 1; index >= 0; index--) {
      const [key, part] = declared[index] ?? ["", {}]
      const value = this.#member(text(Strings.literal(key)), part, `${name}-${key}`, depth)
      const first = sequence(value, later)
      const behind = sequence(comma, value, later)
      begin = needed.has(key) ? first : choice(first, begin)
      later = needed.has(key) ? behind : choice(behind, later)
      if (!needed.has(key)) {
        begin = this.#rules.add(`${name}-from-${key}`, begin)
        later = this.#rules.add(`${name}-and-${key}`, later)
      }
    }
    return this.#rules.add(name, sequence(text("{"), space, begin, space, text("}")))
  }

  #member(key: Node, part: unknown, name: string, depth: number): Node {
    const value = this.value(part, name, depth + 1)
    return value === never ? never : sequence(key, text(":"), blank(this.#rules), value)
  }
}

/** Readers reject grammars with many repetitions: larger counts are reduced to this, or left open. */
const maxCount = 500
const within = (count: number): number => Math.min(count, maxCount)
const upTo = (count: number): number | undefined => (count <= maxCount ? count : undefined)
