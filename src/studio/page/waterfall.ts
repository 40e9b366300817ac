/** One tree over all runs below a root, and the time axis that they share. */

import type { RunLine } from "../internal/studioData.ts"
import type { Row } from "./rows.ts"
import { type Bar, type Node, treeOf } from "./tree.ts"

/** What is known of a run: its line in lists, and the rows of its journal, if they were read. */
export interface Known {
  readonly line: Pick<RunLine, "runId" | "parentRunId" | "agent" | "createdAt" | "updatedAt" | "turns"> & {
    readonly status: { readonly type: string }
  }
  readonly rows: ReadonlyArray<Row>
  /** The last shown revision. */
  readonly upTo: number
}

/** A line of the waterfall: a node, and the run that it belongs to. */
export interface Line extends Node {
  readonly runId: string
}

/** Returns the lines of a run and of the runs below it. A child stands where the call that started it stood. */
export const linesOf = (rootId: string, runs: ReadonlyMap<string, Known>): ReadonlyArray<Line> => {
  const lines: Array<Line> = []
  const drawn = new Set<string>()
  const draw = (runId: string, level: number, call?: Node): void => {
    const known = runs.get(runId)
    if (known === undefined || drawn.has(runId)) return
    drawn.add(runId)
    lines.push({ ...runNode(known, level), errors: call?.errors ?? 0, runId })
    for (const node of treeOf(known.rows, known.upTo)) {
      const { childRunId } = node
      if (childRunId !== undefined && runs.has(childRunId)) draw(childRunId, level + node.level, node)
      else lines.push({ ...node, level: level + node.level, runId })
    }
    for (const child of runs.values()) if (child.line.parentRunId === runId) draw(child.line.runId, level + 1)
  }
  draw(rootId, 1)
  return lines
}

const runNode = ({ line, rows, upTo }: Known, level: number): Node => {
  const { agent, createdAt, runId, status, updatedAt } = line
  const isOpen = status.type === "running" || status.type === "queued"
  const lastAt = upTo === Infinity ? updatedAt : (rows.findLast(({ revision }) => revision <= upTo)?.at ?? updatedAt)
  return {
    key: runId,
    kind: "run",
    level,
    label: agent,
    revision: 1,
    status: status.type,
    bars: [{ kind: "run", from: createdAt, ...(isOpen ? {} : { to: lastAt }) }],
    errors: 0,
    waits: 0
  }
}

/** Places instants on a common axis from 0 to 1. Times in which nothing worked are short on it. */
export interface Axis {
  readonly place: (at: number) => number
  /** The milliseconds that the axis shows, without what it shortens. */
  readonly length: number
}

/** Returns the axis of some times. */
export const axisOf = (bars: Iterable<Bar>, now: number): Axis => {
  const busy: Array<readonly [from: number, to: number]> = []
  let first = Infinity
  let last = -Infinity
  for (const { from, kind, to = now } of bars) {
    first = Math.min(first, from)
    last = Math.max(last, to)
    if (kind === "model" || kind === "skill") busy.push([from, to])
  }
  if (first === Infinity) return { place: () => 0, length: 0 }
  const spans = joined(busy.toSorted(([a], [b]) => a - b))
  const work = spans.reduce((sum, [from, to]) => sum + to - from, 0)
  const most = Math.max(work * 0.12, 50)
  // Pieces of the axis: each instant, and its place in milliseconds.
  const points: Array<readonly [at: number, x: number]> = [[first, 0]]
  let x = 0
  const reach = (at: number, isBusy: boolean) => {
    const [before] = points.at(-1) ?? [first]
    const length = at - before
    if (length <= 0) return
    x += isBusy ? length : Math.min(length, most)
    points.push([at, x])
  }
  for (const [from, to] of spans) {
    reach(from, false)
    reach(to, true)
  }
  reach(last, false)
  const length = Math.max(x, 1)
  return { length, place: (at) => placeIn(points, at) / length }
}

const joined = (spans: ReadonlyArray<readonly [number, number]>): ReadonlyArray<readonly [number, number]> => {
  const all: Array<readonly [number, number]> = []
  for (const [from, to] of spans) {
    const last = all.at(-1)
    if (last !== undefined && from <= last[1]) all[all.length - 1] = [last[0], Math.max(last[1], to)]
    else all.push([from, to])
  }
  return all
}

const placeIn = (points: ReadonlyArray<readonly [at: number, x: number]>, at: number): number => {
  let from = 0
  let to = points.length - 1
  while (from < to) {
    const middle = (from + to + 1) >> 1
    if ((points[middle]?.[0] ?? Infinity) <= at) from = middle
    else to = middle - 1
  }
  const [start, x] = points[from] ?? [0, 0]
  const [end, y] = points[from + 1] ?? [start, x]
  return end === start ? x : x + ((Math.min(Math.max(at, start), end) - start) / (end - start)) * (y - x)
}
