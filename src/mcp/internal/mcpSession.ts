/**
 * One session with a server: its transport, the agreed revision, and effect's client over both.
 */

import * as McpClient from "effect/ai/McpClient"
import { ConfigurationError, McpClientError, TimeoutError, UnsupportedError } from "effect/ai/McpClientError"
import * as McpProtocol from "effect/ai/McpProtocol"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as HttpClient from "effect/http/HttpClient"
import * as Option from "effect/Option"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { isRecord, own } from "../../kit/json.ts"
import { Limits } from "../../Limits.ts"
import type { HttpServer, McpServer, ProtocolVersion } from "../McpConfig.ts"
import type { Change } from "../McpConnection.ts"
import { firstOf, usableTools } from "./definition.ts"
import * as CustomLine from "./customLine.ts"
import * as Handshake from "./handshake.ts"
import * as Http from "./http.ts"
import * as JsonRpc from "./jsonRpc.ts"
import * as LegacySse from "./legacySse.ts"
import * as Listing from "./listing.ts"
import * as Metrics from "./mcpMetrics.ts"
import type { Measure } from "./mcpMetrics.ts"
import * as ReadableResult from "./readableResult.ts"
import { isHttp } from "./serverEntry.ts"
import { challengeOf } from "./requestFailure.ts"
import * as Asks from "./serverAsks.ts"
import * as RequestTrace from "./requestTrace.ts"
import * as ServerProgress from "./serverProgress.ts"
import * as ServerRequests from "./serverRequests.ts"
import * as TaskCalls from "./taskCalls.ts"
import * as Stdio from "./stdio.ts"
import * as StreamableHttp from "./streamableHttp.ts"

/** A list that is read once for all callers, and cached until it is dropped. */
interface List<A> {
  readonly get: Effect.Effect<ReadonlyArray<A>, McpClientError>
  readonly forget: Effect.Effect<void>
}

export interface Session {
  readonly client: McpClient.McpClient
  readonly protocolVersion: ProtocolVersion
  readonly capabilities: Readonly<Record<string, unknown>>
  readonly lists: {
    readonly tools: List<McpSchema.Tool>
    readonly resources: List<McpSchema.Resource>
    readonly resourceTemplates: List<McpSchema.ResourceTemplate>
    readonly prompts: List<McpSchema.Prompt>
  }
  /** The unusable tools of the list, with the reason. */
  readonly skippedTools: ReadonlyMap<string, string>
  /** Returns false once the line is known to be down. Over Streamable HTTP only a request can show that. */
  readonly isOpen: Effect.Effect<boolean>
  readonly measure: Measure
  /** Sends a request that effect's client does not know. */
  readonly send: (method: string, params: { readonly [key: string]: unknown }) => Effect.Effect<unknown, McpClientError>
  /** Checks that the server responds, before a call that must not be sent twice. */
  readonly probe: Effect.Effect<void, McpClientError>
}

export interface Options {
  /** The client of an HTTP server, with its headers and token. */
  readonly httpClient: (server: HttpServer) => HttpClient.HttpClient
  readonly onChange: (change: Change) => void
  /** Receives the notifications of changed resources. */
  readonly onUpdate: (params: unknown) => void
  readonly onErrorOutput: Stdio.OnErrorOutput
  /** Removes the keys of the server from a text. */
  readonly clean: (text: string) => string
  /** Answers requests of the server, unless the caller has a host of its own. */
  readonly host: Asks.Host
}

/** Connects. The session ends when the scope closes. */
export const open = Effect.fnUntraced(function* (
  server: McpServer,
  options: Options
): Effect.fn.Return<Session, McpClientError, ChildProcessSpawner | Scope.Scope> {
  let declined: McpClientError | undefined
  for (const offer of Handshake.offers(server)) {
    const attempt = yield* Effect.result(connect(server, offer, options))
    if (Result.isSuccess(attempt)) return attempt.success
    const error = attempt.failure
    if (mayBeLegacySse(server, error)) return yield* connect({ ...server, transport: "sse" }, offer, options)
    // The first refusal is the most informative, unless a later one only lacks a sign-in.
    if (!Handshake.declines(error)) return yield* challengeOf(error) === undefined ? (declined ?? error) : error
    declined ??= error
  }
  const reason = new UnsupportedError({ description: "no revision to offer" })
  return yield* declined ?? new McpClientError({ reason })
})

// Returns true for the response of a legacy SSE server to a message posted to the address of its stream.
const mayBeLegacySse = (server: McpServer, { reason }: McpClientError): server is HttpServer =>
  server.transport === "streamable_http" &&
  server.inferred &&
  reason._tag === "HttpError" &&
  (reason.status === 404 || reason.status === 405)

const connect = Effect.fnUntraced(function* (server: McpServer, offer: ProtocolVersion, options: Options) {
  const scope = yield* Scope.fork(yield* Effect.scope)
  const opened = attempt(server, Handshake.make(offer, Asks.capabilitiesOf(options.host)), options).pipe(
    Effect.timeoutOrElse({
      duration: server.connectTimeout,
      orElse: () => Effect.fail(new McpClientError({ reason: new TimeoutError({ operation: "initialize" }) }))
    }),
    Scope.provide(scope),
    Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
  )
  return yield* Metrics.make(server)(offer === "2026-07-28" ? "server/discover" : "initialize", opened)
})

const attempt = Effect.fnUntraced(function* (server: McpServer, handshake: Handshake.Handshake, options: Options) {
  const limits = yield* Limits
  let session: Session | undefined
  const calls = ServerProgress.make()
  const requests = yield* ServerRequests.make(options.host)
  const onNotification: JsonRpc.OnNotification = (method, params) => {
    const change = /^notifications\/(tools|resources|prompts)\/list_changed$/.exec(method)?.[1]
    if (method === "notifications/cancelled") return requests.cancelled(params)
    if (method === "notifications/resources/updated") return Effect.sync(() => options.onUpdate(params))
    if (change !== "tools" && change !== "resources" && change !== "prompts") return calls.receive(method, params)
    const forget = session === undefined ? Effect.void : forgetChanged(session.lists, change)
    return Effect.map(forget, () => options.onChange(change))
  }
  const wire = yield* openWire(server, handshake, options, { calls, requests, onNotification })
  const skippedTools = new Map<string, string>()
  const leaveOut: Listing.LeaveOut = (list, names, why) => {
    if (list === "tools") for (const name of names) skippedTools.set(name, why)
    const few = firstOf(names)
    return Effect.logWarning(`MCP server '${server.name}' has ${list} that are left out (${few}): ${why}`)
  }
  const traced = RequestTrace.over(wire.transport)
  const tasks = TaskCalls.over(Handshake.over(calls.over(traced), handshake), handshake)
  const agreed = ReadableResult.over(requests.over(tasks), options.clean)
  const transport = Listing.bounded(agreed, limits.fetchedBytes, leaveOut)
  const client = yield* McpClient.make({ ...Handshake.clientInfo, timeout: server.connectTimeout }).pipe(
    Effect.provideService(McpClient.Transport, transport)
  )
  const { capabilities, offer, version } = handshake
  if (announcesChanges(capabilities) || Object.keys(handshake.announced).length > 0)
    yield* Effect.forkScoped(wire.listen)
  const measure = Metrics.make(server)
  yield* Metrics.inSession(server, version ?? offer)
  const templates = Listing.resourceTemplates(transport, server.connectTimeout)
  session = {
    client,
    protocolVersion: version ?? offer,
    capabilities,
    lists: {
      tools: yield* listOf(
        Effect.suspend(() => {
          skippedTools.clear()
          return Effect.flatMap(measure("tools/list", client.listTools()), (tools) => usableTools(tools, leaveOut))
        })
      ),
      resources: yield* listOf(measure("resources/list", client.listResources())),
      resourceTemplates: yield* listOf(
        "resources" in capabilities ? measure("resources/templates/list", templates) : Effect.succeed([])
      ),
      prompts: yield* listOf(measure("prompts/list", client.listPrompts()))
    },
    skippedTools,
    measure,
    send: (method, params) => measure(method, Listing.sent(transport, method, params, server.timeout)),
    isOpen: wire.isOpen,
    probe: wire.probe
  }
  return session
})

const forgetChanged = (lists: Session["lists"], change: Change): Effect.Effect<void> =>
  change === "resources" ? Effect.andThen(lists.resources.forget, lists.resourceTemplates.forget) : lists[change].forget

const listOf = <A>(read: Effect.Effect<ReadonlyArray<A>, McpClientError>): Effect.Effect<List<A>> =>
  Effect.map(
    Effect.cachedInvalidateWithTTL(read, (exit) => (Exit.isSuccess(exit) ? Duration.infinity : Duration.zero)),
    ([get, forget]) => ({ get, forget })
  )

const announcesChanges = (capabilities: Readonly<Record<string, unknown>>): boolean =>
  Object.values(capabilities).some((capability) => isRecord(capability) && own(capability, "listChanged") === true)

interface Wire extends Pick<Session, "isOpen" | "probe"> {
  readonly transport: McpClient.Transport
  /** Receives the server's announcements, in revisions that need a request for them. */
  readonly listen: Effect.Effect<void>
}

interface Listeners {
  readonly calls: ServerProgress.Calls
  readonly requests: ServerRequests.Requests
  readonly onNotification: JsonRpc.OnNotification
}

const openWire = Effect.fnUntraced(function* (
  server: McpServer,
  handshake: Handshake.Handshake,
  { httpClient, onErrorOutput }: Options,
  { calls, onNotification, requests }: Listeners
): Effect.fn.Return<Wire, McpClientError, ChildProcessSpawner | Scope.Scope> {
  const badHeader = isHttp(server) ? Http.badHeader(server) : undefined
  if (badHeader !== undefined) {
    const description = `the header '${badHeader}' of MCP server '${server.name}' is not a valid HTTP header`
    return yield* new McpClientError({ reason: new ConfigurationError({ description }) })
  }
  const receivers = { onNotification, onRequest: requests.receive }
  switch (server.transport) {
    case "stdio":
      return overLine(yield* Stdio.open(server, receivers, onErrorOutput), handshake)
    case "custom":
      return overLine(yield* CustomLine.open(server, receivers), handshake)
    case "sse":
      return overLine(yield* LegacySse.open(server, httpClient(server), receivers), handshake)
    case "streamable_http": {
      const http = yield* StreamableHttp.open(server, httpClient(server), receivers, handshake, calls, requests)
      return { ...http, isOpen: Effect.succeed(true), probe: readArrivals }
    }
  }
})

const overLine = ({ isOpen, notify, request }: JsonRpc.Line, handshake: Handshake.Handshake): Wire => {
  const modern = handshake.offer === "2026-07-28"
  const transport: McpClient.Transport = {
    "~effect/ai/McpClient/Transport": "~effect/ai/McpClient/Transport",
    protocol: modern ? McpProtocol.v2026_07_28 : McpProtocol.v2025_11_25,
    request,
    notify,
    isCallable: () => true
  }
  const listen = modern ? Effect.ignore(request(Handshake.subscription)) : Effect.void
  return { transport, isOpen, listen, probe: modern ? readArrivals : pingOver(request) }
}

// Pings a server. One that does not respond to unknown requests is pinged only once.
const pingOver = (request: JsonRpc.Line["request"]): Effect.Effect<void, McpClientError> => {
  let answers = true
  let nextId = 1
  return Effect.suspend(() => {
    if (!answers) return readArrivals
    const ping = { jsonrpc: "2.0", id: `ping-${nextId++}`, method: "ping" } as const
    return Effect.map(Effect.timeoutOption(request(ping), "250 millis"), (answer) => {
      answers = Option.isSome(answer)
    })
  })
}

// A closed socket is detected once the event loop has read it.
const readArrivals = Effect.repeat(
  Effect.callback<void>((resume) => {
    const turn = setImmediate(() => resume(Effect.void))
    return Effect.sync(() => clearImmediate(turn))
  }),
  { times: 2 }
)
