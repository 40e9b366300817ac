/**
 * Connects the MCP servers of an application with one connection each.
 *
 * Tools become skills of the registry, and the protocol block `mcp` reaches everything a server offers. A server that
 * is unavailable does not fail the layer: the hub keeps trying, and its tools appear once it responds. A tool whose
 * definition changes is hidden until it is approved. When the scope closes, skills, protocol, processes and sockets are
 * removed.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import type * as HttpClient from "effect/http/HttpClient"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type { ChildProcessSpawner } from "effect/process/ChildProcessSpawner"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import type { JsonObject } from "../kit/json.ts"
import { latest } from "../kit/streams.ts"
import * as Read from "../kit/files.ts"
import { ConfigInvalid, McpError, type ToolNameConflict } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import type { ProtocolRegistry } from "../ProtocolRegistry.ts"
import type * as Skill from "../Skill.ts"
import type { SkillRegistry } from "../SkillRegistry.ts"
import { readPage } from "./internal/callTool.ts"
import * as Catalog from "./internal/catalog.ts"
import { follow, HubServer } from "./internal/hubServer.ts"
import * as HubHost from "./internal/hubHost.ts"
import * as McpBlock from "./internal/mcpBlock.ts"
import { isHttp } from "./internal/serverEntry.ts"
import * as ToolSkills from "./internal/toolSkills.ts"
import * as McpConfig from "./McpConfig.ts"
import * as McpConnection from "./McpConnection.ts"
import type * as McpProtocol from "./McpProtocol.ts"
import * as OAuth from "./OAuth.ts"
import { layerMemory as pinsInMemory, ToolPins } from "./ToolPins.ts"
import { layerMemory as tokensInMemory, TokenStore } from "./TokenStore.ts"

/**
 * A tool that is not shown.
 *
 * @category models
 * @since 0.1.0
 */
export interface HiddenTool {
  readonly server: string
  /** Its name on the server. */
  readonly tool: string
  /**
   * `changed`: its definition is no longer the accepted one. `repeated`: another tool has the same name. `excess`: it
   * is new, and so many tools of this server were accepted already that a person has to approve further ones.
   */
  readonly reason: "changed" | "repeated" | "excess"
  /** The server's current description of it, on one line of at most `Limits.descriptionLength` UTF-16 units. */
  readonly description: string
  /** The hash of its current definition, which `approve` accepts. */
  readonly hash: string
}

/**
 * The status of one server.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServerStatus {
  readonly name: string
  readonly transport: McpConfig.Transport
  readonly state: "connected" | "unavailable" | "needs-sign-in"
  /** The error, if it is not connected. */
  readonly problem: McpError | undefined
  readonly info: McpConnection.ServerInfo | undefined
  /** The names of its skills by the names of its tools. */
  readonly skills: ReadonlyMap<string, string>
  readonly hidden: ReadonlyArray<HiddenTool>
}

/**
 * A page for the user as its server wrote it. Treat it as hostile, and show it only in a sandbox.
 *
 * @category models
 * @since 0.1.0
 */
export interface Page {
  readonly uri: string
  readonly mimeType: string
  readonly html: string
  /** The requests of the page, such as hosts it wants to reach. */
  readonly meta: JsonObject
}

/**
 * The operations of a hub.
 *
 * @category models
 * @since 0.1.0
 */
export interface McpHubShape {
  /** The status of every server, in the order of the config. */
  readonly status: Effect.Effect<ReadonlyArray<ServerStatus>>
  /**
   * Emits the current status, then every change, until the layer closes. A slow reader misses older values, never the
   * newest.
   */
  readonly changes: Stream.Stream<ReadonlyArray<ServerStatus>>
  /** Answers requests of the `mcp` block. */
  readonly catalog: McpProtocol.Catalog
  /** Reads the tools of a server again, and connects it if necessary. */
  readonly refresh: (server: string) => Effect.Effect<void, McpError>
  /** Reads the page of a `ui_resource` from the server that made it. */
  readonly readPage: (server: string, uri: string) => Effect.Effect<Page, McpError>
  /**
   * Completes a partial argument, like `McpConnection.complete`.
   *
   * @since 0.1.0
   */
  readonly complete: (
    server: string,
    ...asked: Parameters<McpConnection.McpConnection["complete"]>
  ) => Effect.Effect<McpConnection.Completion, McpError>
  /**
   * Emits whenever a resource of a server has changed, while the stream is read.
   *
   * @since 0.1.0
   */
  readonly watch: (server: string, uri: string) => Stream.Stream<void, McpError>
  /** Accepts a hidden tool in this definition. Returns false if it is not hidden, or has changed again. */
  readonly approve: (tool: HiddenTool) => Effect.Effect<boolean>
  /** Signs in to a server. `show` receives the address for the browser. `timeout` defaults to 5 minutes. */
  readonly signIn: <E, R>(
    server: string,
    show: (url: string) => Effect.Effect<unknown, E, R>,
    options?: { readonly timeout?: Duration.Input | undefined }
  ) => Effect.Effect<void, McpError | E, R>
  /** Deletes the tokens of a server. */
  readonly signOut: (server: string) => Effect.Effect<void, McpError>
}

/**
 * The MCP servers of an application.
 *
 * @category services
 * @since 0.1.0
 */
export class McpHub extends Context.Service<McpHub, McpHubShape>()("kernai/mcp/McpHub") {}

/**
 * Options of a hub.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Registers tools as skills. Default: true. */
  readonly skills?: boolean | undefined
  /**
   * Registers the protocol block `mcp`. Default: true. With the block, an agent with a list of skills reaches only the
   * tools of that list. If it lists `mcp` among its protocols and none of these tools, it reaches all of them. Without
   * `skills`, the block reaches all tools.
   */
  readonly protocol?: boolean | undefined
  /**
   * Shows a person the address to grant the further scopes that a call needs, while the call waits (`OAuth.Options`).
   * Without it, such a call fails with reason `needs_sign_in`, and the next `signIn` asks for the missing scopes.
   * Reading the tools of a server never asks a person.
   */
  readonly show?: ((url: string, server: string) => Effect.Effect<unknown>) | undefined
  /**
   * Answers the questions of servers to a person, while the call waits. Without it, the calling run pauses with the
   * question (`Skill.CallScope.ask`), and calls outside of runs decline it.
   *
   * @since 0.1.0
   */
  readonly elicit?: Elicit | undefined
  /**
   * Maximum time that `elicit` may take in one call. Default: 5 minutes.
   *
   * @since 0.1.0
   */
  readonly patience?: Duration.Input | undefined
}

/**
 * Asks a person on behalf of a server.
 *
 * @category models
 * @since 0.1.0
 */
export type Elicit = (asking: Skill.Asking, server: string) => Effect.Effect<Skill.Reply, Skill.AnswerPending>

/**
 * Connects servers and registers their tools.
 *
 * The layer is built when every server has responded or failed. Sign-ins and pins are stored in the `TokenStore` and
 * the `ToolPins` in context, otherwise in memory.
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (
  config: McpConfig.McpConfig,
  options?: Options
): Layer.Layer<
  McpHub,
  ToolNameConflict,
  SkillRegistry | ProtocolRegistry | ChildProcessSpawner | HttpClient.HttpClient
> => Layer.effect(McpHub, make(config, options))

/**
 * Connects the servers of a YAML file, given by its path, or of a value of the same shape.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerConfig = (
  source: string | { readonly [key: string]: unknown },
  options?: Options & McpConfig.Options
): Layer.Layer<
  McpHub,
  ConfigInvalid | ToolNameConflict,
  SkillRegistry | ProtocolRegistry | ChildProcessSpawner | HttpClient.HttpClient | FileSystem.FileSystem
> => Layer.unwrap(Effect.map(readConfig(source, options), (config) => layer(config, options)))

/**
 * Reads a config like `layerConfig`. Errors of a file name the file, which may have at most `Limits.fetchedBytes`
 * bytes.
 *
 * @category constructors
 * @since 0.1.0
 */
export const readConfig = Effect.fnUntraced(function* (
  source: string | { readonly [key: string]: unknown },
  options?: McpConfig.Options
): Effect.fn.Return<McpConfig.McpConfig<McpConfig.DescribedServer>, ConfigInvalid, FileSystem.FileSystem> {
  if (typeof source !== "string") return yield* McpConfig.fromValue(source, options)
  const { fetchedBytes } = yield* Limits
  const text = yield* Effect.mapError(
    FileSystem.FileSystem.use((fs) => Read.text(fs, source, fetchedBytes)),
    (refusal) => {
      const reason = typeof refusal === "string" ? `is ${refusal}` : `cannot be read (${refusal.reason._tag})`
      return new ConfigInvalid({ path: source, reason: `'${source}' ${reason}` })
    }
  )
  return yield* Effect.mapError(
    McpConfig.fromYaml(text, options),
    ({ path, reason }) => new ConfigInvalid({ path, reason: `${reason} (in '${source}')` })
  )
})

const make = Effect.fnUntraced(function* (config: McpConfig.McpConfig, options: Options = {}) {
  const limits = yield* Limits
  const { protocol = true, show, skills = true } = options
  const servers = yield* connectAll(config, show, {
    elicit: options.elicit,
    patience: Duration.fromInputUnsafe(options.patience ?? "5 minutes")
  })
  const all = [...servers.values()]
  const { nameOf, publish, status } = yield* ToolSkills.make(all, skills)
  const refresh = (server: HubServer): Effect.Effect<void, McpError> =>
    server.read.pipe(
      Effect.tapError(() => publish),
      Effect.flatMap((changed) => (changed ? publish : Effect.void))
    )
  // All lists are read before any tool is registered, so that names do not depend on which server answers first.
  yield* Effect.forEach(all, ({ read }) => Effect.ignore(read), { concurrency: "unbounded", discard: true })
  for (const { problem } of all) if (problem !== undefined) yield* Effect.logWarning(problem.message)
  yield* publish
  for (const server of all) server.publish = publish
  yield* Effect.forEach(all, (server) => Effect.forkScoped(follow(server, refresh(server))), { discard: true })
  const source = { servers, refresh, limits }
  if (protocol) yield* McpBlock.register(source, skills ? nameOf : undefined)

  const find = Effect.fnUntraced(function* (name: string): Effect.fn.Return<HubServer, McpError> {
    const server = servers.get(name)
    if (server !== undefined) return server
    const detail = `there is no MCP server '${name}' in the config`
    return yield* new McpError({ server: name, reason: "not_found", detail })
  })
  const findOAuth = Effect.fnUntraced(function* (name: string): Effect.fn.Return<OAuth.OAuth, McpError> {
    const { oauth } = yield* find(name)
    if (oauth !== undefined) return oauth
    const detail = `MCP server '${name}' is not reached by HTTP: there is no sign-in`
    return yield* new McpError({ server: name, reason: "config", detail })
  })
  const readAnew = (name: string) =>
    Effect.flatMap(find(name), (server) => Effect.andThen(server.connection.forget, refresh(server)))
  return McpHub.of({
    status: SubscriptionRef.get(status),
    changes: yield* latest(status),
    catalog: Catalog.make(source),
    refresh: readAnew,
    readPage: (name, uri) => Effect.flatMap(find(name), (server) => readPage(server, uri)),
    complete: (name, ...asked) => Effect.flatMap(find(name), ({ connection }) => connection.complete(...asked)),
    watch: (name, uri) => Stream.unwrap(Effect.map(find(name), ({ connection }) => connection.watch(uri))),
    approve: Effect.fnUntraced(function* ({ hash, server, tool }) {
      const approved = yield* servers.get(server)?.approve(tool, hash) ?? Effect.succeed(false)
      if (approved) yield* publish
      return approved
    }),
    signIn: (name, show, options) =>
      Effect.flatMap(findOAuth(name), (oauth) => Effect.andThen(oauth.signIn(show, options), readAnew(name))),
    signOut: (name) => Effect.flatMap(findOAuth(name), (oauth) => oauth.signOut)
  })
})

const connectAll = Effect.fnUntraced(function* (
  config: McpConfig.McpConfig,
  show: Options["show"],
  attendant: HubHost.Attendant
) {
  const pins = Option.getOrUndefined(yield* Effect.serviceOption(ToolPins)) ?? (yield* ownPins)
  const tokens = Option.getOrUndefined(yield* Effect.serviceOption(TokenStore)) ?? (yield* ownTokens)
  // Slow servers are shut down in parallel.
  const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
  const servers = new Map<string, HubServer>()
  for (const server of config.servers.values()) {
    const ask = show === undefined ? undefined : (url: string) => show(url, server.name)
    const oauth = !isHttp(server)
      ? undefined
      : yield* Effect.provideService(OAuth.make(server, { show: ask }), TokenStore, tokens)
    const host = HubHost.make(server, attendant, {})
    const connecting = McpConnection.make(server, { credentials: oauth?.credentials, host })
    servers.set(server.name, new HubServer(yield* Scope.provide(connecting, scope), oauth, pins, attendant))
  }
  return servers
})

const ownPins = Effect.provide(ToolPins, pinsInMemory)
const ownTokens = Effect.provide(TokenStore, tokensInMemory)
