/** The state of the run at the revision, and what the revision changed. */

import { json } from "./format.ts"
import { Json } from "./jsonText.tsx"
import { revision, run, state } from "./pageStore.ts"

export const StateTab = () => {
  const now = state.value
  if (now === undefined) return null
  const before = run.value?.journal.stateAt(revision.value - 1)
  const old: Readonly<Record<string, unknown>> = { ...before }
  return (
    <section aria-label="State">
      <p class="quiet">the fold of revisions 1 to {revision.value}; what the last one changed is marked</p>
      {Object.entries({ ...now }).map(([key, value]) => {
        const isChanged = before !== undefined && json(old[key]) !== json(value)
        return (
          <details key={key} class={isChanged ? "changed" : ""} open={isChanged}>
            <summary>
              {key} {isChanged && <span class="badge">changed</span>}{" "}
              <span class="quiet">
                {Array.isArray(value) ? `${value.length}` : typeof value === "object" ? "" : String(value)}
              </span>
            </summary>
            <Json value={value} />
          </details>
        )
      })}
    </section>
  )
}
