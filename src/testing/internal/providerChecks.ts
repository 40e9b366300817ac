/**
 * Checks of providers: the contents they send, the replies they read, and the refusals they report.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import * as Stream from "effect/Stream"
import * as Contents from "../../Content.ts"
import type { MediaContent } from "../../Content.ts"
import type { ProviderError, ProviderReason } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import * as Models from "../../Model.ts"
import type { ProviderShape, Request } from "../../Provider.ts"
import type { StreamPart } from "../../StreamPart.ts"
import type { Subject } from "../ProviderSuite.ts"

/** A provider under test, opened over a client. */
interface Opened<E, R> extends Omit<Subject<E, R>, "open"> {
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

/** Reads all parts of a reply. */
export const readAll = (
  provider: ProviderShape,
  request: Request = hello()
): Effect.Effect<ReadonlyArray<StreamPart>, ProviderError> => Stream.runCollect(provider.stream(request))

/** Returns the text of parts. */
const textIn = (parts: ReadonlyArray<StreamPart>): string =>
  parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("")

/** Dies with a sentence unless a condition holds. */
export const demand = (holds: boolean, sentence: string): Effect.Effect<void> =>
  holds ? Effect.void : Effect.die(new Error(sentence))

const bytes = new Uint8Array([250, 251, 252, 253])

const media = (): ReadonlyArray<MediaContent> => [
  Contents.image({ data: bytes, mediaType: "image/png" }),
  Contents.audio({ data: bytes, mediaType: "audio/wav" }),
  Contents.video({ data: bytes, mediaType: "video/mp4" }),
  Contents.document({ data: bytes, mediaType: "application/pdf" })
]

const conversation = (): ReadonlyArray<Message> => [
  { role: "system", content: [Contents.text("the rules")] },
  { role: "user", content: [Contents.text("the question"), ...media()] },
  { role: "assistant", content: [Contents.text("the call"), Contents.toolUse("c", "look", { at: "this" })] },
  { role: "tool", content: [Contents.toolResult("c", [Contents.text("the result")])] },
  { role: "user", content: [Contents.text("go on")] }
]

const hello = () => asking([{ role: "user", content: [Contents.text("hello")] }])

/** Returns a text as it is written inside JSON. */
const inJson = (text: string): string => JSON.stringify(text).slice(1, -1)

export const contentChecks: ReadonlyArray<ProviderCheck> = [
  {
    name: "sends every text of a conversation, and a placeholder for media its model does not take",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      const { bodies, client } = answering(() => said(reply))
      yield* Effect.orDie(readAll(yield* open(client), asking(conversation())))
      const body = bodies[0] ?? ""
      const texts = [
        "the rules",
        "the question",
        "the call",
        "the result",
        "go on",
        ...media().map((part) => Contents.placeholder(part))
      ]
      for (const text of texts) yield* demand(body.includes(inJson(text)), `'${text}' is not sent`)
      yield* demand(!body.includes("+vv8/Q"), "a medium is sent that the model does not take")
    })
  },
  {
    name: "sends a message the same way each time, so that a vendor can cache the prefix",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      const { bodies, client } = answering(() => said(reply))
      const provider = yield* open(client)
      const messages = conversation().slice(0, 3)
      for (let times = 0; times < 2; times++) yield* Effect.orDie(readAll(provider, asking(messages)))
      yield* demand(bodies[0] === bodies[1], "the same request is written in two ways")
    })
  }
]

export const replyChecks: ReadonlyArray<ProviderCheck> = [
  {
    name: "reads its reply the same, however the network cuts it",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      for (const size of [1, 7, 61, reply.body.length + 1]) {
        const { client } = answering(() => said(reply, cutInto(reply.body, size)))
        const parts = yield* Effect.orDie(readAll(yield* open(client)))
        yield* demand(textIn(parts) === reply.text, `pieces of ${size} bytes say ${JSON.stringify(textIn(parts))}`)
      }
    })
  },
  {
    name: "ends a reply with its only finish part",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      const { client } = answering(() => said(reply))
      const parts = yield* Effect.orDie(readAll(yield* open(client)))
      const ends = parts.filter(({ type }) => type === "finish")
      yield* demand(ends.length === 1 && parts.at(-1) === ends[0], `there are ${ends.length} finish parts`)
    })
  },
  {
    name: "fails as incomplete when its reply is cut",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      const half = reply.body.slice(0, Math.floor(reply.body.length / 2))
      const { client } = answering(() => said(reply, half))
      const read = yield* Effect.result(readAll(yield* open(client)))
      yield* demand(
        read._tag === "Failure" && read.failure.reason === "incomplete",
        read._tag === "Failure" ? `it fails as ${read.failure.reason}` : "it succeeds"
      )
    })
  },
  {
    name: "ends its request when its reader stops",
    body: Effect.fnUntraced(function* ({ open, reply }) {
      let isEnded = false
      const { promise: isRead, resolve } = Promise.withResolvers<void>()
      const bytes = new TextEncoder().encode(reply.body.slice(0, Math.floor(reply.body.length / 2)))
      const waiting = () =>
        new ReadableStream<Uint8Array>({
          start: (controller) => controller.enqueue(bytes),
          // Called once the first bytes are read.
          pull: () => resolve(),
          cancel: () => {
            isEnded = true
          }
        })
      const { client } = answering(() => said(reply, waiting()))
      const reading = yield* Effect.forkChild(Effect.exit(readAll(yield* open(client))))
      yield* Effect.promise(() => isRead)
      yield* Fiber.interrupt(reading)
      yield* demand(isEnded, "the request continues")
    })
  }
]

const refusals: ReadonlyArray<readonly [status: number, reason: ProviderReason]> = [
  [401, "authentication"],
  [429, "rate_limited"],
  [500, "server_error"]
]

export const refusalChecks: ReadonlyArray<ProviderCheck> = [
  {
    name: "names the reason and the status of a refusal",
    body: Effect.fnUntraced(function* ({ open }) {
      for (const [status, reason] of refusals) {
        const { client } = answering(() => new Response("{}", { status }))
        const error = yield* failureOf(readAll(yield* open(client)))
        yield* demand(error.reason === reason, `status ${status} is ${error.reason}`)
        yield* demand(error.status === status, `status ${status} is ${error.status ?? "no status"}`)
      }
    })
  },
  {
    name: "does not show its key in errors",
    body: Effect.fnUntraced(function* ({ open, secret }) {
      for (const [status] of refusals) {
        const body = JSON.stringify({ error: { message: `no: ${secret}`, code: secret } })
        const { client } = answering(() => new Response(body, { status }))
        const error = yield* failureOf(readAll(yield* open(client)))
        const shown = `${Cause.pretty(Cause.fail(error))} ${JSON.stringify(error)}`
        yield* demand(!shown.includes(secret), `the error of status ${status} shows the key`)
      }
    })
  }
]

/** Cuts a body into pieces, as a network may deliver it. */
const cutInto = (body: string, size: number): ReadableStream<Uint8Array> => {
  const bytes = new TextEncoder().encode(body)
  let at = 0
  return new ReadableStream({
    pull: (controller) => {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(bytes.slice(at, (at += size)))
    }
  })
}

const failureOf = <A, E>(read: Effect.Effect<A, E>): Effect.Effect<E> =>
  Effect.matchEffect(read, { onFailure: Effect.succeed, onSuccess: () => Effect.die(new Error("a refusal succeeds")) })
