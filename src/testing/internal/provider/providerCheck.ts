/**
 * What the checks of a provider share: a client that answers as it is told, and requests.
 */

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

/** One thing a provider must do. */
export interface ProviderCheck {
  readonly name: string
  readonly body: <E, R>(subject: Opened<E, R>) => Effect.Effect<void, E, Exclude<R, HttpClient.HttpClient>>
}

/** A client that gives every request one answer, and keeps the bodies of the requests. */
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

/** An answer with the body of a reply. */
export const said = (
  { body, contentType = "text/event-stream" }: Subject["reply"],
  bytes?: string | ReadableStream<Uint8Array>
): Response => new Response(bytes ?? body, { headers: { "content-type": contentType } })

/** A request of these messages to a model of text. */
export const asking = (messages: ReadonlyArray<Message>, model: Models.Model = Models.make("suite")): Request => ({
  model,
  messages,
  tools: [],
  generation: {},
  media: { get: () => Effect.succeedNone, bytes: (id) => Effect.die(`no media ${id}`) }
})

/** A request that says hello. */
const hello = asking([{ role: "user", content: [Contents.text("hello")] }])

/** Everything a reply gives. */
export const readAll = (
  provider: ProviderShape,
  request: Request = hello
): Effect.Effect<ReadonlyArray<StreamPart>, ProviderError> => Stream.runCollect(provider.stream(request))

/** The text of parts. */
export const textIn = (parts: ReadonlyArray<StreamPart>): string =>
  parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("")

/** Dies with a sentence unless a condition holds. */
export const demand = (holds: boolean, sentence: string): Effect.Effect<void> =>
  holds ? Effect.void : Effect.die(new Error(sentence))
