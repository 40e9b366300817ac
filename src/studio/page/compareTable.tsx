/** More than two runs as a table: a column for each, compared with the first one. */

import type { RunState } from "../../RunState.ts"
import { FactRow, Side } from "./compareCells.tsx"
import { factsOf, isSame, type Section, textsOf } from "./comparison.ts"
import { Markdown } from "./markdown.tsx"
import { place, runAddress, setQuery } from "./pageStore.ts"
import { wordDifferences } from "./wordDifferences.ts"

export const CompareTable = ({ states }: { states: ReadonlyArray<RunState> }) => {
  const isShort = place.value.query.get("only") === "differences"
  const isShown = (section: Section) => !isShort || !isSame(section)
  const [first] = states
  return (
    <>
      <h2 class="unseen">{states.length} runs</h2>
      <p>
        <label>
          <input
            type="checkbox"
            checked={isShort}
            onChange={() => setQuery("only", isShort ? undefined : "differences")}
          />{" "}
          Only what differs
        </label>
      </p>
      <div class="wide compared" role="region" aria-label={`${states.length} runs`} tabIndex={0}>
        <table>
          <thead>
            <tr>
              <td />
              {states.map((state) => (
                <th key={state.runId} scope="col">
                  <a href={runAddress(state.runId)}>{state.runId}</a>
                  <small>{state === first ? "the others are compared with it" : originOf(state, first)}</small>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {factsOf(states)
              .filter(isShown)
              .map((fact) => (
                <FactRow key={fact.title} fact={fact} />
              ))}
            {textsOf(states)
              .filter(isShown)
              .map((section) => (
                <TextRow key={section.title} section={section} />
              ))}
          </tbody>
        </table>
      </div>
    </>
  )
}

const originOf = ({ forkedFrom }: RunState, first: RunState | undefined): string =>
  forkedFrom === undefined
    ? ""
    : forkedFrom.runId === first?.runId
      ? `fork of the first at revision ${forkedFrom.revision}`
      : `fork of ${forkedFrom.runId}`

/** A text of each run. One text of all runs is folded. */
const TextRow = ({ section }: { section: Section }) => {
  const { texts, title } = section
  const [first] = texts
  return (
    <tr>
      <th scope="row">{title}</th>
      {isSame(section) ? (
        <td colSpan={texts.length}>
          <details>
            <summary class="quiet">the same</summary>
            <p class="side-text">{first}</p>
          </details>
        </td>
      ) : (
        texts.map((text, index) => (
          <td key={index}>
            <TextCell text={text} first={index === 0 ? undefined : first} />
          </td>
        ))
      )}
    </tr>
  )
}

interface TextCellProps {
  readonly text: string | undefined
  /** The text of the first run. */
  readonly first: string | undefined
}

/** A text marked by its own words. One that has little in common with the first text is drawn as it reads. */
const TextCell = ({ first, text }: TextCellProps) => {
  if (text === undefined) return <span class="quiet">none</span>
  if (text === first) return <span class="quiet">the same</span>
  const pieces = first === undefined ? [] : wordDifferences(first, text).right
  const shared = pieces.reduce((length, piece) => length + (piece.isOwn ? 0 : piece.text.trim().length), 0)
  return shared * 2 < text.length ? <Markdown text={text} /> : <Side text={text} none="" pieces={pieces} />
}
