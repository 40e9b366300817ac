/** What the question of a running call asks for: values of a form, or the result of an external call. */

import type { Asking } from "../../Skill.ts"

type Values = Readonly<Record<string, unknown>>

/** A form, whose schema describes an object. */
export interface Asked {
  readonly schema: Values
  /** The values that its fields begin with. */
  readonly start: Values
  /** Returns the answer that the values are. */
  readonly give: (values: Values) => { readonly approved: true; readonly values: Values } | { readonly output: unknown }
}

/** Returns the form of a question. Undefined for one that only asks to agree. */
export const askedBy = ({ form, output }: Pick<Asking, "form" | "output"> = {}): Asked | undefined => {
  if (output !== undefined) {
    // A result that is no object is the only field of its form.
    if (!isValues(output["properties"])) {
      const schema = { properties: { result: output }, required: ["result"] }
      return { schema, start: startOf(schema.properties), give: ({ result }) => ({ output: result }) }
    }
    return { schema: output, start: startOf(output["properties"]), give: (values) => ({ output: values }) }
  }
  if (form === undefined) return undefined
  return { schema: form, start: startOf(form["properties"]), give: (values) => ({ approved: true, values }) }
}

/** Returns the values that a form shows before anybody has changed it. */
const startOf = (properties: unknown): Values =>
  isValues(properties)
    ? Object.fromEntries(
        Object.entries(properties).flatMap(([name, property]) => {
          const value = first(property)
          return value === undefined ? [] : [[name, value]]
        })
      )
    : {}

const first = (property: unknown): unknown => {
  if (!isValues(property)) return undefined
  if (property["default"] !== undefined) return property["default"]
  if (Array.isArray(property["enum"])) return property["enum"][0]
  return property["type"] === "boolean" ? false : undefined
}

const isValues = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value)
