/** The words in which two texts differ. */

import { editsOf } from "../../kit/edits.ts"

/** A part of a text. Its own parts are not in the other text. */
export interface Piece {
  readonly text: string
  readonly isOwn: boolean
}

/** Returns both texts in pieces. */
export const wordDifferences = (
  left: string,
  right: string
): { readonly left: ReadonlyArray<Piece>; readonly right: ReadonlyArray<Piece> } => {
  const pieces = { left: new Array<Piece>(), right: new Array<Piece>() }
  for (const { sign, text } of editsOf(wordsOf(left), wordsOf(right))) {
    if (sign !== "+") add(pieces.left, { text, isOwn: sign === "-" })
    if (sign !== "-") add(pieces.right, { text, isOwn: sign === "+" })
  }
  return pieces
}

/** Returns words, signs and blanks. */
const wordsOf = (text: string): ReadonlyArray<string> => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? []

/** Adds a piece, joined with one of its kind before it, so that a page draws few elements. */
const add = (pieces: Array<Piece>, { isOwn, text }: Piece): void => {
  const last = pieces.at(-1)
  if (last?.isOwn === isOwn) pieces[pieces.length - 1] = { text: last.text + text, isOwn }
  else pieces.push({ text, isOwn })
}
