/**
 * Texts of files as a model reads them.
 */

const maxLine = 2_000

/** Returns lines with their numbers, from one line on. */
export const numbered = (text: string, first: number, limit: number): string => {
  if (text === "") return "(the file is empty)"
  const lines = text.replace(/\r?\n$/, "").split(/\r?\n/)
  const shown = lines.slice(first - 1, first - 1 + limit)
  if (shown.length === 0) return `(the file has ${lines.length} lines)`
  const rest = lines.length - (first - 1 + shown.length)
  return [
    ...shown.map((line, index) => `${String(first + index).padStart(6)}\t${shorten(line)}`),
    ...(rest > 0 ? [`(${rest} more lines; read on with offset ${first + shown.length})`] : [])
  ].join("\n")
}

const shorten = (line: string): string =>
  line.length > maxLine ? `${line.slice(0, maxLine)}… (${line.length} characters)` : line

/** Says that a list has more than it shows. */
export const cutNote = (isCut: boolean): ReadonlyArray<string> =>
  isCut ? ["(more were left out; search more narrowly)"] : []
