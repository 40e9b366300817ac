/** An input as a form, from its JSON Schema. Values without a fitting field are edited as JSON text. */

import { json } from "./format.ts"
import { marksIn } from "./seen.tsx"

type Values = Readonly<Record<string, unknown>>

interface Props {
  readonly schema: unknown
  readonly value: Values
  readonly legend?: string
  readonly onChange: (value: Values) => void
}

export const isFields = (value: unknown): value is Values =>
  typeof value === "object" && value !== null && !Array.isArray(value)

export const SchemaForm = ({ legend = "Changed input", onChange, schema, value }: Props) => {
  const properties = isFields(schema) && isFields(schema["properties"]) ? schema["properties"] : {}
  const required = isFields(schema) && Array.isArray(schema["required"]) ? schema["required"] : []
  const names = [...new Set([...Object.keys(properties), ...Object.keys(value)])]
  return (
    <fieldset>
      <legend>{legend}</legend>
      {names.map((name) => (
        <Field
          key={name}
          name={name}
          schema={properties[name]}
          isRequired={required.includes(name)}
          value={value[name]}
          onChange={(changed) => onChange({ ...value, [name]: changed })}
        />
      ))}
    </fieldset>
  )
}

interface FieldProps {
  readonly name: string
  readonly schema: unknown
  readonly isRequired: boolean
  readonly value: unknown
  readonly onChange: (value: unknown) => void
}

const Field = ({ isRequired, name, onChange, schema, value }: FieldProps) => (
  <label class="field">
    <span>
      {name}
      {isRequired && " *"} <span class="quiet">{isFields(schema) && String(schema["description"] ?? "")}</span>
    </span>
    <Control kind={kindOf(schema, value)} schema={schema} value={value} onChange={onChange} />
    {marksIn(json(value)) > 0 && <pre aria-label={`${name} with its marks`}>{json(value)}</pre>}
  </label>
)

type Kind = "text" | "number" | "boolean" | "choice" | "json"

const kindOf = (schema: unknown, value: unknown): Kind => {
  if (isFields(schema) && Array.isArray(schema["enum"])) return "choice"
  const type = isFields(schema) ? schema["type"] : undefined
  if (type === "string" || (type === undefined && typeof value === "string")) return "text"
  if (type === "number" || type === "integer" || (type === undefined && typeof value === "number")) return "number"
  return type === "boolean" || typeof value === "boolean" ? "boolean" : "json"
}

interface ControlProps extends Pick<FieldProps, "schema" | "value" | "onChange"> {
  readonly kind: Kind
}

const Control = ({ kind, onChange, schema, value }: ControlProps) => {
  switch (kind) {
    case "boolean":
      return (
        <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />
      )
    case "number":
      return (
        <input
          type="number"
          step="any"
          value={typeof value === "number" ? value : ""}
          onInput={(event) => onChange(event.currentTarget.valueAsNumber)}
        />
      )
    case "choice": {
      const choices = isFields(schema) && Array.isArray(schema["enum"]) ? schema["enum"] : []
      return (
        <select value={json(value)} onChange={(event) => onChange(choices[event.currentTarget.selectedIndex])}>
          {choices.map((choice) => (
            <option key={json(choice)}>{json(choice)}</option>
          ))}
        </select>
      )
    }
    case "text":
      return (
        <textarea
          rows={1}
          value={typeof value === "string" ? value : ""}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )
    case "json":
      return (
        <textarea
          rows={3}
          value={value === undefined ? "" : json(value)}
          onInput={(event) => onChange(parsed(event.currentTarget.value))}
        />
      )
  }
}

/** Parses a text. Text that is not JSON stays text, and the server reports the problem. */
const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** Returns the differing fields as lines. */
export const differences = (before: Values, after: Values): ReadonlyArray<string> =>
  [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) =>
    json(before[name]) === json(after[name]) ? [] : [`${name}: ${json(before[name])} → ${json(after[name])}`]
  )
