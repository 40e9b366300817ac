/**
 * Names that others chose, in a sentence: however many there are, and however long.
 */

import { quote, shorten } from "../../internal/base/text.ts"

/** The first names of a list, and how many there are besides. */
export const some = (names: ReadonlyArray<string>): string => {
  const told = names.slice(0, 5).map((name) => quote(shorten(name, 60)))
  return `${told.join(", ")}${names.length > told.length ? ` and ${names.length - told.length} more` : ""}`
}
