/**
 * The stream of a session over which an HTTP server announces changes. effect's server has none for the revisions with
 * a handshake.
 */

import type { McpServer } from "effect/ai/McpServer"
import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import { versions } from "./serverEntry.ts"

type App<E, R> = Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>

export interface ServerStream {
  /** Sends a notification: one about a resource to its subscribers, any other to all sessions. */
  readonly announce: (method: string, params: unknown) => Effect.Effect<void>
  /** Subscribes a session to a resource. Returns false if there is no such session. */
  readonly subscribe: (session: string, uri: string) => boolean
  readonly unsubscribe: (session: string, uri: string) => void
  /** Responds to requests for a stream, and follows the start and end of sessions. */
  readonly over: <E, R>(app: App<E, R>) => App<E, R | HttpServerRequest.HttpServerRequest>
}

interface Session {
  /** The open stream, or undefined if there is none. */
  stream: Queue.Queue<string, Cause.Done> | undefined
  readonly uris: Set<string>
}

/** Serves streams at a path. */
export const make = (path: string): ServerStream => {
  const sessions = new Map<string, Session>()

  const end = (id: string) =>
    Effect.suspend(() => {
      const stream = sessions.get(id)?.stream
      sessions.delete(id)
      return stream === undefined ? Effect.void : Effect.asVoid(Queue.end(stream))
    })

  const open = Effect.fnUntraced(function* (session: Session) {
    if (session.stream !== undefined) yield* Queue.end(session.stream)
    // A client that stops reading misses the oldest changes, but it lists everything again anyway.
    const stream = yield* Queue.sliding<string, Cause.Done>(capacity)
    session.stream = stream
    yield* Queue.offer(stream, ": open\n\n")
    const left = Effect.sync(() => {
      if (session.stream === stream) session.stream = undefined
    })
    return HttpServerResponse.stream(Stream.fromQueue(stream).pipe(Stream.ensuring(left), Stream.encodeText), events)
  })

  const note = HttpEffect.appendPreResponseHandler((_, response) => {
    const id = response.headers[header]
    if (id !== undefined && !sessions.has(id)) sessions.set(id, { stream: undefined, uris: new Set() })
    return Effect.succeed(response)
  })

  return {
    announce: (method, params) =>
      Effect.suspend(() => {
        const uri = method === "notifications/resources/updated" ? uriOf(params) : undefined
        const event = eventOf(method, params)
        const streams = [...sessions.values()].flatMap(({ stream, uris }) =>
          stream === undefined || (uri !== undefined && !uris.has(uri)) ? [] : [stream]
        )
        return Effect.forEach(streams, (stream) => Queue.offer(stream, event), { discard: true })
      }),
    subscribe: (id, uri) => {
      const uris = sessions.get(id)?.uris
      // A session may subscribe to as many resources as a list may have.
      if (uris === undefined || uris.size >= most) return false
      uris.add(uri)
      return true
    },
    unsubscribe: (id, uri) => void sessions.get(id)?.uris.delete(uri),
    over: (app) =>
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers, method, url }) => {
        const id = headers[header]
        if (method === "DELETE" && id !== undefined) return Effect.tap(app, () => end(id))
        if (method !== "GET") return Effect.tap(ofSession(app), note)
        if (id === undefined || url.split("?", 1)[0] !== path) return app
        const session = sessions.get(id)
        if (session === undefined) return refused(404)
        return headers["accept"]?.includes("text/event-stream") === true ? open(session) : refused(406)
      })
  }
}

const events = { contentType: "text/event-stream", headers: { "cache-control": "no-store" } }

const eventOf = (method: string, params: unknown): string =>
  `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method, params: params ?? {} })}\n\n`

const refused = (status: 404 | 406) => Effect.succeed(HttpServerResponse.empty({ status }))

/** Removes the revision header from requests of a session, so that the revision its handshake agreed on applies. */
const ofSession = <E, R>(app: App<E, R>): App<E, R | HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    const version = request.headers["mcp-protocol-version"]
    if (request.headers[header] === undefined || version === undefined || !withHandshake.has(version)) return app
    const known = request.modify({ headers: Headers.remove(request.headers, "mcp-protocol-version") })
    return Effect.provideService(app, HttpServerRequest.HttpServerRequest, known)
  })

const withHandshake: ReadonlySet<string> = new Set(versions.filter((version) => version !== "2026-07-28"))

/** Returns effect's server with notifications that also go over the stream. */
export const announcing = (
  server: McpServer["Service"],
  { announce }: Pick<ServerStream, "announce">
): McpServer["Service"] => {
  const notifications = new Proxy(server.notifications, {
    get: (target, method, receiver) => {
      const send: unknown = Reflect.get(target, method, receiver)
      if (typeof send !== "function" || typeof method !== "string" || !isAnnounced(method)) return send
      return (payload: unknown) => Effect.andThen(announce(method, payload), send.call(target, payload))
    }
  })
  return Object.create(server, { notifications: { value: notifications } })
}

/** Returns false for progress and logs, which belong to the stream of their request. */
const isAnnounced = (method: string): boolean =>
  /^notifications\/(?:resources\/updated|\w+\/list_changed)$/.test(method)

const header = "mcp-session-id"
const capacity = 256
const most = 10_000

const uriOf = (params: unknown): string => {
  const uri: unknown = typeof params === "object" && params !== null ? Reflect.get(params, "uri") : undefined
  return typeof uri === "string" ? uri : ""
}
