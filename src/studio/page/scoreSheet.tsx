/** The sheet that scores a run, and the scores of others. */

import { type Signal, useSignal } from "@preact/signals"
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
  const labels = useSignal<ReadonlyArray<string>>([])
  const note = useSignal("")
  useEffect(() => void attempt(async () => (scores.value = await data().scores())), [])
  const score = (good: boolean) => async () => {
    const given = labels.value.length === 0 ? {} : { labels: labels.value }
    if (!(await attempt(() => data().score({ runId, good, ...given, note: note.value })))) return
    say(`Scored as ${wordOf(good)}`)
    onClose()
  }
  return (
    <DialogBox label="Score" onClose={onClose}>
      <h2>Is the answer good?</h2>
      <Labels known={countsOf(scores.value).map(([label]) => label)} chosen={labels} />
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
      {scores.value.map((one) => one.run_id === runId && <ScoreLine key={one.by} score={one} />)}
    </DialogBox>
  )
}

const mostKnown = 12

/** The labels that a person chooses: those that others used most, and new ones. */
const Labels = ({ chosen, known }: { known: ReadonlyArray<string>; chosen: Signal<ReadonlyArray<string>> }) => {
  const typed = useSignal("")
  const toggle = (label: string) => {
    const others = chosen.value.filter((one) => one !== label)
    chosen.value = others.length === chosen.value.length ? [...others, label] : others
  }
  const add = () => {
    const label = typed.value.trim()
    typed.value = ""
    if (label !== "" && !chosen.value.includes(label)) chosen.value = [...chosen.value, label]
  }
  return (
    <div class="actions" role="group" aria-label="Labels">
      {[...new Set([...known.slice(0, mostKnown), ...chosen.value])].map((label) => (
        <button key={label} class="tag" aria-pressed={chosen.value.includes(label)} onClick={() => toggle(label)}>
          {label}
        </button>
      ))}
      <input
        aria-label="New label"
        placeholder="New label, then Enter"
        maxLength={64}
        value={typed.value}
        onInput={(event) => (typed.value = event.currentTarget.value)}
        onKeyDown={(event) => event.key === "Enter" && !event.isComposing && add()}
        onBlur={add}
      />
    </div>
  )
}

/** Returns the labels of scores with their counts, the most frequent first. */
export const countsOf = (scores: ReadonlyArray<Score>): ReadonlyArray<readonly [label: string, count: number]> => {
  const counts = new Map<string, number>()
  for (const label of scores.flatMap(({ labels = [] }) => labels)) counts.set(label, (counts.get(label) ?? 0) + 1)
  return [...counts].toSorted(([, a], [, b]) => b - a)
}

const wordOf = (good: boolean): string => (good ? "good" : "bad")

/** A score with its labels, note and person. */
export const ScoreLine = ({ score: { at, by, good, labels = [], note } }: { score: Score }) => (
  <p class="score">
    <span class={`shape ${good ? "ok" : "error"}`}>
      <Icon name={good ? "thumbs-up" : "thumbs-down"} />
    </span>{" "}
    <b>{wordOf(good)}</b>{" "}
    {labels.map((label) => (
      <span key={label} class="badge">
        {label}
      </span>
    ))}{" "}
    {note} <span class="quiet">{`${by}, ${ago(at)}`}</span>
  </p>
)
