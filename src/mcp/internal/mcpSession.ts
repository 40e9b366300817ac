/**
 * One live connection to a server: its transport, the revision agreed on, and
 * effect's client over both.
 *
 * Revisions are offered one by one (`Handshake.offers`), each over a fresh
 * transport, until the server takes one. An address whose transport was guessed
 * is tried with the older HTTP transport when it knows nothing of the newer one.
 */

import * as McpClient from "effect/ai/McpClient"
import { McpClientError, UnsupportedError } from "effect/ai/McpClientError"
import * as McpProtocol from "effect/ai/McpProtocol"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as HttpClient from "effect/http/HttpClient"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { isRecord, own } from "../../internal/base/json.ts"
import { Limits } from "../../Limits.ts"
import type { HttpServer, McpServer, ProtocolVersion } from "../McpConfig.ts"
import * as Exchange from "./jsonRpc.ts"
import * as Handshake from "./handshake.ts"
import * as Listing from "./listing.ts"
import * as LegacySse from "./legacySse.ts"
import * as Stdio from "./stdio.ts"
import * as StreamableHttp from "./streamableHttp.ts"
import { challengeOf } from "./requestFailure.ts"

/** A live connection. */
export interface Session {
  readonly client: McpClient.McpClient
  readonly protocolVersion: ProtocolVersion
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly listResourceTemplates: Effect.Effect<ReadonlyArray<McpSchema.ResourceTemplate>, McpClientError>
  /** False once the line is known to be down. Over Streamable HTTP only a request can tell. */
  readonly isOpen: Effect.Effect<boolean>
  /**
   * Finds out whether the server is there, for what must not be asked twice: looked at now, a
   * server that was killed is a restart; after the question, nobody could tell whether it was heard.
   */
  readonly probe: Effect.Effect<void, McpClientError>
}

/** What every attempt needs. */
export interface Options {
  /** Gives the client of an HTTP server, its headers and token put in. */
  readonly httpClient: (server: HttpServer) => HttpClient.HttpClient
  readonly listener: Exchange.Listener
}

/** Connects. The session ends with the scope. */
export const open = Effect.fnUntraced(function* (
  server: McpServer,
  options: Options
): Effect.fn.Return<Session, McpClientError, ChildProcessSpawner | Scope.Scope> {
  let declined: McpClientError | undefined
  for (const offer of Handshake.offers(server)) {
    const attempt = yield* Effect.result(connect(server, offer, options))
    if (Result.isSuccess(attempt)) return attempt.success
    const error = attempt.failure
    const older = legacySse(server, error)
    if (older !== undefined) return yield* connect(older, offer, options)
    // What an older revision meets says less than why the newer one was declined, unless it only lacks a sign-in.
    if (!Handshake.declines(error)) return yield* challengeOf(error) === undefined ? (declined ?? error) : error
    declined ??= error
  }
  return yield* declined ?? nothingToOffer
})

const nothingToOffer = new McpClientError({ reason: new UnsupportedError({ description: "no revision to offer" }) })

const connect = Effect.fnUntraced(function* (server: McpServer, offer: ProtocolVersion, options: Options) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  return yield* attempt(server, Handshake.make(offer), options).pipe(
    Scope.provide(scope),
    Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
  )
})

const attempt = Effect.fnUntraced(function* (server: McpServer, handshake: Handshake.Handshake, options: Options) {
  const { isOpen, listen, probe, transport } = yield* openTransport(server, handshake, options)
  const limits = yield* Limits
  const agreeing = Listing.bounded(Handshake.over(transport, handshake), limits.fetchedBytes)
  const client = yield* McpClient.make({ ...Handshake.clientInfo, timeout: server.connectTimeout }).pipe(
    Effect.provideService(McpClient.Transport, agreeing)
  )
  if (tellsOfChanges(handshake.capabilities)) yield* Effect.forkScoped(listen)
  const session: Session = {
    client,
    protocolVersion: handshake.version ?? handshake.offer,
    capabilities: handshake.capabilities,
    listResourceTemplates:
      "resources" in handshake.capabilities
        ? Listing.resourceTemplates(agreeing, server.connectTimeout)
        : Effect.succeed([]),
    isOpen,
    probe
  }
  return session
})

const openTransport = Effect.fnUntraced(function* (
  server: McpServer,
  handshake: Handshake.Handshake,
  { httpClient, listener }: Options
) {
  switch (server.transport) {
    case "stdio":
      return overLine(yield* Stdio.open(server, listener), handshake)
    case "sse":
      return overLine(yield* LegacySse.open(server, httpClient(server), listener), handshake)
    case "streamable_http": {
      const http = yield* StreamableHttp.open(server, httpClient(server), listener, handshake)
      return { ...http, isOpen: Effect.succeed(true), probe: readArrivals }
    }
  }
})

const overLine = (line: Exchange.Exchange, handshake: Handshake.Handshake) => {
  const modern = handshake.offer === "2026-07-28"
  const transport: McpClient.Transport = {
    "~effect/ai/McpClient/Transport": "~effect/ai/McpClient/Transport",
    protocol: modern ? McpProtocol.v2026_07_28 : McpProtocol.v2025_11_25,
    request: line.request,
    notify: line.notify,
    isCallable: () => true
  }
  return {
    transport,
    isOpen: line.isOpen,
    listen: modern ? Effect.ignore(line.request(Handshake.subscription)) : Effect.void,
    probe: modern ? readArrivals : pingOver(line)
  }
}

// A server that answers nothing it does not know is not asked again.
const pingOver = (line: Exchange.Exchange): Effect.Effect<void, McpClientError> => {
  let answers = true
  let nextId = 1
  return Effect.suspend(() => {
    if (!answers) return readArrivals
    const ping = { jsonrpc: "2.0", id: `ping-${nextId++}`, method: "ping" } as const
    return Effect.map(Effect.timeoutOption(line.request(ping), "250 millis"), (answer) => {
      answers = Option.isSome(answer)
    })
  })
}

// A closed socket is only known once the event loop has read it.
const readArrivals = Effect.repeat(
  Effect.callback<void>((resume) => {
    const turn = setImmediate(() => resume(Effect.void))
    return Effect.sync(() => clearImmediate(turn))
  }),
  { times: 2 }
)

const tellsOfChanges = (capabilities: Readonly<Record<string, unknown>>): boolean =>
  Object.values(capabilities).some((capability) => isRecord(capability) && own(capability, "listChanged") === true)

// What a server of the first HTTP transport answers to a message posted to its stream's address.
const legacySse = (server: McpServer, { reason }: McpClientError): HttpServer | undefined =>
  server.transport === "streamable_http" &&
  server.inferred &&
  reason._tag === "HttpError" &&
  (reason.status === 404 || reason.status === 405)
    ? { ...server, transport: "sse" }
    : undefined
