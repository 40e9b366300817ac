/**
 * The other way round: skills, or an agent, as an MCP server.
 *
 * Every registered skill is a tool, over standard streams or Streamable HTTP;
 * `agent` makes a skill of an agent. Tools come and go with the registry. Over
 * HTTP the server stands on loopback, wants a token that is new at every start,
 * and refuses web pages by their headers (S-13).
 *
 * @since 0.1.0
 */

import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpServer from "effect/ai/McpServer"
import * as ByteSize from "effect/ByteSize"
import * as Context from "effect/Context"
import * as SecureRandom from "effect/crypto/SecureRandom"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Base64Url from "effect/encoding/Base64Url"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import type { ServeError } from "effect/http/HttpServerError"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { LogToStderr } from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Stdio } from "effect/Stdio"
import * as Stream from "effect/Stream"
import * as Bounds from "../internal/base/bounds.ts"
import type { Agent } from "../Agent.ts"
import { type Admission, loopbackHosts, refusal } from "./internal/admission.ts"
import * as Kernel from "../Kernel.ts"
import { ConfigInvalid } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import * as MediaStore from "../MediaStore.ts"
import * as Skill from "../Skill.ts"
import type { SkillRegistry } from "../SkillRegistry.ts"
import { clientInfo } from "./internal/handshake.ts"
import { listening } from "./internal/listening.ts"
import * as Tools from "./internal/serveTools.ts"
import * as Sessions from "./internal/serverSessions.ts"

/**
 * How a server introduces itself, and what it offers.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Default: `kernai`. */
  readonly name?: string | undefined
  /** Default: the version of kernai. */
  readonly version?: string | undefined
  /** What a client may tell its model about the whole server. */
  readonly instructions?: string | undefined
  /** The skills that become tools; all of them unless listed. */
  readonly skills?: "all" | ReadonlyArray<string> | undefined
}

/**
 * Where a server stands, and who may ask it.
 *
 * @category models
 * @since 0.1.0
 */
export interface HttpOptions extends Options {
  /** Default: loopback. Clients ask by this address: one that stands for all, such as `0.0.0.0`, needs `hosts`. */
  readonly host?: string | undefined
  /** Default: any free port. */
  readonly port?: number | undefined
  /** Default: `/mcp`. */
  readonly path?: `/${string}` | undefined
  /** What clients send as bearer token; `none` is for loopback only. Default: a new one. */
  readonly token?: Redacted.Redacted<string> | "none" | undefined
  /** Further names of the server as they stand in a `Host` header, with their port. */
  readonly hosts?: ReadonlyArray<string> | undefined
  /** Web pages that may ask, as they stand in an `Origin` header. */
  readonly origins?: ReadonlyArray<string> | undefined
  /** How many sessions are kept: of more, the one that was used longest ago ends. Default: 10,000. */
  readonly sessions?: number | undefined
}

/**
 * A server that is up.
 *
 * @category models
 * @since 0.1.0
 */
export interface Endpoint {
  readonly url: string
  readonly token: Redacted.Redacted<string> | undefined
}

/**
 * Where the server of `layerHttp` stands: clients need its token and, when the port was any free one, its address.
 *
 * @category services
 * @since 0.1.0
 */
export class McpServe extends Context.Service<McpServe, Endpoint>()("kernai/mcp/McpServe") {}

/**
 * An agent as a skill: it is given a text, runs, and answers. Each call is a run of its own.
 *
 * @category constructors
 * @since 0.1.0
 */
export const agent = <Output, S extends Skill.AnySkill<unknown>, R = never>(
  agent: Agent<Output, S, R>
): Skill.AnySkill<Kernel.Kernel | R> =>
  Skill.make(agent.name.replace(/[^A-Za-z0-9_-]/gu, "_").slice(0, 64), {
    description: agent.description ?? "An agent: tell it what to do, and it answers",
    input: Schema.Struct({ input: Schema.String.annotate({ description: "What the agent is to do" }) }),
    execute: ({ input }) => Effect.map(Kernel.run(agent, input), (result) => result.text)
  })

/**
 * Serves on the standard streams of this process until the input ends. Logs go to the error stream.
 *
 * @example
 * const program = McpServe.stdio({ name: "letters" }).pipe(Effect.scoped, Effect.provide([Skills, NodeStdio.layer]))
 * NodeRuntime.runMain(program)
 *
 * @category running
 * @since 0.1.0
 */
export const stdio = (options: Options = {}): Effect.Effect<void, never, SkillRegistry | Stdio | Scope.Scope> =>
  Effect.provideService(overStreams(options), LogToStderr, true)

/**
 * Serves Streamable HTTP for the time of the scope.
 *
 * The tools are there as long as the registry is: provided with `Effect.provide`, a registry ends with this effect,
 * which is done when the server is up. `layerHttp` keeps both together.
 *
 * @category running
 * @since 0.1.0
 */
export const http = Effect.fnUntraced(function* (
  options: HttpOptions = {}
): Effect.fn.Return<Endpoint, ServeError | ConfigInvalid, SkillRegistry | Scope.Scope> {
  const limits = yield* Limits
  const host = options.host ?? "127.0.0.1"
  if (options.token === "none" && !loopback.has(host)) {
    return yield* new ConfigInvalid({
      path: "token",
      reason: `a server on '${host}' needs a token: it is not loopback`
    })
  }
  const token = options.token === "none" ? undefined : (options.token ?? (yield* newToken))
  const tools = yield* Tools.make
  const path = options.path ?? "/mcp"
  const built = yield* Layer.build(
    McpServer.layerHttp({
      ...about(options),
      path,
      allowedOrigins: options.origins,
      allowSessionTermination: true,
      registrations: registrations(tools, options)
    }).pipe(Layer.provideMerge(HttpRouter.layer), Layer.orDie)
  )
  const server = yield* listening({
    host,
    port: options.port ?? 0,
    gracefulShutdownTimeout: Duration.times(limits.cleanUpTimeout, 1 / 5)
  })
  const port = "port" in server.address ? server.address.port : 0
  const name = `${host.includes(":") ? `[${host}]` : host}:${port}`
  const routes = Context.get(built, HttpRouter.HttpRouter).asHttpEffect()
  const app = guarded(Sessions.bounded(routes, `http://${name}${path}`, options.sessions ?? 10_000), {
    hosts: new Set([name, ...loopbackHosts(port), ...(options.hosts ?? [])].map((host) => host.toLowerCase())),
    origins: new Set(options.origins),
    token: token === undefined ? undefined : Redacted.value(token)
  })
  yield* server.serve(Effect.provideService(app, MaxBodySize, ByteSize.bytes(Bounds.frameLength)))
  return { url: `http://${name}${path}`, token }
})

/**
 * `stdio` as a layer, for a program that does something else as well: when the input ends, it goes on without the server.
 * A program that is to end with its input, as its client expects, runs `stdio`: under `Layer.launch` it would stay.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerStdio = (options?: Options): Layer.Layer<never, never, SkillRegistry | Stdio> =>
  Layer.effectDiscard(Effect.forkScoped(stdio(options)))

/**
 * `http` as a layer, which tells where it stands.
 *
 * @example
 * const Server = McpServe.layerHttp({ port: 8080 }).pipe(Layer.provide(SkillRegistry.layer(search)))
 * const { token, url } = yield* McpServe.McpServe
 *
 * @category layers
 * @since 0.1.0
 */
export const layerHttp = (options?: HttpOptions): Layer.Layer<McpServe, ServeError | ConfigInvalid, SkillRegistry> =>
  Layer.effect(McpServe, http(options))

// ---------------------------------------------------------------- private

const overStreams = Effect.fnUntraced(function* (options: Options) {
  const streams = yield* Stdio
  const ended = yield* Deferred.make<void>()
  const stdin = streams.stdin.pipe(
    within(Bounds.frameLength),
    Stream.onEnd(Deferred.succeed(ended, undefined)),
    // An input that breaks is over: reading it again would only wait.
    Stream.catchCause(() => Stream.fromEffectDrain(Deferred.succeed(ended, undefined)))
  )
  const tools = yield* Tools.make
  const server = McpServer.layerStdio({ ...about(options), registrations: registrations(tools, options) }).pipe(
    Layer.provide(Layer.succeed(Stdio, { ...streams, stdin })),
    Layer.orDie
  )
  // The transport interrupts the fiber it was made in when it ends: that one must not be the caller's.
  yield* Effect.forkScoped(Layer.launch(server))
  yield* Deferred.await(ended)
  yield* tools.idle
})

const about = ({ instructions, name, version }: Options) => ({
  name: name ?? clientInfo.name,
  version: version ?? clientInfo.version,
  instructions,
  protocols: [
    McpProtocol.v2026_07_28,
    McpProtocol.v2025_11_25,
    McpProtocol.v2025_06_18,
    McpProtocol.v2025_03_26,
    McpProtocol.v2024_11_05
  ] as const
})

const registrations = (tools: Tools.Tools, { skills = "all" }: Options) => {
  const there = McpServer.visibility(
    ({ method, target }) => Effect.sync(() => !method.startsWith("tools/") || tools.isThere(target)),
    { global: true }
  )
  return Layer.merge(Layer.effectDiscard(tools.register(skills)), there).pipe(Layer.provide(MediaStore.layerMemory))
}

const loopback: ReadonlySet<string> = new Set(["127.0.0.1", "::1", "localhost"])

const newToken = SecureRandom.SecureRandom.use((random) => random.randomBytes(32)).pipe(
  Effect.map((bytes) => Redacted.make(Base64Url.encode(bytes))),
  Effect.provide(SecureRandom.layerWebCrypto)
)

/** Looks at the headers of a request before anything else does. */
const guarded = <E, R>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  admission: Admission
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest, (request) => {
    const refused = refusal(request, admission)
    if (refused === undefined) return app
    const { reason, status } = refused
    const headers = { connection: "close", ...(status === 401 ? { "www-authenticate": "Bearer" } : {}) }
    return Effect.succeed(HttpServerResponse.text(reason, { status, headers }))
  })

/** Fails when a line is longer than a message may be. */
const within =
  (limit: number) =>
  <E, R>(input: Stream.Stream<Uint8Array, E, R>) =>
    Stream.mapAccumArrayEffect(
      input,
      () => 0,
      (open, chunks) => {
        let length = open
        for (const chunk of chunks) {
          const end = chunk.lastIndexOf(10)
          length = end === -1 ? length + chunk.length : chunk.length - end - 1
        }
        return length > limit ? Effect.fail("the line is too long") : Effect.succeed([length, chunks] as const)
      }
    )
