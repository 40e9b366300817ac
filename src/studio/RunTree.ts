/**
 * The tree over a run and the runs below it, with the times at which models and skills worked or waited, and the time
 * axis that they share. Pure, so that the page and the command show the same.
 *
 * @since 0.1.0
 */

import { type Call, type CallOutcome, childRunId } from "../Call.ts"
import type { PhaseEvent, RunRecord } from "../RunRecord.ts"
import type { RunHead } from "../RunStore.ts"

/**
 * A time of a line. It is open while `to` is absent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Bar {
  readonly kind: "model" | "skill" | "waiting" | "run"
  readonly from: number
  to?: number
}

/** A run, a turn, or a call with its whole life. */
interface Node {
  readonly key: string
  readonly kind: "run" | "turn" | "call"
  readonly level: number
  label: string
  readonly revision: number
  status: string
  readonly bars: Array<Bar>
  error?: string
  childRunId?: string
  errors: number
  waits: number
}

/**
 * A line of the tree: a run, a turn, or a call with its whole life, and the run that it belongs to.
 *
 * @category models
 * @since 0.1.0
 */
export interface Line extends Readonly<Omit<Node, "bars">> {
  readonly runId: string
  readonly bars: ReadonlyArray<Readonly<Bar>>
}

/**
 * The head of a run, with the records of its journal if they were read.
 *
 * @category models
 * @since 0.1.0
 */
export interface Known {
  readonly line: Pick<RunHead, "runId" | "parentRunId" | "agent" | "createdAt" | "updatedAt" | "turns"> & {
    readonly status: { readonly type: string }
  }
  readonly records: ReadonlyArray<RunRecord>
  /** The last shown revision. */
  readonly upTo: number
}

/**
 * Returns the lines of a run and of the runs below it. A child stands where the call that started it stood.
 *
 * @category reading
 * @since 0.1.0
 */
export const linesOf = (rootId: string, runs: ReadonlyMap<string, Known>): ReadonlyArray<Line> => {
  const lines: Array<Line> = []
  const drawn = new Set<string>()
  const draw = (runId: string, level: number, call?: Node): void => {
    const known = runs.get(runId)
    if (known === undefined || drawn.has(runId)) return
    drawn.add(runId)
    lines.push({ ...runNode(known, level), errors: call?.errors ?? 0, runId })
    const { records, upTo, line } = known
    const interruptedAt = line.status.type === "interrupted" && upTo === Infinity ? line.updatedAt : undefined
    for (const node of nodesOf(records, upTo, interruptedAt)) {
      const { childRunId } = node
      if (childRunId !== undefined && runs.has(childRunId)) draw(childRunId, level + node.level, node)
      else lines.push({ ...node, level: level + node.level, runId })
    }
    for (const child of runs.values()) if (child.line.parentRunId === runId) draw(child.line.runId, level + 1)
  }
  draw(rootId, 1)
  return lines
}

const runNode = ({ line, records, upTo }: Known, level: number): Node => {
  const { agent, createdAt, runId, status, updatedAt } = line
  const isOpen = status.type === "running" || status.type === "queued"
  const lastAt =
    upTo === Infinity ? updatedAt : (records.findLast(({ revision }) => revision <= upTo)?.createdAt ?? updatedAt)
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

/**
 * Places instants on a common axis from 0 to 1. Times in which nothing worked are short on it.
 *
 * @category models
 * @since 0.1.0
 */
export interface Axis {
  readonly place: (at: number) => number
  /** The milliseconds that the axis shows, without what it shortens. */
  readonly length: number
}

/**
 * Returns the axis of some times. `now` ends those that are open.
 *
 * @category reading
 * @since 0.1.0
 */
export const axisOf = (bars: Iterable<Readonly<Bar>>, now: number): Axis => {
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

/** Returns the turns and calls up to a revision. An interrupted run ends what is open in them. */
const nodesOf = (
  records: ReadonlyArray<RunRecord>,
  upTo: number,
  interruptedAt: number | undefined
): ReadonlyArray<Node> => {
  const tree = new Tree()
  for (const { createdAt, delta, events, revision } of records) {
    if (revision > upTo) break
    if (delta.resumed === true) tree.resume()
    for (const id of delta.launched ?? []) tree.launch(id, createdAt)
    for (const event of events) tree.add(event, event.at, revision)
  }
  if (interruptedAt !== undefined) tree.interrupt(interruptedAt)
  return tree.nodes
}

class Tree {
  readonly nodes: Array<Node> = []
  readonly #calls = new Map<string, Node>()
  #turn: Node | undefined
  #turnId = ""

  add(event: PhaseEvent, at: number, revision: number): void {
    const turn = this.#turn
    switch (event.type) {
      case "turn_started":
        this.#turn = nodeOf("turn", `t${event.step}`, `turn ${event.step + 1}`, revision, "running")
        this.#turnId = event.turnId
        this.nodes.push(this.#turn)
        break
      case "turn_prepared":
        if (turn !== undefined) turn.label = `${turn.label.split(" · ")[0]} · ${nameOf(event.model)}`
        break
      case "model_started":
        turn?.bars.push({ kind: "model", from: at })
        break
      case "model_completed":
        close(turn, at)
        for (const call of event.calls) this.#call(call, revision)
        break
      case "tool_calls_started":
        for (const { answer, callId } of event.questions ?? []) this.#ask(callId, answer === undefined, at)
        break
      case "paused":
        if (turn?.status === "running") turn.status = "waiting"
        break
      case "tool_call_completed":
        this.#finish(event.callId, event.result, at, revision)
        break
      case "turn_completed":
        setStatus(turn, "ok")
        break
      case "run_failed":
      case "run_cancelled":
        this.#end(event.type === "run_failed" ? "error" : "cancelled", at)
        break
    }
  }

  resume(): void {
    if (this.#turn?.status === "waiting") this.#turn.status = "running"
  }

  launch(callId: string, at: number): void {
    const call = this.#calls.get(callId)
    setStatus(call, "running")
    close(call, at)
    call?.bars.push({ kind: "skill", from: at })
  }

  interrupt(at: number): void {
    if (this.#turn?.status === "running") this.#end("interrupted", at)
    for (const call of this.#calls.values()) if (call.status === "running") call.status = "interrupted"
  }

  #call(call: Call, revision: number): void {
    const kind = call.kind === "skill" ? "" : `${call.kind} `
    const made = nodeOf("call", call.callId, `${kind}${call.name ?? "?"}`, revision, "pending")
    const childId = childRunId(this.#turnId, call)
    if (childId !== undefined) made.childRunId = childId
    this.#calls.set(call.callId, made)
    this.nodes.push(made)
  }

  #ask(callId: string, isOpen: boolean, at: number): void {
    const call = this.#calls.get(callId)
    setStatus(call, isOpen ? "waiting" : "denied")
    if (!isOpen) return
    call?.bars.push({ kind: "waiting", from: at })
    if (this.#turn !== undefined) this.#turn.waits++
  }

  #finish(callId: string, result: CallOutcome, at: number, revision: number): void {
    const call = this.#calls.get(callId)
    if (call === undefined) return
    if (call.bars.length === 0 && result.durationMs !== undefined) {
      call.bars.push({ kind: "skill", from: at - result.durationMs })
    }
    close(call, at)
    call.status = result.error === undefined ? "ok" : "error"
    if (result.error === undefined) return
    call.error = result.error.message
    if (this.#turn !== undefined && revision > 0) this.#turn.errors++
  }

  #end(status: string, at: number): void {
    close(this.#turn, at)
    setStatus(this.#turn, status)
    if (this.#turn !== undefined && status === "error") this.#turn.errors++
    for (const call of this.#calls.values()) close(call, at)
  }
}

const nodeOf = (kind: Node["kind"], key: string, label: string, revision: number, status: string): Node => ({
  key,
  kind,
  level: kind === "turn" ? 1 : 2,
  label,
  revision,
  status,
  bars: [],
  errors: 0,
  waits: 0
})

/** Returns the model without its provider: `claude-sonnet-4` of `anthropic/claude-sonnet-4`. */
const nameOf = (model: string): string => model.slice(model.indexOf("/") + 1)

const setStatus = (node: Node | undefined, status: string): void => {
  if (node !== undefined) node.status = status
}

/** Ends the open times of a line. */
const close = (node: Node | undefined, at: number): void => {
  for (const bar of node?.bars ?? []) bar.to ??= at
}
