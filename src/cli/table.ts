/**
 * Tables that fit the terminal. A column without any text is left out. Without enough room the least important columns
 * are left out, and long cells are cut with `…`. A narrow terminal gets a card for each row.
 */

import * as Text from "./terminalText.ts"

/** A column of a table. */
export interface Column<A> {
  /** A table whose columns have no titles has no heading. */
  readonly title: string
  readonly cell: (row: A) => string
  readonly tone?: ((row: A) => Text.Tone) | undefined
  /** The width down to which cells may be cut. Without it they stay whole while there is room. */
  readonly least?: number
  /** Of the columns with a rank, that with the highest is left out first. */
  readonly rank?: number
}

/** A terminal of fewer columns gets cards. */
const narrow = 60

/** Draws rows, with their columns in this order. */
export const table = <A>(columns: ReadonlyArray<Column<A>>, rows: ReadonlyArray<A>, look: Text.Look): string => {
  const lists = columns
    .map((column) => listOf(column, rows, look))
    .filter(({ texts }) => rows.length === 0 || texts.some((text) => text !== ""))
  return look.columns < narrow ? cards(lists, rows.length, look) : grid(lists, rows.length, look)
}

/** The texts of a column, each on one line and escaped. */
interface List {
  readonly title: string
  readonly texts: ReadonlyArray<string>
  readonly tones: ReadonlyArray<Text.Tone> | undefined
  readonly least: number
  readonly rank: number | undefined
  readonly isCut: boolean
  width: number
}

const listOf = <A>(
  { cell, least, rank, tone, ...column }: Column<A>,
  rows: ReadonlyArray<A>,
  look: Text.Look
): List => {
  const title = Text.excerpt(column.title, look.columns)
  const texts = rows.map((row) => Text.excerpt(cell(row), look.columns))
  const tones = tone && rows.map(tone)
  const width = Math.max(Text.width(title), ...texts.map(Text.width))
  return { title, texts, tones, least: Math.min(width, least ?? width), rank, isCut: least !== undefined, width }
}

const gap = 2

const grid = (lists: ReadonlyArray<List>, count: number, look: Text.Look): string => {
  const shown = withRoom(lists, look.columns)
  const lines = Array.from({ length: count }, (_, row) => shown.map((list) => cellOf(list, row, look)))
  const title = shown.map(({ title, width }) => padded(Text.cut(title, width), width))
  const all = lists.some(({ title }) => title !== "") ? [title, ...lines] : lines
  return all.map((cells) => `${cells.join(" ".repeat(gap)).trimEnd()}\n`).join("")
}

/** Leaves columns out until the others fit when they are cut, and cuts the widest until they fit. */
const withRoom = (lists: ReadonlyArray<List>, columns: number): ReadonlyArray<List> => {
  const gaps = (among: ReadonlyArray<List>) => gap * Math.max(0, among.length - 1)
  const needed = (among: ReadonlyArray<List>) => among.reduce((sum, { least }) => sum + least, gaps(among))
  let shown = lists
  while (needed(shown) > columns) {
    const last = shown.reduce<List | undefined>(
      (last, list) => (list.rank !== undefined && list.rank > (last?.rank ?? -1) ? list : last),
      undefined
    )
    if (last === undefined) break
    shown = shown.filter((list) => list !== last)
  }
  let over = shown.reduce((sum, { width }) => sum + width, gaps(shown)) - columns
  while (over > 0) {
    // Columns without a least width are cut only when nothing else helps.
    const cuttable = shown.filter(({ least, width }) => width > least)
    const among = cuttable.length > 0 ? cuttable : shown.filter(({ width }) => width > 1)
    const widest = among.reduce<List | undefined>((a, b) => (a === undefined || b.width >= a.width ? b : a), undefined)
    if (widest === undefined) break
    widest.width--
    over--
  }
  return shown
}

const cellOf = ({ texts, tones, width }: List, row: number, look: Text.Look): string => {
  const text = Text.cut(texts[row] ?? "", width)
  return padded(tones?.[row] === undefined ? text : Text.paint(text, tones[row], look), width)
}

const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - Text.width(text)))

/** Draws a card for each row: its first cell, its short cells, and its long ones on lines of their own. */
const cards = (lists: ReadonlyArray<List>, count: number, look: Text.Look): string => {
  const [head, ...others] = lists
  if (head === undefined) return ""
  return Array.from({ length: count }, (_, row) => {
    const cells = others.filter(({ texts }) => texts[row] !== "")
    const short = cells.filter(({ isCut }) => !isCut)
    const long = cells.filter(({ isCut }) => isCut)
    const lines = [
      Text.paint(Text.cut(head.texts[row] ?? "", look.columns), "title", look),
      ...packed(
        short.map((list) => labelled(list, row, look)),
        look.columns - gap
      ),
      ...long.map((list) => labelled(list, row, look))
    ]
    return lines.map((line, index) => `${index === 0 ? "" : "  "}${line}\n`).join("")
  }).join("\n")
}

const labelled = ({ texts, title, tones }: List, row: number, look: Text.Look): string => {
  const label = title === "" ? "" : `${title} `
  const text = Text.cut(texts[row] ?? "", Math.max(1, look.columns - gap - Text.width(label)))
  const tone = tones?.[row]
  return `${Text.paint(label, "quiet", look)}${tone === undefined ? text : Text.paint(text, tone, look)}`
}

/** Puts as many texts on a line as fit. */
const packed = (texts: ReadonlyArray<string>, columns: number): ReadonlyArray<string> => {
  const lines: Array<string> = []
  for (const text of texts) {
    const before = lines.at(-1)
    const joined = before === undefined ? text : `${before}, ${text}`
    if (before === undefined || Text.width(joined) > columns) lines.push(text)
    else lines[lines.length - 1] = joined
  }
  return lines
}
