/** Decodes requests of A2A clients from JSON-RPC. */

import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import * as Bounds from "../../kit/bounds.ts"
import { isJsonObject, parseJson } from "../../kit/json.ts"
import { sha256 } from "../../kit/sha256.ts"
import { Conflict, type HttpProblem, Invalid } from "../HttpProblem.ts"
import type { CallerRuns } from "../ServedRuns.ts"
import * as Tasks from "./a2aTask.ts"
import * as Conversations from "./conversations.ts"
import { decisionOf } from "./plainAnswer.ts"
import { fileOf } from "./uiRequest.ts"

/** A call of the protocol. */
export const Rpc = Schema.Struct({
  jsonrpc: Schema.Literal("2.0"),
  id: Schema.optionalKey(Schema.NullOr(Schema.Union([Schema.String, Schema.Finite]))),
  method: Schema.String,
  params: Schema.optionalKey(Schema.Json)
})

/** A call of the protocol. */
export type Rpc = typeof Rpc.Type

/** A body that is no call: not JSON, or JSON of another shape. */
interface NoCall {
  readonly id: Rpc["id"]
  readonly isJson: boolean
}

/** Reads the body of a request as a call. */
export const rpcOf = (text: string): Result.Result<Rpc, NoCall> => {
  const body = parseJson(text, Bounds.jsonDepth)
  if (Result.isFailure(body)) return Result.fail({ id: null, isJson: false })
  const id = isJsonObject(body.success) ? body.success["id"] : null
  const known = typeof id === "string" || (typeof id === "number" && Number.isFinite(id)) ? id : null
  return Result.mapError(decodeRpc(body.success), () => ({ id: known, isJson: true }))
}

const decodeRpc = Schema.decodeUnknownResult(Rpc)

/** A call converted to version 1.0, its own version, and its binding: JSON-RPC or REST. */
export interface Call extends Rpc {
  readonly version: "1.0" | "0.3"
  readonly isRest: boolean
}

const HistoryLength = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

const Part = Schema.Struct({
  text: Schema.optionalKey(Schema.String),
  raw: Schema.optionalKey(Schema.String),
  url: Schema.optionalKey(Schema.String),
  data: Schema.optionalKey(Schema.Json),
  mediaType: Schema.optionalKey(Schema.String)
})

type Part = typeof Part.Type

/** The parameters of a message. */
export const Send = Schema.Struct({
  message: Schema.Struct({
    messageId: Conversations.Id,
    contextId: Schema.optionalKey(Schema.Union([Schema.Literal(""), Conversations.Id])),
    taskId: Schema.optionalKey(Schema.String),
    role: Schema.Literals(["ROLE_USER", "user"]),
    parts: Schema.NonEmptyArray(Part)
  }),
  configuration: Schema.optionalKey(
    Schema.Struct({
      returnImmediately: Schema.optionalKey(Schema.Boolean),
      historyLength: Schema.optionalKey(HistoryLength),
      taskPushNotificationConfig: Schema.optionalKey(Schema.NullOr(Schema.JsonObject))
    })
  )
})

/** The parameters of a message. */
export type Send = typeof Send.Type

/** The parameters that name a task. */
export const TaskOf = Schema.Struct({ id: Schema.String, historyLength: Schema.optionalKey(HistoryLength) })

export const read = <A>(schema: Schema.ConstraintDecoder<A>, params: Rpc["params"]): Effect.Effect<A, HttpProblem> =>
  Effect.mapError(
    Schema.decodeUnknownEffect(schema)(params),
    ({ message }) => new Invalid({ detail: message.slice(0, 1_000) })
  )

/**
 * Starts a task with a message, or answers the questions of one. A message that is sent again, with the same id and
 * text, has the task of the first time.
 */
export const receive = Effect.fnUntraced(function* (
  runs: CallerRuns,
  agent: string,
  { message: { contextId = "", messageId, parts, taskId = "" } }: Send
): Effect.fn.Return<Conversations.Answering, HttpProblem> {
  if (taskId !== "") return yield* decide(runs, taskId, contextId, parts)
  const input = yield* Effect.forEach(parts, contentOf)
  const context = contextId === "" ? yield* contextFor(messageId, parts) : contextId
  const last = contextId === "" ? undefined : yield* Conversations.last(runs, contextId)
  const history = last === undefined ? undefined : yield* Conversations.messagesOf(runs, last.runId)
  return yield* Conversations.begin(runs, Conversations.nameOf(context, messageId), {
    agent,
    input,
    ...(history === undefined ? {} : { history })
  })
})

/** Returns the id of a new conversation, which is the same each time its first message is sent. */
const contextFor = (messageId: string, parts: ReadonlyArray<Part>): Effect.Effect<string> =>
  Effect.map(sha256(JSON.stringify([messageId, parts])), (digest) => digest.slice(0, 24))

/** Answers the questions of a waiting task. */
const decide = Effect.fnUntraced(function* (
  runs: CallerRuns,
  taskId: string,
  contextId: string,
  parts: ReadonlyArray<Part>
): Effect.fn.Return<Conversations.Answering, HttpProblem> {
  const { revision, runId, status } = yield* runs.summary(taskId)
  if (contextId !== "" && contextId !== Tasks.idsOf(runs, runId).contextId) {
    return yield* new Invalid({ detail: "the task belongs to another context" })
  }
  if (status.type !== "waiting") return yield* new Conflict({ reason: "busy", id: runId })
  const data = parts.flatMap((part) => (part.data === undefined ? [] : [part.data]))
  const open = yield* runs.questions(runId)
  if (data.length === 0) {
    const text = parts.flatMap((part) => (part.text === undefined ? [] : [part.text])).join("\n")
    const answers = open.flatMap((question) => decisionOf(question, text) ?? [])
    if (answers.length < open.length) return yield* new Invalid({ detail: howToAnswer })
    if (answers.length > 0) yield* runs.answer(runId, { answers })
    return { runId, after: revision }
  }
  const decisions = yield* Effect.forEach(data, (one) => read(Decision, one))
  const answers = open.flatMap(({ callId }) => {
    const found = decisions.find((one) => one.callId === callId) ?? decisions.find((one) => one.callId === undefined)
    return found === undefined ? [] : [{ ...found, callId }]
  })
  if (answers.length > 0) yield* runs.answer(runId, { answers })
  return { runId, after: revision }
})

const howToAnswer =
  "an answer is yes or no, the text of a form with one text, or a data part { approved, callId?, reason?, input?, values? }"

/** Default of `callId`: every open question of the task. */
const callId = Schema.optionalKey(Schema.String)

/** A decision about a call, or the result of an external one. */
const Decision = Schema.Union([
  Schema.Struct({ output: Schema.Json, callId }),
  Schema.Struct({ error: Schema.String, callId }),
  Schema.Struct({
    approved: Schema.Boolean,
    callId,
    reason: Schema.optionalKey(Schema.String),
    input: Schema.optionalKey(Schema.Json),
    values: Schema.optionalKey(Schema.Record(Schema.String, Schema.Json)),
    dismissed: Schema.optionalKey(Schema.Boolean)
  })
])

const contentOf = ({ data, mediaType = "application/octet-stream", raw, text, url }: Part) => {
  if (text !== undefined) return Effect.succeed<Content>(Contents.text(text))
  if (raw !== undefined) return fileOf(`data:;base64,${raw}`, mediaType)
  if (url !== undefined) return fileOf(url, mediaType)
  return data === undefined
    ? Effect.fail(new Invalid({ detail: "a part holds text, raw, url or data" }))
    : Effect.succeed<Content>(Contents.text(JSON.stringify(data)))
}
