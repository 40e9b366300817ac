/** The state of the run at the revision, and the changes of the revision. */

import { useSignal } from "@preact/signals"
import { counted, excerpt, json } from "./format.ts"
import { Json } from "./jsonText.tsx"
import { revision, run, state } from "./openRun.ts"

/**
 * Maximum number of items of a list that are shown and compared. Lists grow at their ends, so the last ones are kept.
 */
const most = 20

export const StateTab = () => {
  const now = state.value
  if (now === undefined) return null
  const before = run.value?.journal.stateAt(revision.value - 1)
  const old: Readonly<Record<string, unknown>> = { ...before }
  return (
    <section aria-label="State">
      <p class="quiet">the fold of revisions 1 to {revision.value}; what the last one changed is marked</p>
      {Object.entries({ ...now }).map(([key, value]) =>
        value === undefined && old[key] === undefined ? null : (
          <Field key={key} name={key} value={value} isChanged={before !== undefined && !isSame(old[key], value)} />
        )
      )}
    </section>
  )
}

const Field = ({ isChanged, name, value }: { name: string; value: unknown; isChanged: boolean }) => {
  const toggled = useSignal<boolean | undefined>(undefined)
  const isOpen = toggled.value ?? isChanged
  return (
    <details
      class={isChanged ? "changed" : ""}
      open={isOpen}
      onToggle={(event) => (toggled.value = event.currentTarget.open)}
    >
      <summary>
        <span class="name">{name}</span> {isChanged && <span class="badge">changed</span>}{" "}
        <span class="quiet">{wordOf(name, value)}</span>
      </summary>
      {isOpen && <Value value={value} />}
    </details>
  )
}

const Value = ({ value }: { value: unknown }) =>
  Array.isArray(value) && value.length > most ? (
    <>
      <p class="quiet">the last {most}</p>
      <Json value={value.slice(-most)} />
    </>
  ) : (
    <Json value={value} />
  )

/** Returns the beginning of a value, or what it means if the value itself says little. */
const wordOf = (name: string, value: unknown): string => {
  if (Array.isArray(value)) return counted(value.length, "item")
  if (typeof value === "number" && name.endsWith("At")) return new Date(value).toLocaleString("en")
  return excerpt(typeof value === "string" ? value : json(value), 80)
}

const isSame = (before: unknown, now: unknown): boolean =>
  Array.isArray(before) && Array.isArray(now)
    ? before.length === now.length && json(before.slice(-most)) === json(now.slice(-most))
    : json(before) === json(now)
