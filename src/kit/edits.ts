/**
 * The edits that turn one list of lines or words into another.
 */

const maxCells = 4_000_000

/** An item of both texts, of the old one, or of the new one. */
export interface Edit {
  readonly sign: " " | "-" | "+"
  readonly text: string
  /** The positions in both texts before this item. */
  readonly old: number
  readonly now: number
}

/** Returns the items of both texts, by their longest common subsequence. */
export const editsOf = (old: ReadonlyArray<string>, now: ReadonlyArray<string>): ReadonlyArray<Edit> => {
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start++
  let end = 0
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const edits: Array<Edit> = []
  let at = 0
  let to = 0
  const add = (sign: Edit["sign"], text: string | undefined) => {
    edits.push({ sign, text: text ?? "", old: at, now: to })
    if (sign !== "+") at++
    if (sign !== "-") to++
  }
  while (at < start) add(" ", old[at])
  for (const sign of middle(old.slice(start, old.length - end), now.slice(start, now.length - end)))
    add(sign, sign === "+" ? now[to] : old[at])
  while (at < old.length) add(" ", old[at])
  return edits
}

/** Returns the signs of the longest common subsequence. Texts too different to compare are replaced as a whole. */
const middle = (old: ReadonlyArray<string>, now: ReadonlyArray<string>): ReadonlyArray<Edit["sign"]> => {
  const width = now.length + 1
  if ((old.length + 1) * width > maxCells)
    return [...old.map((): Edit["sign"] => "-"), ...now.map((): Edit["sign"] => "+")]
  const common = new Uint32Array((old.length + 1) * width)
  const cell = (row: number, column: number) => common[row * width + column] ?? 0
  for (let row = old.length - 1; row >= 0; row--) {
    for (let column = now.length - 1; column >= 0; column--) {
      common[row * width + column] =
        old[row] === now[column]
          ? cell(row + 1, column + 1) + 1
          : Math.max(cell(row + 1, column), cell(row, column + 1))
    }
  }
  const signs: Array<Edit["sign"]> = []
  let row = 0
  let column = 0
  while (row < old.length || column < now.length) {
    if (row < old.length && column < now.length && old[row] === now[column]) {
      signs.push(" ")
      row++
      column++
    } else if (column === now.length || (row < old.length && cell(row + 1, column) >= cell(row, column + 1))) {
      signs.push("-")
      row++
    } else {
      signs.push("+")
      column++
    }
  }
  return signs
}
