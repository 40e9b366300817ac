/** Converts records to rows, and to spans of time. */

import type { PhaseEvent, RunRecord } from "../../RunRecord.ts"
import { excerpt, json } from "./format.ts"

export type Tone = "error" | "waiting" | "plain"

/** One line of the events tab. */
export interface Row {
  readonly revision: number
  readonly type: string
  readonly at: number
  readonly text: string
  readonly tone: Tone
  readonly event?: PhaseEvent
  readonly record: RunRecord
}

/** Returns the rows of a record: its events, or its change if it has none. */
export const rowsOf = (record: RunRecord): ReadonlyArray<Row> => {
  const { createdAt, delta, events, op, revision } = record
  if (events.length === 0) {
    const text = excerpt(json(delta).replace(/[{}"\n]/g, " "))
    return [{ revision, type: op, at: createdAt, text, tone: "plain", record }]
  }
  return events.map((event) => ({
    revision,
    type: event.type,
    at: event.at,
    text: excerpt(textOf(event)),
    tone: toneOf(event),
    event,
    record
  }))
}

const toneOf = (event: PhaseEvent): Tone => {
  if (event.type === "run_failed") return "error"
  if (event.type === "tool_call_completed" && event.result.error !== undefined) return "error"
  return event.type === "paused" ? "waiting" : "plain"
}

const textOf = (event: PhaseEvent): string => {
  switch (event.type) {
    case "run_started":
      return event.agent
    case "turn_prepared":
      return `${event.model}, ${event.prompt.append.length} new messages`
    case "model_started":
    case "model_restarted":
      return event.attempt > 1 ? `attempt ${event.attempt}` : ""
    case "model_completed":
      return `${event.outcome.type}, ${event.calls.map(({ name }) => name ?? "?").join(", ") || "no calls"}`
    case "tool_call_started":
      return event.change === undefined ? event.callId : `${event.callId} (${event.change.type})`
    case "tool_call_completed":
      return `${event.callId} ${event.result.error === undefined ? "ok" : event.result.error.message}`
    case "paused":
    case "run_cancelled":
      return event.reason ?? ""
    case "run_failed":
      return `${event.error.tag}: ${event.error.message}`
    case "agent_changed":
      return `${event.from} to ${event.to}`
    default:
      return ""
  }
}

/** A span of the film strip. */
export interface Span {
  readonly kind: "model" | "skill" | "waiting" | "error" | "other"
  readonly from: number
  readonly to: number
  readonly revision: number
}

/** Returns the time between rows, by kind. A long wait is drawn short. */
export const spansOf = (rows: ReadonlyArray<Row>): ReadonlyArray<Span> => {
  const spans: Array<Span> = []
  let place = 0
  rows.forEach(({ at, revision, tone, type }, index) => {
    const before = rows[index - 1]
    const length = Math.min(Math.max(1, at - (before?.at ?? at)), working.has(type) ? 30_000 : 500)
    const kind = tone === "error" ? "error" : spanKinds[before?.type === "paused" ? "paused" : type]
    spans.push({ kind: kind ?? "other", from: place, to: place + length, revision })
    place += length
  })
  return spans
}

/** Events that end working time. All other time is a wait, and drawn short. */
const working: ReadonlySet<string> = new Set(["model_completed", "tool_call_completed"])

const spanKinds: { readonly [type: string]: Span["kind"] } = {
  model_completed: "model",
  tool_call_completed: "skill",
  paused: "waiting"
}

/** A drawn piece of the film strip. */
export interface Strip {
  readonly kind: Span["kind"]
  readonly x: number
  width: number
  /** The last revision in it. */
  revision: number
}

/** The kinds of spans by priority, the highest last. */
export const loudness: ReadonlyArray<Span["kind"]> = ["other", "skill", "model", "waiting", "error"]

/**
 * Returns the spans on a strip of this width in pixels. Of spans in one pixel, the one of highest priority is drawn, so
 * errors are always visible.
 */
export const stripsOf = (spans: ReadonlyArray<Span>, width: number): ReadonlyArray<Strip> => {
  const whole = spans.at(-1)?.to ?? 1
  const strips: Array<Strip> = []
  for (const { from, kind, revision, to } of spans) {
    const x = Math.floor((from / whole) * width)
    const length = Math.max(kind === "error" ? 3 : 1, ((to - from) / whole) * width)
    const last = strips.at(-1)
    if (last === undefined || last.x < x) strips.push({ kind, x, width: length, revision })
    else if (loudness.indexOf(kind) >= loudness.indexOf(last.kind)) {
      strips[strips.length - 1] = { kind, x, width: Math.max(length, last.width), revision }
    } else last.revision = revision
  }
  return strips
}
