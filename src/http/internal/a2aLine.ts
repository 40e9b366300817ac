/**
 * JSON-RPC over HTTP to one agent of another service. Replies are bounded. Failures leave out the request, which may
 * hold credentials.
 */

import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"
import * as Discreet from "../../kit/discreetHttp.ts"
import type { Json, JsonObject } from "../../kit/json.ts"
import { parseJson } from "../../kit/json.ts"
import { redact } from "../../kit/redact.ts"
import { flat, shorten } from "../../kit/text.ts"
import { errorCode, isUnconnected } from "../../kit/failedRequest.ts"
import type { Limits } from "../../Limits.ts"
import { A2aError } from "../A2aError.ts"
import * as Wire from "./a2aWire.ts"

/** An agent, the client that reaches it with its headers, and the limits of its replies. */
export interface Peer {
  readonly name: string
  readonly client: HttpClient.HttpClient
  readonly limits: Limits
  /** Removes the keys in the headers from a text, in every encoding. */
  readonly clean: (text: string) => string
}

/** An error about the agent. The detail completes a sentence that begins with its name. */
export const failure = ({ name }: Pick<Peer, "name">, reason: A2aError["reason"], detail: string): A2aError =>
  new A2aError({ agent: name, reason, detail: `A2A agent '${name}' ${detail}` })

// ---------------------------------------------------------------- requests

/** Reads a JSON document. */
export const document = (peer: Peer, url: string): Effect.Effect<unknown, A2aError> => {
  const request = HttpClientRequest.get(url, { headers: { accept: "application/json" } })
  return received(peer, request, (text) => json(peer, text))
}

/** Calls a method, and returns its result. */
export const call = (
  peer: Peer,
  endpoint: Wire.Endpoint,
  method: Wire.Method,
  params: JsonObject
): Effect.Effect<Json, A2aError> =>
  received(peer, rpc(endpoint, method, params, "application/json"), (text) => resultOf(peer, text))

/** Calls a method and emits its updates. An agent may reply with a single update instead of a stream. */
export const updates = (
  peer: Peer,
  endpoint: Wire.Endpoint,
  method: Wire.Method,
  params: JsonObject
): Stream.Stream<Wire.Update, A2aError> =>
  Stream.unwrap(
    Effect.map(inTime(peer)(send(peer)(rpc(endpoint, method, params, "text/event-stream"))), (response) =>
      Discreet.isEventStream(response)
        ? events(peer, response)
        : Stream.fromEffect(Effect.flatMap(body(peer, response), (text) => resultOf(peer, text)))
    )
  ).pipe(Stream.mapEffect((result) => read(peer, Wire.Update, Wire.updateOf(result))))

export const read = <A>(peer: Peer, schema: Schema.ConstraintDecoder<A>, value: unknown): Effect.Effect<A, A2aError> =>
  Effect.mapError(Schema.decodeUnknownEffect(schema)(value), () =>
    failure(peer, "protocol", "answered with something malformed")
  )

const rpc = (
  { tenant, url, version }: Wire.Endpoint,
  method: Wire.Method,
  params: JsonObject,
  accept: string
): HttpClientRequest.HttpClientRequest => {
  const message = {
    jsonrpc: "2.0",
    id: 1,
    method: Wire.methodOf(method, version),
    params: tenant === "" ? params : { tenant, ...params }
  }
  return HttpClientRequest.post(url, { headers: { accept, "a2a-version": version } }).pipe(
    HttpClientRequest.bodyText(JSON.stringify(message), "application/json")
  )
}

// ---------------------------------------------------------------- responses

/** Sends a request and reads its whole response. */
const received = <A>(
  peer: Peer,
  request: HttpClientRequest.HttpClientRequest,
  read: (text: string) => Effect.Effect<A, A2aError>
): Effect.Effect<A, A2aError> =>
  Effect.flatMap(send(peer)(request), (response) => body(peer, response)).pipe(
    Effect.flatMap(read),
    Effect.scoped,
    inTime(peer)
  )

/** Sends a request. Fails for a response without success. */
const send =
  (peer: Peer) =>
  (request: HttpClientRequest.HttpClientRequest): Effect.Effect<HttpClientResponse, A2aError, Scope.Scope> =>
    HttpClient.withScope(peer.client)
      .execute(request)
      .pipe(
        Effect.mapError((error) => {
          return isUnconnected(error)
            ? failure(peer, "connect", `cannot be reached (${errorCode(error)})`)
            : failure(peer, "disconnected", "cannot be reached, or closed the connection")
        }),
        Effect.flatMap((response) =>
          response.status >= 200 && response.status < 300
            ? Effect.succeed(response)
            : Effect.flatMap(refused(peer, response, request.url), Effect.fail)
        )
      )

/** Returns the error of a response without success, which may hold an error of the protocol. */
const refused = (peer: Peer, response: HttpClientResponse, url: string): Effect.Effect<A2aError> => {
  const { status } = response
  const moved = Discreet.movedTo(response, url)
  if (moved !== undefined) return Effect.succeed(failure(peer, "config", `is not there: ${moved}`))
  if (status === 401 || status === 403) {
    return Effect.succeed(failure(peer, "needs_sign_in", `refused the credentials (HTTP status ${status})`))
  }
  if (status >= 502 && status <= 504) return Effect.succeed(failure(peer, "disconnected", "is away"))
  const plainly = failure(peer, "remote", `answered with HTTP status ${status}`)
  return Effect.match(
    Effect.flatMap(body(peer, response), (text) => resultOf(peer, text)),
    {
      onFailure: (error) => (error.reason === "protocol" || error.reason === "limit_exceeded" ? plainly : error),
      onSuccess: () => plainly
    }
  )
}

const body = (peer: Peer, { stream }: HttpClientResponse): Effect.Effect<string, A2aError> => {
  const { fetchedBytes } = peer.limits
  const tooLarge = failure(peer, "limit_exceeded", `sent more than ${fetchedBytes} bytes`)
  return stream.pipe(
    Stream.mapError(() => broken(peer)),
    Stream.limitBytes(fetchedBytes, () => Stream.fail(tooLarge)),
    Stream.mkUint8Array,
    Effect.map((bytes) => new TextDecoder().decode(bytes))
  )
}

const broken = (peer: Peer) => failure(peer, "disconnected", "closed the connection")

/** Emits the results in the events of a stream. Ignores the reconnection time that the agent requests. */
const events = (peer: Peer, { stream }: HttpClientResponse): Stream.Stream<Json, A2aError> =>
  Stream.suspend(() => {
    const received: Array<string> = []
    const parser = Sse.makeParser((event) => void (event._tag === "Event" && received.push(event.data)), {
      maxEventSize: Bounds.frameLength
    })
    const tooLong = failure(peer, "limit_exceeded", `sent an event of more than ${Bounds.frameLength} characters`)
    return stream.pipe(
      Stream.mapError(() => broken(peer)),
      Stream.decodeText(),
      Stream.mapEffect((chunk) =>
        parser.feed(chunk) === undefined ? Effect.succeed(received.splice(0)) : Effect.fail(tooLong)
      ),
      Stream.flatMap((texts) => Stream.fromIterable(texts)),
      Stream.filter((text) => text !== ""),
      Stream.mapEffect((text) => resultOf(peer, text))
    )
  })

const json = (peer: Peer, text: string): Effect.Effect<unknown, A2aError> =>
  Effect.mapError(Effect.fromResult(parseJson(text, Bounds.jsonDepth)), () =>
    failure(peer, "protocol", "answered with something that is no JSON")
  )

const resultOf = Effect.fnUntraced(function* (peer: Peer, text: string): Effect.fn.Return<Json, A2aError> {
  const { error, result = null } = yield* read(peer, Wire.RpcReply, yield* json(peer, text))
  if (!error) return result
  const { code, message } = error
  const said = shorten(flat(redact(peer.clean(message ?? ""))), 1_000)
  return yield* failure(peer, reasons.get(code) ?? "remote", `answered with an error: ${said === "" ? code : said}`)
})

const reasons: ReadonlyMap<number, A2aError["reason"]> = new Map([
  [-32001, "not_found"],
  [-32004, "not_supported"],
  [-32601, "not_supported"],
  [-32009, "version"]
])

/** Limits the time until an agent responds. */
const inTime =
  (peer: Peer) =>
  <A, R>(effect: Effect.Effect<A, A2aError, R>): Effect.Effect<A, A2aError, R> =>
    Effect.timeoutOrElse(effect, {
      duration: peer.limits.headersTimeout,
      orElse: () => Effect.fail(failure(peer, "timeout", "did not answer in time"))
    })
