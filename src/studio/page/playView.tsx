/** The playground of a turn: it is played again after changes to its prompt, its model and its settings. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { answer } from "../../RunState.ts"
import type { Journal } from "./journal.ts"
import { attempt, place, runAddress, setQuery } from "./pageStore.ts"
import { PlayForm } from "./playForm.tsx"
import { Outcomes } from "./playOutcomes.tsx"
import { readJournal } from "./readState.ts"
import { SkeletonScreen } from "./skeleton.tsx"

/** The runs that were played, the newest first. They stand in the address. */
const played = (): ReadonlyArray<string> => place.value.query.get("played")?.split(" ") ?? []

/** Adds a run to those that were played, unless the person has left the screen. */
const addPlayed = (runId: string) => (fork: string) => {
  const { id, screen } = place.value
  if (screen === "play" && id === runId) setQuery("played", [fork, ...played()].join(" "))
}

export const PlayView = ({ runId }: { runId: string }) => {
  const journal = useSignal<Journal | undefined>(undefined)
  useEffect(() => void attempt(async () => (journal.value = await readJournal(runId))), [])
  if (journal.value === undefined) return <SkeletonScreen title="Playground" label="reading the journal" />
  const turns = journal.value.rows.flatMap(({ event, revision }) => (event?.type === "turn_prepared" ? [revision] : []))
  const asked = Number(place.value.query.get("rev") ?? Infinity)
  const revision = turns.findLast((turn) => turn <= asked) ?? turns[0]
  const [state, last] = [journal.value.stateAt(revision ?? 0), journal.value.stateAt(Infinity)]
  return (
    <section class="screen play" aria-label="Playground">
      <header>
        <h1>Playground</h1>
        <a href={runAddress(runId)}>{runId}</a>
        <label>
          Turn{" "}
          <select value={revision} onChange={(event) => setQuery("rev", event.currentTarget.value)}>
            {turns.map((turn, index) => (
              <option key={turn} value={turn}>
                {index + 1}
              </option>
            ))}
          </select>
        </label>
      </header>
      {state === undefined || revision === undefined ? (
        <p class="empty">No turn of this run was prepared.</p>
      ) : (
        <PlayForm key={revision} shown={state} revision={revision} onPlay={addPlayed(runId)} />
      )}
      {last !== undefined && <Outcomes runId={runId} before={answer(last) ?? ""} played={played()} />}
    </section>
  )
}
