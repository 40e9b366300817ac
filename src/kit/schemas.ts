/**
 * Schemas that are built when they are first needed, and plain functions derived from them.
 *
 * A derived function maps the parts of a value that its schema annotates and returns all others as they are. It checks
 * nothing, so it is for values that this process made.
 */

import * as Effect from "effect/Effect"
import { identity } from "effect/Function"
import * as Schema from "effect/Schema"
import * as SchemaAST from "effect/SchemaAST"

// ---------------------------------------------------------------- building

/** The type of the values of a schema that is built later. */
export type TypeOf<S extends (input: never) => { readonly Type: unknown }> = ReturnType<S>["Type"]

/** Returns a function that creates its value when it is first called. */
export const lazily = <A>(make: () => A): (() => A) => {
  let made: { readonly value: A } | undefined
  return () => (made ??= { value: make() }).value
}

/** The key under which a field has the value with which it is not written. */
const usualKey = "~kernai/usual"

/** Returns a field that is not written if it is undefined. */
export const absent = <S extends Schema.Constraint>(schema: S) =>
  Schema.withDecodingDefaultKey<Schema.UndefinedOr<S>>(Effect.succeed(undefined))(
    Schema.UndefinedOr(schema)
  ).annotateKey({ [usualKey]: [undefined] })

/** Returns a field that is not written if it has its usual value. */
export const otherwise = <S extends Schema.Constraint>(schema: S, usual: S["Type"]) =>
  Schema.withDecodingDefaultKey<S>(Effect.succeed(usual))(schema).annotateKey({ [usualKey]: [usual] })

// ---------------------------------------------------------------- deriving

/** Maps a value of a schema. */
export type Visit<in C> = (value: unknown, context: C) => unknown

/** An annotation that says how values of a schema are mapped. */
export interface Mapping<in out C> {
  readonly key: string
  /** Returns the annotation of a schema whose values are mapped as a whole. */
  readonly by: (visit: Visit<C>) => { readonly [key: string]: Visit<C> }
  /** Leaves out the fields that have their usual value. */
  readonly isCompact: boolean
}

/** Creates a mapping with a name of its own. */
export const mapping = <C>(name: string, { isCompact = false } = {}): Mapping<C> => {
  const key = `~kernai/${name}`
  return { key, by: (visit) => ({ [key]: visit }), isCompact }
}

/** Derives the function that maps values of a schema to values of the same type. */
export function mapped<A, C>(schema: Schema.Schema<A>, mapping: Mapping<C>): (value: A, context: C) => A
export function mapped<C>(schema: Schema.Schema<unknown>, mapping: Mapping<C>): Visit<C> {
  return visitOf(schema.ast, mapping) ?? identity
}

/** An object as its fields. */
export interface Fields {
  readonly [name: string]: unknown
}

/**
 * Derives the function that maps objects by the schema of their `type`. Fields that the schema does not have stay as
 * they are.
 */
export function mappedByType<A extends { readonly type: string }, C>(
  schemaOf: (type: A["type"]) => Schema.Schema<object>,
  mapping: Mapping<C>
): (value: A, context: C) => A
export function mappedByType<C>(
  schemaOf: (type: string) => Schema.Schema<object>,
  mapping: Mapping<C>
): (value: { readonly type: string }, context: C) => unknown {
  const visits = new Map<string, Visit<C>>()
  return (value, context) => {
    const known = visits.get(value.type)
    if (known !== undefined) return known(value, context)
    const visit = visitOf(schemaOf(value.type).ast, mapping) ?? identity
    visits.set(value.type, visit)
    return visit(value, context)
  }
}

/** Undefined for a schema whose values stay as they are. */
const visitOf = <C>(ast: SchemaAST.AST, mapping: Mapping<C>): Visit<C> | undefined => {
  const own = SchemaAST.resolveAt<Visit<C>>(mapping.key)(ast)
  if (own !== undefined) return own
  switch (ast._tag) {
    case "Objects": {
      const visit = fieldsVisit(ast, mapping)
      return visit && ((value, context) => (isFields(value) ? visit(value, context) : value))
    }
    case "Arrays": {
      const [item] = ast.rest
      const visit = item && visitOf(item, mapping)
      return visit && ((value, context) => (Array.isArray(value) ? value.map((one) => visit(one, context)) : value))
    }
    case "Union":
      return unionVisit(ast, mapping)
    default:
      return undefined
  }
}

interface Field<in C> {
  readonly visit: Visit<C> | undefined
  /** Holds the value with which the field is left out. */
  readonly usual: ReadonlyArray<unknown>
}

const fieldsVisit = <C>(ast: SchemaAST.Objects, mapping: Mapping<C>) => {
  const fields = new Map<string, Field<C>>()
  for (const { name, type } of ast.propertySignatures) {
    const visit = visitOf(type, mapping)
    const found = mapping.isCompact ? type.context?.annotations?.[usualKey] : undefined
    const usual: ReadonlyArray<unknown> = Array.isArray(found) ? found : []
    if (typeof name === "string" && (visit !== undefined || usual.length > 0)) fields.set(name, { visit, usual })
  }
  return fields.size === 0 ? undefined : (value: Fields, context: C) => mapFields(fields, value, context)
}

/** Keeps the order of the fields, which is that of the text. */
const mapFields = <C>(fields: ReadonlyMap<string, Field<C>>, value: Fields, context: C): Fields => {
  const mapped: { [name: string]: unknown } = {}
  for (const name in value) {
    const part = value[name]
    const field = fields.get(name)
    if (field === undefined) mapped[name] = part
    else if (field.usual.length === 0 || !isUsual(part, field.usual[0])) {
      mapped[name] = field.visit === undefined || part === undefined ? part : field.visit(part, context)
    }
  }
  return mapped
}

const isUsual = (value: unknown, usual: unknown): boolean =>
  value === usual || (Array.isArray(value) && value.length === 0 && Array.isArray(usual))

const unionVisit = <C>(ast: SchemaAST.Union, mapping: Mapping<C>): Visit<C> | undefined => {
  const members = ast.types.flatMap((type) => {
    const visit = visitOf(type, mapping)
    return visit === undefined ? [] : [{ fits: fitsOf(type), visit }]
  })
  return members.length === 0
    ? undefined
    : (value, context) => {
        const member = members.find(({ fits }) => fits(value))
        return member === undefined ? value : member.visit(value, context)
      }
}

/** Returns the test that tells a member of a union from the others. */
const fitsOf = (ast: SchemaAST.AST): ((value: unknown) => boolean) => {
  if (ast._tag === "String") return (value) => typeof value === "string"
  if (ast._tag === "Arrays") return Array.isArray
  if (ast._tag !== "Objects") return isFields
  const needed = ast.propertySignatures.filter(({ type }) => type.context?.isOptional !== true)
  return (value) =>
    isFields(value) &&
    needed.every(({ name, type }) =>
      type._tag === "Literal" ? Reflect.get(value, name) === type.literal : name in value
    )
}

/** Returns whether a value is an object and not a list. */
export const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)
