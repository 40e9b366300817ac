/** The record at the shown revision. */

import { clock, duration } from "./format.ts"
import { revision, run } from "./openRun.ts"
import { Json } from "./jsonText.tsx"

export const Inspector = () => {
  const journal = run.value?.journal
  const record = journal?.records[revision.value - 1]
  const before = journal?.records[revision.value - 2]
  if (record === undefined) return null
  const { createdAt, delta, events, op, workerId } = record
  return (
    <aside class="inspector" aria-label="Inspector">
      <h2>
        rev {record.revision}{" "}
        <span class="quiet">
          {before === undefined ? clock(createdAt) : `+${duration(createdAt - before.createdAt)}`}
        </span>
      </h2>
      <p class="quiet">
        {op}, {clock(createdAt)}, worker {workerId}
      </p>
      {events.map(({ type, ...event }, index) => (
        <details key={index} open>
          <summary>{type}</summary>
          <Json value={event} />
        </details>
      ))}
      {Object.keys(delta).length > 0 && (
        <details open>
          <summary>Changes</summary>
          <Json value={delta} />
        </details>
      )}
    </aside>
  )
}
