/** Two runs side by side, with their differences. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { RunState } from "../../RunState.ts"
import { factsOf, type Section, sectionsOf } from "./comparison.ts"
import { type Piece, wordDifferences } from "./wordDifferences.ts"
import { excerpt, wordsOf } from "./format.ts"
import { attempt, runAddress } from "./pageStore.ts"
import { readState } from "./readState.ts"
import { SkeletonScreen } from "./skeleton.tsx"

interface Props {
  readonly left: string
  readonly right: string
}

export const compareAddress = ({ left, right }: Props): string =>
  `#/compare/${encodeURIComponent(left)}/${encodeURIComponent(right)}`

export const CompareView = ({ left, right }: Props) => {
  const states = useSignal<ReadonlyArray<RunState>>([])
  useEffect(() => void attempt(async () => (states.value = await Promise.all([left, right].map(readState)))), [])
  const [ours, theirs] = states.value
  if (ours === undefined || theirs === undefined) return <SkeletonScreen title="Compare" label="reading both runs" />
  return (
    <section class="screen compare" aria-label="Compare">
      <header>
        <h1>Compare</h1>
      </header>
      <div class="abreast heads">
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
      <div class="abreast">
        <Side text={left} pieces={pieces.left} />
        {!isSame && <Side text={right} pieces={pieces.right} />}
      </div>
    </details>
  )
}

/** A text with its own words marked. */
export const Side = ({ pieces, text }: { text: string | undefined; pieces: ReadonlyArray<Piece> }) =>
  text === undefined ? (
    <p class="quiet">no such turn</p>
  ) : (
    <p class="side-text">{pieces.map(({ isOwn, text }, index) => (isOwn ? <mark key={index}>{text}</mark> : text))}</p>
  )
