/** Helpers of the checks of a provider: a client with prepared responses, and requests. */

import * as Effect from "effect/Effect"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Stream from "effect/Stream"
import * as Contents from "../../../Content.ts"
import type { ProviderError } from "../../../KernelError.ts"
import type { Message } from "../../../Message.ts"
import * as Models from "../../../Model.ts"
import type { ProviderShape, Request } from "../../../Provider.ts"
import type { StreamPart } from "../../../StreamPart.ts"
import type { Subject } from "../../ProviderSuite.ts"

/** A provider under test, opened over a client. */
export interface Opened<E, R> extends Omit<Subject<E, R>, "open"> {
  readonly open: (client: HttpClient.HttpClient) => Effect.Effect<ProviderShape, E, Exclude<R, HttpClient.HttpClient>>
}

/** One requirement of a provider. */
export interface ProviderCheck {
  readonly name: string
  readonly body: <E, R>(subject: Opened<E, R>) => Effect.Effect<void, E, Exclude<R, HttpClient.HttpClient>>
}

/** Creates a client that gives every request the same response, and keeps the bodies of the requests. */
export const answering = (answer: () => Response) => {
  const bodies: Array<string> = []
  const client = HttpClient.make((request) =>
    Effect.sync(() => {
      bodies.push(request.body._tag === "Uint8Array" ? new TextDecoder().decode(request.body.body) : "")
      return HttpClientResponse.fromWeb(request, answer())
    })
  )
  return { bodies, client }
}

/** Creates a response with the body of a reply. */
export const said = (
  { body, contentType = "text/event-stream" }: Subject["reply"],
  bytes?: string | ReadableStream<Uint8Array>
): Response => new Response(bytes ?? body, { headers: { "content-type": contentType } })

/** Creates a request with these messages to a text model. */
export const asking = (messages: ReadonlyArray<Message>, model: Models.Model = Models.make("suite")): Request => ({
  model,
  messages,
  tools: [],
  generation: {},
  media: { get: () => Effect.succeedNone, bytes: (id) => Effect.die(`no media ${id}`) }
})

const hello = asking([{ role: "user", content: [Contents.text("hello")] }])

/** Reads all parts of a reply. */
export const readAll = (
  provider: ProviderShape,
  request: Request = hello
): Effect.Effect<ReadonlyArray<StreamPart>, ProviderError> => Stream.runCollect(provider.stream(request))

/** Returns the text of parts. */
export const textIn = (parts: ReadonlyArray<StreamPart>): string =>
  parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("")

/** Dies with a sentence unless a condition holds. */
export const demand = (holds: boolean, sentence: string): Effect.Effect<void> =>
  holds ? Effect.void : Effect.die(new Error(sentence))
