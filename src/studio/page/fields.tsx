/** The fields of an object, one on each line. Values of several fields are JSON. */

import { json } from "./format.ts"
import { SeenJson } from "./seen.tsx"

export const Fields = ({ values }: { values: Readonly<Record<string, unknown>> }) => (
  <dl class="fields">
    {Object.entries(values).map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>
          <pre>{typeof value === "string" ? value : <SeenJson text={json(value)} />}</pre>
        </dd>
      </div>
    ))}
  </dl>
)
