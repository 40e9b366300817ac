/** The playground of a turn: it is played again with other instructions, another question or temperature. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import { answer, type RunState } from "../../RunState.ts"
import { wordsOf } from "./format.ts"
import { Icon } from "./icons.tsx"
import type { Journal } from "./journal.ts"
import { attempt, data, place, runAddress, setQuery } from "./pageStore.ts"
import { Outcomes } from "./playOutcomes.tsx"
import { readJournal } from "./readState.ts"
import { SkeletonScreen } from "./skeleton.tsx"

/** Returns the address of the playground of the last turn up to a revision. */
export const playAddress = (runId: string, revision: number): string =>
  `#/play/${encodeURIComponent(runId)}?rev=${revision}`

export const PlayView = ({ runId }: { runId: string }) => {
  const journal = useSignal<Journal | undefined>(undefined)
  const played = useSignal<ReadonlyArray<string>>([])
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
          turn{" "}
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
        <Edits
          key={revision}
          shown={state}
          revision={revision}
          onPlay={(runIds) => (played.value = [...runIds, ...played.value])}
        />
      )}
      {last !== undefined && <Outcomes runId={runId} before={answer(last) ?? ""} played={played.value} />}
    </section>
  )
}

interface TextProps {
  readonly label: string
  readonly rows: number
  readonly value: string
  readonly onInput: (value: string) => void
}

const Text = ({ label, onInput, rows, value }: TextProps) => (
  <label class="field">
    {label}
    <textarea rows={rows} value={value} onInput={(event) => onInput(event.currentTarget.value)} />
  </label>
)

interface EditsProps {
  readonly shown: RunState
  readonly revision: number
  readonly onPlay: (runIds: ReadonlyArray<string>) => void
}

interface Texts {
  readonly instructions: string
  readonly question: string
}

const changed = (before: Texts, { instructions, question }: Texts): Partial<Texts> => ({
  ...(instructions === before.instructions ? {} : { instructions }),
  ...(question === before.question ? {} : { question })
})

const temperatureOf = (text: string): { readonly temperature?: number } =>
  text === "" ? {} : { temperature: Number(text) }

const Edits = ({ onPlay, revision, shown }: EditsProps) => {
  const before = {
    instructions: shown.system ?? "",
    question: wordsOf(shown.input.findLast(({ role }) => role === "user"))
  }
  const texts = useSignal(before)
  const temperature = useSignal("")
  const times = useSignal(1)
  const { instructions, question } = texts.value
  const play = () =>
    attempt(async () => {
      const edits = { ...changed(before, texts.value), ...temperatureOf(temperature.value) }
      const fork = { revision, ...edits }
      onPlay(await Promise.all(Array.from({ length: times.value }, () => data().fork(shown.runId, fork))))
    })
  return (
    <div class="card">
      <Text
        label="instructions of this turn"
        rows={6}
        value={instructions}
        onInput={(instructions) => (texts.value = { ...texts.value, instructions })}
      />
      <Text
        label="the question"
        rows={2}
        value={question}
        onInput={(question) => (texts.value = { ...texts.value, question })}
      />
      <p class="actions">
        <label>
          temperature{" "}
          <input
            type="number"
            min="0"
            max="2"
            step="0.1"
            placeholder="same"
            value={temperature.value}
            onInput={(event) => (temperature.value = event.currentTarget.value)}
          />
        </label>
        <label>
          times{" "}
          <select value={times.value} onChange={(event) => (times.value = Number(event.currentTarget.value))}>
            {[1, 2, 3, 5].map((count) => (
              <option key={count}>{count}</option>
            ))}
          </select>
        </label>
        <button class="primary" onClick={() => void play()}>
          <Icon name="play" /> Play
        </button>
      </p>
    </div>
  )
}
