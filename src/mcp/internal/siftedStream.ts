/** Separates other messages of a server from the response in the event stream of a request. */

import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"
import { isRecord, own, parseJson } from "../../kit/json.ts"
import * as Http from "./http.ts"
import * as JsonRpc from "./jsonRpc.ts"

interface Handlers {
  /** Receives the server's requests, which are removed from the stream. Default: they stay in it. */
  readonly onRequest?: ((message: McpSchema.JsonRpcRequest) => Effect.Effect<void>) | undefined
  /** Receives notifications. The reader skips them. */
  readonly onNotification: (method: string, params: unknown) => Effect.Effect<void>
}

/** Returns a response whose event stream calls the handlers. A response without an event stream stays unchanged. */
export const sifted = (response: HttpClientResponse, handlers: Handlers): HttpClientResponse =>
  Http.isEventStream(response)
    ? Object.create(response, { stream: { get: () => streamOf(response, handlers) } })
    : response

const streamOf = ({ stream }: HttpClientResponse, handlers: Handlers) =>
  Stream.suspend(() => {
    const arrived: Array<string> = []
    const parser = Sse.makeParser((event) => void (event._tag === "Event" && arrived.push(event.data)), {
      maxEventSize: Bounds.frameLength
    })
    let isTooLong = false
    return stream.pipe(
      Stream.decodeText(),
      Stream.mapEffect((text) => {
        isTooLong ||= parser.feed(text) !== undefined
        const kept = Effect.forEach(arrived.splice(0), (data) =>
          Effect.map(handle(data, handlers), (isTaken) => (isTaken ? "" : eventOf(data)))
        )
        return Effect.map(kept, (events) => events.join("") + (isTooLong ? tooLong() : ""))
      }),
      Stream.takeUntil(() => isTooLong),
      Stream.filter((text) => text !== ""),
      Stream.encodeText
    )
  })

/** Returns a placeholder for an event that is longer than the limit of a message, so that the reader fails. */
const tooLong = () => `data: ${"x".repeat(Bounds.frameLength)}`

/** Handles the message of an event. Returns true if it is removed from the stream. */
const handle = (data: string, { onNotification, onRequest }: Handlers): Effect.Effect<boolean> => {
  // Most events are responses.
  if (!data.includes('"method"')) return Effect.succeed(false)
  const message = Result.getOrUndefined(parseJson(data, Bounds.jsonDepth))
  const method = isRecord(message) ? own(message, "method") : undefined
  if (!isRecord(message) || typeof method !== "string") return Effect.succeed(false)
  const request = Option.filter(JsonRpc.decodeMessage(message), JsonRpc.isRequest)
  if (Option.isNone(request)) return Effect.as(onNotification(method, own(message, "params")), false)
  return onRequest === undefined ? Effect.succeed(false) : Effect.as(onRequest(request.value), true)
}

const eventOf = (data: string): string =>
  `${data
    .split("\n")
    .map((line) => `data: ${line}`)
    .join("\n")}\n\n`
