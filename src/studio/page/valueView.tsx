/** A value drawn by its kind: objects of one shape as a table, an object as fields, a difference by its lines, or text. */

import { Fields } from "./fields.tsx"
import { json } from "./format.ts"
import { Json } from "./jsonText.tsx"
import { isFields } from "./schemaForm.tsx"

const mostRows = 50
const mostColumns = 12

export const Value = ({ value }: { value: unknown }) => {
  if (Array.isArray(value) && isTable(value)) return <Table rows={value} />
  if (isFields(value) && Object.keys(value).length <= 40) return <Fields values={value} />
  if (typeof value === "string" && /^(?:diff |@@ |--- )/m.test(value)) return <Difference text={value} />
  return <Json value={value} />
}

/** Reads a text as JSON if it is a list or an object. */
export const valueOf = (text: string): unknown => {
  if (!/^\s*[[{]/.test(text)) return text
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

type Row = Readonly<Record<string, unknown>>

const isTable = (rows: ReadonlyArray<unknown>): rows is ReadonlyArray<Row> =>
  rows.length > 0 &&
  rows.every((row) => isFields(row) && Object.values(row).every((cell) => typeof cell !== "object" || cell === null)) &&
  columnsOf(rows.filter(isFields)).length <= mostColumns

const columnsOf = (rows: ReadonlyArray<Row>): ReadonlyArray<string> => [
  ...new Set(rows.slice(0, mostRows).flatMap((row) => Object.keys(row)))
]

const Table = ({ rows }: { rows: ReadonlyArray<Row> }) => (
  <div class="wide">
    <table>
      <thead>
        <tr>
          {columnsOf(rows).map((name) => (
            <th key={name} scope="col">
              {name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.slice(0, mostRows).map((row, index) => (
          <tr key={index}>
            {columnsOf(rows).map((name) => (
              <td key={name} class={typeof row[name] === "number" ? "number" : ""}>
                {json(row[name] ?? "")}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
    {rows.length > mostRows && <p class="quiet">{rows.length - mostRows} more rows</p>}
  </div>
)

const Difference = ({ text }: { text: string }) => (
  <pre class="difference">
    {text.split("\n").map((line, index) => (
      <span key={index} class={line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : ""}>
        {`${line}\n`}
      </span>
    ))}
  </pre>
)
