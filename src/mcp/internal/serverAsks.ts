/** Decodes the requests of a server to its client, and encodes the replies. */

import * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as Content from "../../Content.ts"
import * as FormValues from "../../kit/formValues.ts"
import { isJsonObject, isRecord, jsonObject, type JsonObject, own, plain } from "../../kit/json.ts"
import { shorten, visible } from "../../kit/text.ts"
import type { Message } from "../../Message.ts"
import type { AnswerPending, Asking, Reply, Sampled, Sampling, SamplingRefused } from "../../Skill.ts"

/** Answers the requests of a server during a call. */
export interface Host {
  readonly elicit?: (asking: Asking) => Effect.Effect<Reply, AnswerPending>
  readonly sample?: (sampling: Sampling) => Effect.Effect<Sampled, AnswerPending | SamplingRefused>
}

/** A JSON-RPC reply. */
export type Replied =
  | { readonly result: JsonObject }
  | { readonly error: { readonly code: number; readonly message: string } }

/** Returns the capabilities of a client with this host. */
export const capabilitiesOf = ({ elicit, sample }: Host): JsonObject => ({
  ...(elicit === undefined ? {} : { elicitation: { form: {}, url: {} } }),
  ...(sample === undefined ? {} : { sampling: {} })
})

/** Replies to a request of a server. */
export const replyTo = (host: Host, method: string, params: unknown): Effect.Effect<Replied, AnswerPending> => {
  switch (method) {
    case "ping":
      return Effect.succeed({ result: {} })
    case "elicitation/create":
      return host.elicit === undefined ? Effect.succeed(unknown(method)) : elicited(host.elicit, params)
    case "sampling/createMessage":
      return host.sample === undefined ? Effect.succeed(unknown(method)) : sampled(host.sample, params)
    default:
      return Effect.succeed(unknown(method))
  }
}

/** Returns the reply for a question that a person has not answered yet: a cancelled answer, or an error. */
export const undecided = (method: string): Replied =>
  method === "elicitation/create" ? { result: { action: "cancel" } } : refused(-1, "a person has to decide first")

const unknown = (method: string): Replied =>
  refused(McpSchema.METHOD_NOT_FOUND_ERROR_CODE, `Method not found: ${visible(shorten(method, 100))}`)

const refused = (code: number, message: string): Replied => ({ error: { code, message } })

const malformed = (what: string): Replied => refused(McpSchema.INVALID_PARAMS_ERROR_CODE, what)

// ---------------------------------------------------------------- a person

const Elicitation = Schema.Union([
  Schema.Struct({ mode: Schema.Literal("url"), message: Schema.String, url: Schema.String }),
  Schema.Struct({
    mode: Schema.optionalKey(Schema.Literal("form")),
    message: Schema.String,
    requestedSchema: Schema.Record(Schema.String, Schema.Json)
  })
])

const decodeElicitation = Schema.decodeUnknownOption(Elicitation)

const elicited = Effect.fnUntraced(function* (ask: NonNullable<Host["elicit"]>, params: unknown) {
  const asking = askingOf(params)
  if (asking === undefined) return malformed("neither a form nor an address of the web")
  const reply = yield* ask(asking)
  return { result: resultOf(asking, reply) }
})

/** Returns the question for a person. An address must be http or https. */
const askingOf = (params: unknown): Asking | undefined => {
  const request = Option.getOrUndefined(decodeElicitation(params))
  if (request === undefined) return undefined
  const message = visible(shorten(request.message, longest))
  if (request.mode !== "url") return { message, form: request.requestedSchema }
  const url = URL.parse(request.url)
  return url?.protocol === "https:" || url?.protocol === "http:" ? { message, url: url.href } : undefined
}

const longest = 4_000

const resultOf = ({ form }: Asking, reply: Reply): JsonObject => {
  switch (reply._tag) {
    case "Accepted":
      // The values of a person in a run are decoded; those of the application are checked by the server.
      return {
        action: "accept",
        ...(form === undefined ? {} : { content: FormValues.completed(form, reply.values) })
      }
    case "Declined":
      return { action: "decline" }
    case "Dismissed":
      return { action: "cancel" }
  }
}

// ---------------------------------------------------------------- a model

const Media = Schema.Struct({
  type: Schema.Literals(["image", "audio"]),
  data: Schema.Uint8ArrayFromBase64,
  mimeType: Schema.String
})
const Part = Schema.Union([Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }), Media])
const Request = Schema.Struct({
  messages: Schema.Array(
    Schema.Struct({
      role: Schema.Literals(["user", "assistant"]),
      content: Schema.Union([Part, Schema.Array(Part)])
    })
  ),
  systemPrompt: Schema.optionalKey(Schema.String),
  maxTokens: Schema.Finite,
  temperature: Schema.optionalKey(Schema.Finite),
  stopSequences: Schema.optionalKey(Schema.Array(Schema.String))
})

const decodeRequest = Schema.decodeUnknownOption(Request)

const sampled = Effect.fnUntraced(function* (
  sample: NonNullable<Host["sample"]>,
  params: unknown
): Effect.fn.Return<Replied, AnswerPending> {
  const request = Option.getOrUndefined(decodeRequest(params))
  if (request === undefined) return malformed("only texts, images and sounds can be sent to a model")
  const { maxTokens, messages, stopSequences, systemPrompt, temperature } = request
  const sampling: Sampling = {
    messages: messages.map(messageOf),
    maxTokens: Math.max(1, Math.floor(maxTokens)),
    ...(systemPrompt === undefined ? {} : { system: systemPrompt }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(stopSequences === undefined ? {} : { stopSequences })
  }
  return yield* sample(sampling).pipe(
    Effect.map(({ finishReason, model, text }): Replied => {
      const stopReason = finishReason === "length" ? "maxTokens" : "endTurn"
      return { result: { role: "assistant", content: { type: "text", text }, model, stopReason } }
    }),
    Effect.catchTag("SamplingRefused", ({ detail }) => Effect.succeed(refused(-1, detail)))
  )
})

const messageOf = ({ content, role }: (typeof Request.Type)["messages"][number]): Message => ({
  role,
  content: ("type" in content ? [content] : content).map(contentOf)
})

const contentOf = (part: typeof Part.Type): Content.Content => {
  if (part.type === "text") return Content.text(part.text)
  const source = { data: part.data, mediaType: part.mimeType }
  return part.type === "image" ? Content.image(source) : Content.audio(source)
}

// ---------------------------------------------------------------- requests in results

/** Returns the requests in a result that needs more input first, or undefined if it is malformed. */
export const inputRequests = (
  result: unknown
): ReadonlyArray<readonly [key: string, method: string, params: unknown]> | undefined => {
  const requests = isRecord(result) ? own(result, "inputRequests") : undefined
  if (requests === undefined) return []
  if (!isJsonObject(requests)) return undefined
  const entries = Object.entries(requests).slice(0, most)
  return entries.map(([key, request]) => {
    const method = isRecord(request) ? own(request, "method") : undefined
    return [key, typeof method === "string" ? method : "", isRecord(request) ? own(request, "params") : undefined]
  })
}

/**
 * Returns the addresses that a person must open before a request can be answered, as requests, or undefined for another
 * error.
 */
export const addressesOf = (
  error: { readonly code: number; readonly data?: unknown } | undefined
): ReadonlyArray<JsonObject> | undefined => {
  if (error?.code !== urlRequired || !isRecord(error.data)) return undefined
  const list = own(error.data, "elicitations")
  return Array.isArray(list) && list.length > 0 ? list.slice(0, most).map((item) => jsonObject(plain(item))) : undefined
}

const urlRequired = -32042
const most = 16
