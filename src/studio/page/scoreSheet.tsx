/** The sheet that scores a run, and the scores of others. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { Score } from "../internal/keptLines.ts"
import { DialogBox } from "./dialogBox.tsx"
import { ago } from "./format.ts"
import { Icon } from "./icons.tsx"
import { attempt, data } from "./pageStore.ts"
import { say } from "./toasts.tsx"

export const ScoreButton = ({ runId }: { runId: string }) => {
  const isOpen = useSignal(false)
  return (
    <>
      <button onClick={() => (isOpen.value = true)}>
        <Icon name="thumbs-up" /> Score
      </button>
      {isOpen.value && <ScoreSheet runId={runId} onClose={() => (isOpen.value = false)} />}
    </>
  )
}

const ScoreSheet = ({ onClose, runId }: { runId: string; onClose: () => void }) => {
  const scores = useSignal<ReadonlyArray<Score>>([])
  const note = useSignal("")
  useEffect(
    () => void attempt(async () => (scores.value = (await data().scores()).filter(({ run_id }) => run_id === runId))),
    []
  )
  const score = (good: boolean) => async () => {
    if (!(await attempt(() => data().score({ runId, good, note: note.value })))) return
    say(`Scored as ${wordOf(good)}`)
    onClose()
  }
  return (
    <DialogBox label="Score" onClose={onClose}>
      <h2>Is the answer good?</h2>
      <label class="field">
        why, for those who read it later
        <textarea
          rows={2}
          autoFocus
          value={note.value}
          maxLength={10_000}
          onInput={(event) => (note.value = event.currentTarget.value)}
        />
      </label>
      <p class="actions">
        <button onClick={score(true)}>
          <Icon name="thumbs-up" /> Good
        </button>
        <button onClick={score(false)}>
          <Icon name="thumbs-down" /> Bad
        </button>
        <button onClick={onClose}>Close</button>
      </p>
      {scores.value.map((one) => (
        <ScoreLine key={one.by} score={one} />
      ))}
    </DialogBox>
  )
}

const wordOf = (good: boolean): string => (good ? "good" : "bad")

/** A score with its person and note. */
export const ScoreLine = ({ score: { at, by, good, note } }: { score: Score }) => (
  <p class="score">
    <span class={`shape ${good ? "ok" : "error"}`}>
      <Icon name={good ? "thumbs-up" : "thumbs-down"} />
    </span>{" "}
    <b>{wordOf(good)}</b> {note} <span class="quiet">{`${by}, ${ago(at)}`}</span>
  </p>
)
