/**
 * Reads what a server says beside its answer in the event stream of a request.
 */

import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as Bounds from "../../internal/base/bounds.ts"
import { isRecord, own, parseJson } from "../../internal/base/json.ts"
import * as Http from "./http.ts"
import * as JsonRpc from "./jsonRpc.ts"

/** Who hears what. */
export interface Hearers {
  /** Takes the server's requests, which the reader of the stream does not see. Default: it sees them. */
  readonly onRequest?: ((message: McpSchema.JsonRpcRequest) => Effect.Effect<void>) | undefined
  /** Hears notifications. The reader skips them. */
  readonly onNotification: (method: string, params: unknown) => Effect.Effect<void>
}

/** The same response, whose event stream tells `hearers`. Another response is returned as it is. */
export const sifted = (response: HttpClientResponse, hearers: Hearers): HttpClientResponse =>
  Http.isEventStream(response)
    ? Object.create(response, { stream: { get: () => streamOf(response, hearers) } })
    : response

const streamOf = ({ stream }: HttpClientResponse, hearers: Hearers) =>
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
          Effect.map(hear(data, hearers), (isTaken) => (isTaken ? "" : eventOf(data)))
        )
        return Effect.map(kept, (events) => events.join("") + (isTooLong ? tooLong() : ""))
      }),
      Stream.takeUntil(() => isTooLong),
      Stream.filter((text) => text !== ""),
      Stream.encodeText
    )
  })

/** What the reader is sent in place of an event that is longer than a message may be, so that it refuses it. */
const tooLong = () => `data: ${"x".repeat(Bounds.frameLength)}`

/** Returns whether the message of an event was taken. */
const hear = (data: string, { onNotification, onRequest }: Hearers): Effect.Effect<boolean> => {
  // Most events are answers.
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
