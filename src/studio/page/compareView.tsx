/** Runs with their differences: two side by side, more as a table. */

import { useSignal } from "@preact/signals"
import { useEffect } from "preact/hooks"
import type { RunState } from "../../RunState.ts"
import { titleOf } from "../internal/runTitle.ts"
import { FactRow, Side } from "./compareCells.tsx"
import { CompareTable } from "./compareTable.tsx"
import { factsOf, isSame, type Section, sectionsOf } from "./comparison.ts"
import { excerpt } from "./format.ts"
import { attempt, runAddress } from "./pageStore.ts"
import { readState } from "./readState.ts"
import { SkeletonScreen } from "./skeleton.tsx"
import { wordDifferences } from "./wordDifferences.ts"

/** The most runs that are compared at once. */
export const mostCompared = 20

/** Returns the address at which runs are compared with the first one. */
export const compareAddress = (runIds: ReadonlyArray<string>): string =>
  `#/compare/${runIds.map(encodeURIComponent).join("/")}`

export const CompareView = ({ runIds }: { runIds: ReadonlyArray<string> }) => {
  const states = useSignal<ReadonlyArray<RunState>>([])
  const compared = [...new Set(runIds)].slice(0, mostCompared)
  useEffect(() => void attempt(async () => (states.value = await Promise.all(compared.map(readState)))), [])
  if (states.value.length === 0) return <SkeletonScreen title="Compare" label="reading the runs" />
  return (
    <section class="screen compare" aria-label="Compare">
      <header>
        <h1>Compare</h1>
        {runIds.length > mostCompared && <p class="quiet">the first {mostCompared} runs</p>}
      </header>
      {states.value.length > 2 ? <CompareTable states={states.value} /> : <Columns states={states.value} />}
    </section>
  )
}

const Columns = ({ states }: { states: ReadonlyArray<RunState> }) => (
  <>
    <table class="facts">
      <thead>
        <tr>
          <td />
          {states.map((state) => (
            <th key={state.runId} scope="col">
              <a href={runAddress(state.runId)}>
                {excerpt(titleOf(state.agent, state.input.at(-1)), 120) || state.agent}
              </a>
              <small>{state.runId}</small>
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {factsOf(states).map((fact) => (
          <FactRow key={fact.title} fact={fact} />
        ))}
      </tbody>
    </table>
    {sectionsOf(states).map((section) => (
      <Folded key={section.title} section={section} />
    ))}
  </>
)

/** A section of both runs, folded where they are the same. */
const Folded = ({ section }: { section: Section }) => {
  const { texts, title } = section
  const [left, right] = texts
  const pieces = wordDifferences(left ?? "", right ?? "")
  return (
    <details class="card" open={!isSame(section)}>
      <summary>
        <b>{title}</b> <span class="quiet">{isSame(section) ? "the same" : ""}</span>
      </summary>
      <div class="abreast">
        <Side text={left} none="no such turn" pieces={pieces.left} />
        {!isSame(section) && <Side text={right} none="no such turn" pieces={pieces.right} />}
      </div>
    </details>
  )
}
