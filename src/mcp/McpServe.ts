/**
 * Serves skills, or an agent, as an MCP server.
 *
 * Every registered skill is a tool, over standard streams or Streamable HTTP; `agent` turns an agent into a skill. The
 * tools follow the registry. Over HTTP the server listens on loopback, requires a token that is new at every start, and
 * rejects web pages by their headers.
 *
 * @since 0.1.0
 */

import * as McpServer from "effect/ai/McpServer"
import * as ByteSize from "effect/ByteSize"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import * as HttpRouter from "effect/http/HttpRouter"
import type { ServeError } from "effect/http/HttpServerError"
import * as Layer from "effect/Layer"
import { LogToStderr } from "effect/Logger"
import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Stdio } from "effect/Stdio"
import * as Stream from "effect/Stream"
import type { Agent } from "../Agent.ts"
import * as Bounds from "../kit/bounds.ts"
import * as Secrets from "../kit/secrets.ts"
import type * as Kernel from "../Kernel.ts"
import { ConfigInvalid } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import * as MediaStore from "../MediaStore.ts"
import * as Skill from "../Skill.ts"
import type { SkillRegistry } from "../SkillRegistry.ts"
import { protocols } from "./internal/announced.ts"
import { clientInfo } from "./internal/handshake.ts"
import * as LocalServer from "./internal/localServer.ts"
import * as InputLines from "./internal/inputLines.ts"
import * as ServeAgent from "./internal/serveAgent.ts"
import * as ServerStream from "./internal/serverStream.ts"
import * as ServeTools from "./internal/serveTools.ts"

/**
 * Options of a server.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Default: `kernai`. */
  readonly name?: string | undefined
  /** Default: the version of kernai. */
  readonly version?: string | undefined
  /** Instructions a client may pass to its model. */
  readonly instructions?: string | undefined
  /** The skills that become tools. Default: all of them. */
  readonly skills?: "all" | ReadonlyArray<string> | undefined
  /**
   * Resources, prompts, completions and tools of your own, registered with `effect/ai/McpServer`. Its `notifications`
   * are sent to clients; those about a changed resource only to its subscribers.
   *
   * @since 0.1.0
   */
  readonly registrations?: Layer.Layer<never, never, McpServer.McpServer> | undefined
}

/**
 * Options of an HTTP server.
 *
 * @category models
 * @since 0.1.0
 */
export interface HttpOptions extends Options {
  /** Default: loopback. Clients use this address. A wildcard address such as `0.0.0.0` needs `hosts`. */
  readonly host?: string | undefined
  /** Default: any free port. */
  readonly port?: number | undefined
  /** Default: `/mcp`. */
  readonly path?: `/${string}` | undefined
  /**
   * The bearer token of clients. `none` is allowed on loopback only, and admits no request that came through a proxy.
   * Default: a new random token.
   */
  readonly token?: Redacted.Redacted<string> | "none" | undefined
  /** Further values of the `Host` header. A name without a port stands for all ports. */
  readonly hosts?: ReadonlyArray<string> | undefined
  /** Web pages that may send requests besides those of the server's own address, as values of the `Origin` header. */
  readonly origins?: ReadonlyArray<string> | undefined
  /** Maximum number of sessions. Beyond that, the least recently used one ends. Default: 10,000. */
  readonly sessions?: number | undefined
}

/**
 * The address of a server, and the token its clients send.
 *
 * @category models
 * @since 0.1.0
 */
export interface Endpoint {
  readonly url: string
  readonly token: Redacted.Redacted<string> | undefined
}

/**
 * The endpoint of the server of `layerHttp`.
 *
 * @category services
 * @since 0.1.0
 */
export class McpServe extends Context.Service<McpServe, Endpoint>()("kernai/mcp/McpServe") {}

/**
 * Creates a skill from an agent. Its input is a text, and each call is a run of its own. Questions of the run to a
 * person, such as to confirm a call, go through the caller (`Skill.CallScope.ask`): a server asks the person of its
 * client. If no person can be asked, the call fails with `RunPaused`.
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
    execute: ({ input }, scope) => ServeAgent.run(agent, input, scope)
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
  Effect.gen(function* () {
    const streams = yield* Stdio
    const ended = yield* Deferred.make<void>()
    const end = Deferred.succeed(ended, undefined)
    const stdin = streams.stdin.pipe(
      InputLines.messages,
      Stream.onEnd(end),
      // Treats a broken input as ended, since the transport would read it again and wait.
      Stream.catchCause(() => Stream.fromEffectDrain(end))
    )
    const tools = yield* ServeTools.make(Effect.void)
    const server = McpServer.layerStdio(settings(options, tools, undefined)).pipe(
      Layer.provide(Layer.succeed(Stdio, { ...streams, stdin })),
      Layer.orDie
    )
    // The transport interrupts the fiber that built it when it ends, so it gets a fiber of its own.
    yield* Effect.forkScoped(Layer.launch(server))
    yield* Deferred.await(ended)
    yield* tools.idle
  }).pipe(Effect.provideService(LogToStderr, true))

/**
 * Serves Streamable HTTP until the scope closes, and returns once the server is listening.
 *
 * Tools are removed with their registry, and a registry provided to this effect with `Effect.provide` closes with the
 * effect. `layerHttp` keeps both together. Fails with `ConfigInvalid` for a server without a token that is not on
 * loopback.
 *
 * @category running
 * @since 0.1.0
 */
export const http = Effect.fnUntraced(function* (
  options: HttpOptions = {}
): Effect.fn.Return<Endpoint, ServeError | ConfigInvalid, SkillRegistry | Scope.Scope> {
  const limits = yield* Limits
  const { host = "127.0.0.1", path = "/mcp" } = options
  if (options.token === "none" && !["127.0.0.1", "::1", "localhost"].includes(host)) {
    const reason = `a server on '${host}' needs a token: it is not loopback`
    return yield* new ConfigInvalid({ path: "token", reason })
  }
  const token = options.token === "none" ? undefined : (options.token ?? (yield* Secrets.random))
  const stream = ServerStream.make(path)
  const tools = yield* ServeTools.make(stream.announce("notifications/tools/list_changed", {}))
  const built = yield* Layer.build(
    McpServer.layerHttp({
      ...settings(options, tools, stream),
      path,
      allowSessionTermination: true
    }).pipe(Layer.provideMerge(HttpRouter.layer), Layer.orDie)
  )
  const gracefulShutdownTimeout = Duration.times(limits.cleanUpTimeout, 1 / 5)
  const server = yield* LocalServer.listening({ host, port: options.port ?? 0, gracefulShutdownTimeout })
  const port = "port" in server.address ? server.address.port : 0
  const name = host.includes(":") ? `[${host}]` : host
  const url = `http://${name}:${port}${path}`
  const routes = stream.over(Context.get(built, HttpRouter.HttpRouter).asHttpEffect())
  const own = [name, "127.0.0.1", "localhost", "[::1]"].map((host) => `${host}:${port}`)
  const app = LocalServer.admitted(LocalServer.bounded(routes, url, options.sessions ?? 10_000), {
    own: own.map((host) => host.toLowerCase()),
    hosts: options.hosts,
    origins: options.origins,
    token
  })
  yield* server.serve(Effect.provideService(app, MaxBodySize, ByteSize.bytes(Bounds.frameLength)))
  return { url, token }
})

/**
 * Serves on the standard streams in the background of a program, which continues when the input ends. Use `stdio` for a
 * program that must end with its input, as clients expect.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerStdio = (options?: Options): Layer.Layer<never, never, SkillRegistry | Stdio> =>
  Layer.effectDiscard(Effect.forkScoped(stdio(options)))

/**
 * Serves Streamable HTTP for the lifetime of the layer, which provides the endpoint.
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

const settings = (
  { instructions, name, registrations, skills = "all", version }: Options,
  tools: ServeTools.Tools,
  stream: ServerStream.ServerStream | undefined
) => {
  const offered = McpServer.visibility(
    ({ method, target }) => Effect.sync(() => !method.startsWith("tools/") || tools.isOffered(target)),
    { global: true }
  )
  const own = registrations === undefined ? Layer.empty : announced(registrations, stream)
  const registered = Layer.mergeAll(Layer.effectDiscard(tools.register(skills)), offered, own)
  return {
    name: name ?? clientInfo.name,
    version: version ?? clientInfo.version,
    instructions,
    protocols: protocols({ hasMore: registrations !== undefined, stream }),
    registrations: Layer.provide(registered, MediaStore.layerMemory)
  }
}

/** Sends the notifications of registrations over the stream of an HTTP server, too. */
const announced = (
  registrations: NonNullable<Options["registrations"]>,
  stream: ServerStream.ServerStream | undefined
): typeof registrations =>
  stream === undefined
    ? registrations
    : Layer.provide(
        registrations,
        Layer.effect(
          McpServer.McpServer,
          Effect.map(McpServer.McpServer, (server) => ServerStream.announcing(server, stream))
        )
      )
