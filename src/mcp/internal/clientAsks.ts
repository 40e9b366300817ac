/** Sends questions for a person or a model to the client of a request, if it announced the capability. */

import * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Base64 from "effect/encoding/Base64"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Content from "../../Content.ts"
import * as FormValues from "../../kit/formValues.ts"
import { isRecord, jsonObject, type JsonObject, own, plain } from "../../kit/json.ts"
import { SamplingRefused } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import type { Asking, Reply, Sampled, Sampling } from "../../Skill.ts"

/** A request for more input, which each revision sends in its own way. */
export type Input = Exclude<McpSchema.McpInputRequest, { readonly method: "roots/list" }>

/** Sends a request to the client. Returns undefined if it was not answered. */
export type Send = (input: Input) => Effect.Effect<unknown>

/** The functions with which a call may ask. They wait for the answer. */
export interface ClientAsks {
  readonly ask?: (asking: Asking) => Effect.Effect<Reply>
  readonly sample?: (sampling: Sampling) => Effect.Effect<Sampled, SamplingRefused>
}

export const make = ({ elicitation, sampling }: McpSchema.ClientCapabilities, send: Send): ClientAsks => {
  // Revisions without modes have an empty capability.
  const hasForm = elicitation !== undefined && (elicitation.form !== undefined || elicitation.url === undefined)
  const canAsk = ({ url }: Asking) => (url === undefined ? hasForm : elicitation?.url !== undefined)
  return {
    ...(elicitation === undefined
      ? {}
      : {
          ask: (asking) =>
            canAsk(asking)
              ? Effect.map(send({ method: "elicitation/create", params: elicitationOf(asking) }), (answer) =>
                  fitting(asking, replyOf(answer))
                )
              : Effect.succeed<Reply>({ _tag: "Declined", reason: "the client cannot show this question" })
        }),
    ...(sampling === undefined
      ? {}
      : {
          sample: (asked) =>
            Effect.flatMap(send({ method: "sampling/createMessage", params: samplingOf(asked) }), (answer) => {
              const sampled = sampledOf(answer)
              return sampled === undefined
                ? Effect.fail(new SamplingRefused({ reason: "failed", detail: "the client did not sample a reply" }))
                : Effect.succeed(sampled)
            })
        })
  }
}

/** Sends requests to a client with a session, which responds while the call waits. */
export const overSession = ({ getClient }: McpSchema.McpServerClient["Service"]): Send => {
  const sent = Effect.fnUntraced(function* ({ method, params }: Input) {
    const client = yield* getClient
    return method === "elicitation/create"
      ? yield* Effect.flatMap(decodeElicitation(params), (request) => client.elicit(request))
      : yield* Effect.flatMap(decodeSampling(params), (request) => client.createMessage(request))
  }, Effect.scoped)
  return (input) =>
    Effect.catch(sent(input), (error) =>
      Effect.as(Effect.logWarning(`an MCP client did not answer ${input.method}`, error), undefined)
    )
}

const decodeElicitation = Schema.decodeUnknownEffect(McpSchema.Elicit.payloadSchema)
const decodeSampling = Schema.decodeUnknownEffect(McpSchema.CreateMessage.payloadSchema)

const elicitationOf = ({ form, message, url }: Asking): JsonObject =>
  url === undefined
    ? { mode: "form", message, requestedSchema: form ?? { type: "object", properties: {} } }
    : { mode: "url", message, url, elicitationId: crypto.randomUUID() }

const replyOf = (answer: unknown): Reply => {
  const action = isRecord(answer) ? own(answer, "action") : undefined
  if (action === "decline") return { _tag: "Declined" }
  if (action !== "accept" || !isRecord(answer)) return { _tag: "Dismissed" }
  return { _tag: "Accepted", values: jsonObject(plain(own(answer, "content") ?? {})) }
}

/** Decodes the values of a reply by the form. A client need not have checked them. */
const fitting = ({ form }: Asking, reply: Reply): Reply => {
  if (reply._tag !== "Accepted" || form === undefined) return reply
  const values = FormValues.decode(form, reply.values)
  return Result.isSuccess(values)
    ? { _tag: "Accepted", values: values.success }
    : { _tag: "Declined", reason: `the values do not fit the form: ${values.failure}` }
}

const samplingOf = ({ maxTokens, messages, stopSequences, system, temperature }: Sampling): JsonObject => ({
  messages: messages.map((message) => ({
    role: message.role === "assistant" ? "assistant" : "user",
    content: partsOf(message)
  })),
  maxTokens,
  ...(system === undefined ? {} : { systemPrompt: system }),
  ...(temperature === undefined ? {} : { temperature }),
  ...(stopSequences === undefined ? {} : { stopSequences })
})

/** Returns a text, or one medium, since the older revisions allow only one part. */
const partsOf = ({ content }: Message): JsonObject => {
  const [part] = content
  if (content.length === 1 && part !== undefined && (part.type === "image" || part.type === "audio")) {
    if (part.data !== undefined)
      return { type: part.type, data: Base64.encode(part.data), mimeType: part.mediaType ?? "" }
  }
  return { type: "text", text: content.map(Content.toText).join("") }
}

const Answer = Schema.Struct({
  model: Schema.String,
  stopReason: Schema.optionalKey(Schema.UndefinedOr(Schema.String)),
  content: Schema.Union([
    Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
    Schema.Array(Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }))
  ])
})

const decodeAnswer = Schema.decodeUnknownOption(Answer)

const sampledOf = (answer: unknown): Sampled | undefined => {
  const found = Option.getOrUndefined(decodeAnswer(answer))
  if (found === undefined) return undefined
  const { content, model, stopReason } = found
  const text = "type" in content ? content.text : content.map(({ text }) => text).join("")
  return { text, model, finishReason: stopReason === "maxTokens" ? "length" : "stop", usage: null }
}
