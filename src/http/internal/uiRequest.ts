/** Decodes requests of `useChat`: the new message, the decisions about calls, and the earlier messages. */

import * as Base64 from "effect/encoding/Base64"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Content } from "../../Content.ts"
import * as Contents from "../../Content.ts"
import { isJsonObject, own } from "../../kit/json.ts"
import { kindOf } from "../../Media.ts"
import * as Messages from "../../Message.ts"
import { type HttpProblem, Invalid } from "../HttpProblem.ts"
import { type Decision, Id } from "./conversations.ts"

const Part = Schema.Struct({
  type: Schema.String,
  text: Schema.optionalKey(Schema.String),
  url: Schema.optionalKey(Schema.String),
  mediaType: Schema.optionalKey(Schema.String),
  filename: Schema.optionalKey(Schema.NullishOr(Schema.String)),
  state: Schema.optionalKey(Schema.String),
  toolCallId: Schema.optionalKey(Schema.String),
  output: Schema.optionalKey(Schema.Json),
  errorText: Schema.optionalKey(Schema.String),
  approval: Schema.optionalKey(
    Schema.Struct({
      id: Schema.String,
      approved: Schema.optionalKey(Schema.Boolean),
      reason: Schema.optionalKey(Schema.NullishOr(Schema.String))
    })
  )
})

const UiMessage = Schema.Struct({
  id: Id,
  role: Schema.Literals(["user", "assistant"]),
  parts: Schema.Array(Part)
})

/** The message of a page. */
export type UiMessage = typeof UiMessage.Type

/** The body of a request. */
export const UiRequest = Schema.Struct({
  /** The id of the conversation. */
  id: Id,
  messages: Schema.Array(UiMessage),
  trigger: Schema.Literals(["submit-message", "regenerate-message"]),
  agent: Schema.optionalKey(Schema.String),
  context: Schema.optionalKey(Schema.JsonObject),
  /** The values of forms, by the ids of the calls that ask for them. Send them with the approval of the call. */
  values: Schema.optionalKey(Schema.Record(Schema.String, Schema.JsonObject)),
  /** Whether the run continues or is cancelled when the page leaves. Default: `continue`. */
  onLeave: Schema.optionalKey(Schema.Literals(["continue", "cancel"]))
})

/** The body of a request. */
export type UiRequest = typeof UiRequest.Type

/** The request of a page: to answer a message, or to continue a run with decisions. */
type Asked =
  | { readonly _tag: "Message"; readonly message: UiMessage; readonly before: ReadonlyArray<UiMessage> }
  | { readonly _tag: "Decisions"; readonly runId: string; readonly decisions: ReadonlyArray<Decision> }

/** Returns the request in the messages of a page. */
export const askedIn = ({
  messages,
  values = {}
}: Pick<UiRequest, "messages" | "values">): Effect.Effect<Asked, HttpProblem> => {
  const last = messages.at(-1)
  if (last === undefined) return Effect.fail(new Invalid({ detail: "there is no message" }))
  if (last.role === "user") return Effect.succeed({ _tag: "Message", message: last, before: messages.slice(0, -1) })
  const decisions = last.parts.flatMap((part) => decisionOf(part, values))
  return decisions.length > 0
    ? Effect.succeed({ _tag: "Decisions", runId: last.id, decisions })
    : Effect.fail(new Invalid({ detail: "the last message is not from the user and holds no decision" }))
}

/** Returns the decision about a call, or the result that a page gives. The results of other calls are left out later. */
const decisionOf = (
  { approval, errorText: error, output, state, toolCallId: callId }: typeof Part.Type,
  values: NonNullable<UiRequest["values"]>
): ReadonlyArray<Decision> => {
  if (callId !== undefined && state === "output-available" && output !== undefined) return [{ callId, output }]
  if (callId !== undefined && state === "output-error" && error !== undefined) return [{ callId, error }]
  if (state !== "approval-responded" || approval?.approved === undefined) return []
  const { approved, id, reason } = approval
  const filled = own(values, id)
  return [
    {
      callId: id,
      approved,
      ...(typeof reason === "string" ? { reason } : {}),
      ...(isJsonObject(filled) ? { values: filled } : {})
    }
  ]
}

/** Returns the contents of a user's message. */
export const inputOf = ({ parts }: UiMessage): Effect.Effect<ReadonlyArray<Content>, HttpProblem> =>
  Effect.forEach(
    parts.filter(({ type }) => type === "text" || type === "file"),
    ({ mediaType = "application/octet-stream", text = "", type, url = "" }) =>
      type === "text" ? Effect.succeed<Content>(Contents.text(text)) : fileOf(url, mediaType)
  )

/** Returns the medium of an address, which may hold its bytes. */
export const fileOf = (url: string, mediaType: string): Effect.Effect<Content, HttpProblem> => {
  if (!url.startsWith("data:")) {
    return /^https?:\/\//.test(url)
      ? Effect.succeed(medium({ url, mediaType }))
      : Effect.fail(new Invalid({ detail: "a file needs a data: or http: URL" }))
  }
  const encoded = /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1]
  const bytes = encoded === undefined ? undefined : Result.getOrUndefined(Base64.decode(encoded))
  return bytes === undefined
    ? Effect.fail(new Invalid({ detail: "the data: URL of a file must be base64" }))
    : Effect.succeed(medium({ data: bytes, mediaType }))
}

const medium = (source: Contents.OneSource & { readonly mediaType: string }): Content =>
  Contents[kindOf(source.mediaType)](source)

/** Returns the messages of a page as text, for a conversation whose runs are not stored here. */
export const textOf = (messages: ReadonlyArray<UiMessage>): ReadonlyArray<Messages.Message> =>
  messages.flatMap(({ parts, role }) => {
    const text = parts.flatMap((part) => (part.type === "text" ? [part.text ?? ""] : [])).join("\n\n")
    return text === "" ? [] : [role === "user" ? Messages.user(text) : Messages.assistant(text)]
  })
