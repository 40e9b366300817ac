/** Draws the tree of a run with a bar for each time, on the axis that all its lines share. */

import type { Bar, Line } from "../../studio/RunTree.ts"
import { axisOf } from "../../studio/RunTree.ts"
import * as Text from "../terminalText.ts"

/** More lines are counted, not drawn. */
const maxLines = 200

/** A narrower terminal has no room for bars. */
const narrow = 60

/** Returns the drawn lines, and below them what the bars mean. `now` ends open times. */
export const drawTree = (all: ReadonlyArray<Line>, now: number, look: Text.Look): ReadonlyArray<string> => {
  const lines = all.slice(0, maxLines)
  const axis = axisOf(
    all.flatMap(({ bars }) => bars),
    now
  )
  const branches = branchesOf(lines)
  const names = lines.map(nameOf)
  const times = lines.map(({ bars }) => timeOf(bars, now))
  const time = Math.max(...times.map(Text.width))
  const hasBars = look.columns >= narrow
  const room = hasBars ? Math.floor(look.columns / 2) : look.columns
  const widest = Math.max(...lines.map((_, row) => Text.width(`${branches[row]}${names[row]}`)))
  const name = Math.max(1, Math.min(widest, room - time - 2))
  const lane = look.columns - name - time - 4
  const drawn = lines.map(({ bars, status }, row) => {
    const branch = branches[row] ?? ""
    const label = Text.excerpt(names[row] ?? "", Math.max(1, name - branch.length))
    const gap = " ".repeat(Math.max(0, name - branch.length - Text.width(label)))
    const start = `${Text.paint(branch, "quiet", look)}${Text.paint(label, tones[status] ?? "title", look)}${gap}`
    const took = (times[row] ?? "").padStart(time)
    return `${start}  ${took}${hasBars ? `  ${laneOf(bars, axis.place, now, lane, look)}` : ""}`.trimEnd()
  })
  const more = all.length > maxLines ? [`… ${Text.count(all.length - maxLines, "more line")}`] : []
  return [...drawn, ...more, ...(hasBars ? [`${" ".repeat(name + time + 4)}${legend(look)}`] : [])]
}

/** The colours of statuses that are not "ok". */
const tones: { readonly [status: string]: Text.Tone } = {
  ok: "label",
  pending: "quiet",
  queued: "quiet",
  cancelled: "quiet",
  waiting: "warning",
  interrupted: "warning",
  no_answer: "warning",
  denied: "warning",
  error: "bad",
  failed: "bad"
}

/** Statuses that a line does not name. */
const usual: ReadonlySet<string> = new Set(["ok", "completed"])

const nameOf = ({ label, status }: Line): string => {
  const name = Text.flat(label)
  return usual.has(status) ? name : `${name} (${status.replace("_", " ")})`
}

const timeOf = (bars: Line["bars"], now: number): string =>
  bars.length === 0 ? "" : Text.duration(bars.reduce((sum, { from, to = now }) => sum + to - from, 0))

/** Returns what stands before the name of each line: `│  ├─ `. */
const branchesOf = (lines: ReadonlyArray<Line>): ReadonlyArray<string> => {
  // Whether a line of this level follows before the tree returns to a lower one.
  const follows: Array<boolean> = []
  return lines
    .toReversed()
    .map(({ level }) => {
      const own = level === 1 ? "" : follows[level] === true ? "├─ " : "└─ "
      const above = Array.from({ length: Math.max(0, level - 2) }, (_, at) =>
        follows[at + 2] === true ? "│  " : "   "
      )
      follows.length = level
      follows[level] = true
      return above.join("") + own
    })
    .toReversed()
}

type Shape = readonly [sign: string, tone: Text.Tone]

const shapes: { readonly [kind in Bar["kind"]]: Shape } = {
  model: ["█", "label"],
  skill: ["▓", "good"],
  waiting: ["░", "warning"],
  run: ["─", "quiet"]
}

const laneOf = (
  bars: Line["bars"],
  place: (at: number) => number,
  now: number,
  columns: number,
  look: Text.Look
): string => {
  const cells = Array.from({ length: columns }, () => " ")
  for (const { from, kind, to = now } of bars) {
    const start = Math.min(Math.floor(place(from) * columns), columns - 1)
    const end = Math.max(start + 1, Math.round(place(to) * columns))
    cells.fill(Text.paint(...shapes[kind], look), start, end)
  }
  return cells.join("").trimEnd()
}

const legend = (look: Text.Look): string =>
  (["model", "skill", "waiting"] as const).map((kind) => `${Text.paint(...shapes[kind], look)} ${kind}`).join("  ")
