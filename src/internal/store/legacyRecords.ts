/**
 * Rewrites stored JSON of format 1, which version 0.1.0 wrote, as format 2.
 *
 * Format 2 renames the fields of calls to `callId` and `name`, of questions to `questions`, and of calls that a resume
 * ran again to `recovered`. Its event `tool_call_completed` holds the outcome of the call without the call. Contents of
 * steering messages, which 0.1.0 wrote with their in-memory names, get their wire names. Nothing else differs. Values
 * from a host or a model are kept unchanged.
 */

import type { Json, JsonObject } from "../../kit/json.ts"
import { isJsonObject } from "../../kit/json.ts"
import * as Codec from "../words/contentCodec.ts"

type Names = { readonly [old: string]: string }
type Change = (value: Json) => Json

/** Rewrites a record. */
export const upgradeRecord = (record: JsonObject): JsonObject =>
  inside({ ...record, format: 2 }, { events: each(event), delta })

/** Rewrites a part of a state. */
export const upgradePart = (part: JsonObject): JsonObject =>
  renamed(
    inside(
      { ...part, format: 2 },
      { turns: each(turn), currentTurn: turn, approvals: each(question), status, deferred: waiting }
    ),
    { approvals: "questions" }
  )

/** Rewrites a status: the questions of a pause, and the calls that an error names. */
export const upgradeStatus: Change = (status) => inside(waiting(status), { error })

const status = upgradeStatus

// ---------------------------------------------------------------- stored things

const callNames: Names = { toolCallId: "callId", toolName: "name" }

const call: Change = (value) => renamed(value, callNames)

/** Keeps only the outcome of a call. The call itself is part of the turn. */
const outcome: Change = (value) => {
  if (!isJsonObject(value)) return value
  const { input: _input, kind: _kind, toolCallId: _callId, toolName: _name, ...kept } = value
  return kept
}

const question: Change = (value) => renamed(inside(value, { answer: call }), callNames)

const change: Change = (value) => inside(value, { call, result: call })

const turn: Change = (value) =>
  renamed(
    inside(value, {
      pending: each(call),
      inFlight: each(call),
      completed: each(call),
      steering: each(steeringMessage)
    }),
    { replayed: "recovered" }
  )

const delta: Change = (value) =>
  inside(value, { resolved: each(call), answers: each(call), asked: each(question), deferred: waiting })

/** Upgrades the metadata of a pause for answers, which names calls. */
const waiting: Change = (pause) =>
  isJsonObject(pause) && pause["reason"] === "approval_required" ? inside(pause, { metadata }) : pause

const metadata: Change = (value) =>
  renamed(inside(value, { approvals: each(call) }), { toolCallIds: "callIds", approvals: "questions" })

/** Upgrades the errors of the kernel whose fields name calls. */
const error: Change = (value) => {
  if (!isJsonObject(value)) return value
  const { tag } = value
  return tag === "InFlightToolCalls" || tag === "ApprovalNotFound" ? inside(value, { fields: errorFields }) : value
}

const errorFields: Change = (value) => renamed(value, { toolCallIds: "callIds", toolCallId: "callId" })

const steeringMessage: Change = (message) => inside(message, { content: each(content) })

const content: Change = (value) => {
  if (!isJsonObject(value) || typeof value["type"] !== "string") return value
  if (value["raw"] !== undefined && (value["type"] === "unknown" || value["type"] === "custom")) return value["raw"]
  const shape = Codec.shapeOf(value["type"])
  return shape === undefined ? value : mapped(value, (name, field) => [Codec.wireName(name, shape), field])
}

const event: Change = (value) => {
  if (!isJsonObject(value)) return value
  switch (value["type"]) {
    case "turn_started":
      return inside(value, { steering: each(steeringMessage) })
    case "model_completed":
      return inside(value, { calls: each(call) })
    case "tool_calls_started":
      return renamed(inside(value, { calls: each(call), approvals: each(question) }), { approvals: "questions" })
    case "tool_call_started":
      return renamed(inside(value, { change }), callNames)
    case "tool_call_completed":
      return renamed(inside(value, { result: outcome }), callNames)
    case "paused":
      return waiting(value)
    case "run_failed":
      return inside(value, { error })
    default:
      return value
  }
}

// ---------------------------------------------------------------- rewriting

const each =
  (change: Change): Change =>
  (value) =>
    Array.isArray(value) ? value.map(change) : value

/** Applies changes to the existing fields of an object. */
const inside = <A extends Json>(value: A, changes: { readonly [field: string]: Change }): A | JsonObject =>
  isJsonObject(value) ? mapped(value, (name, field) => [name, changes[name]?.(field) ?? field]) : value

/** Renames the existing fields of an object. */
const renamed = <A extends Json>(value: A, names: Names): A | JsonObject =>
  isJsonObject(value) ? mapped(value, (name, field) => [names[name] ?? name, field]) : value

/** Maps the entries of an object. `Object.fromEntries` keeps a field named `__proto__`. */
const mapped = (value: JsonObject, entry: (name: string, field: Json) => readonly [string, Json]): JsonObject =>
  Object.fromEntries(Object.entries(value).map(([name, field]) => entry(name, field)))
