/**
 * The difference of two texts, as lines that begin with a space, `-` or `+`.
 */

const context = 3
const maxLines = 2_000
const maxCells = 4_000_000

/** Returns the hunks of a unified diff, at most 2,000 lines. Empty for equal texts. */
export const difference = (before: string, after: string): string => {
  if (before === after) return ""
  const old = linesOf(before)
  const now = linesOf(after)
  const edits = editsOf(old, now)
  const shown: Array<string> = []
  for (const hunk of hunksOf(edits)) {
    const first = edits[hunk.from]
    if (first === undefined) continue
    const part = edits.slice(hunk.from, hunk.to)
    const removed = part.filter(({ sign }) => sign !== "+").length
    const added = part.filter(({ sign }) => sign !== "-").length
    shown.push(`@@ -${first.old + 1},${removed} +${first.now + 1},${added} @@`)
    for (const { line, sign } of part) shown.push(`${sign}${line}`)
    if (shown.length > maxLines) return [...shown.slice(0, maxLines), "…"].join("\n")
  }
  return shown.join("\n")
}

const linesOf = (text: string): ReadonlyArray<string> => (text === "" ? [] : text.replace(/\r?\n$/, "").split(/\r?\n/))

interface Edit {
  readonly sign: " " | "-" | "+"
  readonly line: string
  /** The positions in both texts before this line. */
  readonly old: number
  readonly now: number
}

const editsOf = (old: ReadonlyArray<string>, now: ReadonlyArray<string>): ReadonlyArray<Edit> => {
  let start = 0
  while (start < old.length && start < now.length && old[start] === now[start]) start++
  let end = 0
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end++
  const edits: Array<Edit> = []
  let at = 0
  let to = 0
  const add = (sign: Edit["sign"], line: string | undefined) => {
    edits.push({ sign, line: line ?? "", old: at, now: to })
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

/** Groups changes with the lines around them. */
const hunksOf = (edits: ReadonlyArray<Edit>): ReadonlyArray<{ readonly from: number; readonly to: number }> => {
  const hunks: Array<{ from: number; to: number }> = []
  edits.forEach(({ sign }, index) => {
    if (sign === " ") return
    const last = hunks.at(-1)
    const to = Math.min(edits.length, index + 1 + context)
    if (last !== undefined && index - context <= last.to) last.to = to
    else hunks.push({ from: Math.max(0, index - context), to })
  })
  return hunks
}
