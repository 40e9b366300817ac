/** The cells of a comparison: facts, and texts whose own words are marked. */

import type { Fact } from "./comparison.ts"
import type { Piece } from "./wordDifferences.ts"

/** A fact in a row, with the texts that differ from the first one marked. */
export const FactRow = ({ fact: { changes, texts, title } }: { fact: Fact }) => (
  <tr>
    <th scope="row">{title}</th>
    {texts.map((text, index) => (
      <td key={index} class={text === texts[0] ? "" : "differs"}>
        {text} {changes?.[index] && <small class="quiet">{changes[index]}</small>}
      </td>
    ))}
  </tr>
)

interface SideProps {
  readonly text: string | undefined
  /** The words that stand in place of a missing text. */
  readonly none: string
  readonly pieces: ReadonlyArray<Piece>
}

/** A text with its own words marked. */
export const Side = ({ none, pieces, text }: SideProps) =>
  text === undefined ? (
    <p class="quiet">{none}</p>
  ) : (
    <p class="side-text">{pieces.map(({ isOwn, text }, index) => (isOwn ? <mark key={index}>{text}</mark> : text))}</p>
  )
