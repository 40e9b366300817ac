/** Two runs side by side, with their differences. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { RunState } from "../../RunState.ts"
import { factsOf, type Section, sectionsOf } from "./comparison.ts"
import { type Piece, wordDifferences } from "./wordDifferences.ts"
import { excerpt, wordsOf } from "./format.ts"
import { Journal } from "./journal.ts"
import { attempt, data, runAddress } from "./pageStore.ts"
import { Skeleton } from "./skeleton.tsx"

interface Props {
  readonly left: string
  readonly right: string
}

export const compareAddress = ({ left, right }: Props): string =>
  `#/compare/${encodeURIComponent(left)}/${encodeURIComponent(right)}`

export const CompareView = ({ left, right }: Props) => {
  const states = useSignal<readonly [RunState, RunState] | undefined>(undefined)
  useEffect(() => void attempt(async () => (states.value = await Promise.all([lastState(left), lastState(right)]))), [])
  if (states.value === undefined) return <Skeleton label="reading both runs" />
  const [ours, theirs] = states.value
  return (
    <section class="screen compare" aria-label="Compare">
      <header>
        <h1>Compare</h1>
      </header>
      <div class="pair heads">
        {[ours, theirs].map((state) => (
          <a key={state.runId} href={runAddress(state.runId)}>
            {excerpt(wordsOf(state.input.at(-1)), 120) || state.agent}
            <small>{state.runId}</small>
          </a>
        ))}
      </div>
      <Facts facts={factsOf(ours, theirs)} />
      {sectionsOf(ours, theirs).map((section) => (
        <Pair key={section.title} section={section} />
      ))}
    </section>
  )
}

const pageOfRecords = 2_000

/** Reads the whole journal of a run, and returns its last state. */
const lastState = async (runId: string): Promise<RunState> => {
  const journal = new Journal()
  for (;;) {
    const { damage, records, revision } = await data().records(runId, journal.revision, pageOfRecords)
    journal.add(records)
    if (journal.revision >= revision || records.length === 0 || damage !== undefined) break
  }
  const state = journal.stateAt(Infinity)
  if (state === undefined) throw new Error(`the journal of ${runId} cannot be read`)
  return state
}

const Facts = ({ facts }: { facts: ReadonlyArray<Section> }) => (
  <table class="experiments">
    <tbody>
      {facts.map(({ left, right, title }) => (
        <tr key={title} class={left === right ? "" : "differs"}>
          <th scope="row">{title}</th>
          <td>{left}</td>
          <td>{right}</td>
        </tr>
      ))}
    </tbody>
  </table>
)

/** A section of both runs, folded where they are the same. */
const Pair = ({ section: { left, right, title } }: { section: Section }) => {
  const isSame = left === right
  const pieces = wordDifferences(left ?? "", right ?? "")
  return (
    <details class="card" open={!isSame}>
      <summary>
        <b>{title}</b> <span class="quiet">{isSame ? "the same" : ""}</span>
      </summary>
      <div class="pair">
        <Side text={left} pieces={pieces.left} />
        {!isSame && <Side text={right} pieces={pieces.right} />}
      </div>
    </details>
  )
}

const Side = ({ pieces, text }: { text: string | undefined; pieces: ReadonlyArray<Piece> }) =>
  text === undefined ? (
    <p class="quiet">no such turn</p>
  ) : (
    <p class="side-text">{pieces.map(({ isOwn, text }, index) => (isOwn ? <mark key={index}>{text}</mark> : text))}</p>
  )
