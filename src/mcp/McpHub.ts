/**
 * MCP servers for agents: one connection each, used in two ways.
 *
 * Tools become skills of the registry (AC-12, AC-13), and everything a server
 * has is behind the protocol block `mcp` (BP-170). A server that is away fails
 * nobody: it is told in `status`, tried again, and its tools come when it does.
 * A tool that changes is hidden until it is approved (S-8). When the scope
 * closes, skills, protocol, processes and sockets are gone (R-15, W-32).
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
import { jsonObject } from "../internal/base/json.ts"
import { latest } from "../internal/base/streams.ts"
import * as Read from "../internal/base/files.ts"
import { ConfigInvalid, McpError, type ToolNameConflict } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import * as Protocol from "../Protocol.ts"
import { ProtocolRegistry } from "../ProtocolRegistry.ts"
import { SkillRegistry } from "../SkillRegistry.ts"
import * as Call from "./internal/callTool.ts"
import * as Catalog from "./internal/catalog.ts"
import { documentation } from "./internal/documentation.ts"
import * as Follow from "./internal/listChanges.ts"
import * as Names from "./internal/toolNames.ts"
import { Station } from "./internal/mcpServer.ts"
import * as ToolSkills from "./internal/toolSkills.ts"
import * as McpConfig from "./McpConfig.ts"
import * as McpConnection from "./McpConnection.ts"
import * as McpProtocol from "./McpProtocol.ts"
import * as OAuth from "./OAuth.ts"
import { layerMemory as pinsInMemory, ToolPins } from "./ToolPins.ts"
import { layerMemory as tokensInMemory, TokenStore } from "./TokenStore.ts"

/**
 * A tool that is not shown, and why.
 *
 * @category models
 * @since 0.1.0
 */
export interface HiddenTool {
  readonly server: string
  /** The name it has on its server. */
  readonly tool: string
  /** `excess`: it is new, and so much was accepted of this server already that a person has to accept it. */
  readonly reason: "changed" | "repeated" | "excess"
  /** What the server says of it now. */
  readonly description: string
  /** Of the definition as it is now: approving it approves exactly this one. */
  readonly hash: string
}

/**
 * How one server is.
 *
 * @category models
 * @since 0.1.0
 */
export interface ServerStatus {
  readonly name: string
  readonly transport: McpConfig.Transport
  readonly state: "connected" | "unavailable" | "needs-sign-in"
  /** Why it is not connected. */
  readonly problem: McpError | undefined
  readonly info: McpConnection.ServerInfo | undefined
  /** The names of its skills, by the names its tools have there. */
  readonly skills: ReadonlyMap<string, string>
  readonly hidden: ReadonlyArray<HiddenTool>
}

export type {
  /**
   * A page for the user, as its server wrote it: hostile until a sandbox holds it (CP-5).
   *
   * @category models
   * @since 0.1.0
   */
  Page
} from "./internal/callTool.ts"

/**
 * What a hub can be asked.
 *
 * @category models
 * @since 0.1.0
 */
export interface McpHubShape {
  /** Every server, in the order of the config. */
  readonly status: Effect.Effect<ReadonlyArray<ServerStatus>>
  /**
   * The status now and whenever it changed, until the layer closes: a server came or went, its tools changed, one was
   * hidden. Whoever is slow misses old ones, never the newest.
   */
  readonly changes: Stream.Stream<ReadonlyArray<ServerStatus>>
  /** What the `mcp` block is answered from. */
  readonly catalog: McpProtocol.Catalog
  /** Asks a server, connected or not, for what it has now. */
  readonly refresh: (server: string) => Effect.Effect<void, McpError>
  /** The page of a `ui_resource`, from the server that made it (CP-5). */
  readonly readPage: (server: string, uri: string) => Effect.Effect<Call.Page, McpError>
  /** Accepts a tool as it is described here. False when it is not hidden, or changed again meanwhile. */
  readonly approve: (tool: HiddenTool) => Effect.Effect<boolean>
  /**
   * Signs in to a server that asks for it; `show` gets the address for the browser. Default of `timeout`: 5 minutes.
   */
  readonly signIn: <E, R>(
    server: string,
    show: (url: string) => Effect.Effect<unknown, E, R>,
    options?: { readonly timeout?: Duration.Input | undefined }
  ) => Effect.Effect<void, McpError | E, R>
  /** Forgets the sign-in. */
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
 * How agents may use the servers. Default: in both ways.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  /** Tools as skills. */
  readonly skills?: boolean | undefined
  /**
   * The protocol block `mcp`. An agent with a list of skills reaches by it the tools of that list alone, unless it
   * lists `mcp` among its protocols and none of these tools: then it was given the block as a whole. Without
   * `skills` tools have no names that a list could hold, and the block reaches them all.
   */
  readonly protocol?: boolean | undefined
  /**
   * Shows a person the address to allow what a call needs beyond the sign-in, while the call waits (`OAuth.Options`).
   * Without it such a call fails with `needs_sign_in`, and the next `signIn` asks for what it lacked; so it is with the
   * list of a server's tools, which the hub also reads where nobody waits.
   */
  readonly show?: ((url: string, server: string) => Effect.Effect<unknown>) | undefined
}

/**
 * Connects servers and registers what they have.
 *
 * The layer is there when every server answered or failed to. Sign-ins and pins
 * are kept by the `TokenStore` and the `ToolPins` in context, else in memory.
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
 * The same from a YAML file, named by its path, or from a value of the same shape.
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
 * Reads a config as `layerConfig` does.
 *
 * @category constructors
 * @since 0.1.0
 */
export const readConfig = Effect.fnUntraced(function* (
  source: string | { readonly [key: string]: unknown },
  options?: McpConfig.Options
): Effect.fn.Return<McpConfig.McpConfig, ConfigInvalid, FileSystem.FileSystem> {
  if (typeof source !== "string") return yield* McpConfig.fromValue(source, options)
  const { fetchedBytes } = yield* Limits
  const text = yield* Effect.mapError(
    FileSystem.FileSystem.use((fs) => Read.text(fs, source, fetchedBytes)),
    (refusal) => {
      const reason = typeof refusal === "string" ? `is ${refusal}` : `cannot be read (${refusal.reason._tag})`
      return new ConfigInvalid({ path: source, reason: `'${source}' ${reason}` })
    }
  )
  const config = McpConfig.fromYaml(text, options)
  return yield* Effect.mapError(
    config,
    ({ path, reason }) => new ConfigInvalid({ path, reason: `${reason} (in '${source}')` })
  )
})

const make = Effect.fnUntraced(function* (config: McpConfig.McpConfig, options: Options = {}) {
  const limits = yield* Limits
  const { protocol: isSpoken = true, show, skills: areSkills = true } = options
  const stations = yield* connectAll(config, show)
  const all = [...stations.values()]
  const { nameOf, publish, status } = yield* ToolSkills.make(all, areSkills)

  const refresh = (station: Station): Effect.Effect<void, McpError> =>
    station.read.pipe(
      Effect.tapError(() => publish),
      Effect.flatMap((changed) => (changed ? publish : Effect.void))
    )

  // All are asked before any is registered, so that names do not depend on who answers first.
  yield* Effect.forEach(all, (station) => Effect.ignore(station.read), { concurrency: "unbounded", discard: true })
  for (const { problem } of all) if (problem !== undefined) yield* Effect.logWarning(problem.message)
  yield* publish
  yield* Effect.forEach(all, (station) => Effect.forkScoped(Follow.follow(station, refresh(station))), {
    discard: true
  })

  const catalog = Catalog.make(stations, refresh, limits)
  if (isSpoken) {
    const catalogFor = ({ refusal }: Protocol.ProtocolScope) =>
      Catalog.make(stations, refresh, limits, (server, tool) => refusal(nameOf(server, tool) ?? ""))
    yield* registerProtocol(all, limits, areSkills ? catalogFor : () => catalog, ({ name, server }) => {
      if (!areSkills) return undefined
      const holder = all.find(
        (station) =>
          (server === undefined ? station.problem === undefined : station.name === server) &&
          station.shown.some(({ tool }) => tool.name === name)
      )
      // A tool nobody has yet may be there when it is called: it is judged by the name it would have, or by none's.
      return holder === undefined ? Names.plainly({ server: server ?? "", tool: name }) : nameOf(holder.name, name)
    })
  }

  const find = (server: string): Effect.Effect<Station, McpError> => {
    const station = stations.get(server)
    return station === undefined ? Effect.fail(unknownServer(server)) : Effect.succeed(station)
  }
  const findOAuth = (server: string): Effect.Effect<readonly [Station, OAuth.OAuth], McpError> =>
    Effect.flatMap(find(server), (station) =>
      station.oauth === undefined ? Effect.fail(noSignIn(server)) : Effect.succeed([station, station.oauth] as const)
    )

  return McpHub.of({
    status: SubscriptionRef.get(status),
    changes: yield* latest(status),
    catalog,
    refresh: (server) =>
      Effect.flatMap(find(server), (station) => Effect.andThen(station.connection.forget, refresh(station))),
    readPage: (server, uri) => Effect.flatMap(find(server), (station) => Call.readPage(station, uri)),
    approve: ({ hash, server, tool }) =>
      Effect.tap(stations.get(server)?.approve(tool, hash) ?? Effect.succeed(false), (approved) =>
        approved ? publish : Effect.void
      ),
    signIn: (server, show, options) =>
      Effect.flatMap(findOAuth(server), ([station, oauth]) =>
        Effect.andThen(oauth.signIn(show, options), refresh(station))
      ),
    signOut: (server) => Effect.flatMap(findOAuth(server), ([, oauth]) => oauth.signOut)
  })
})

const connectAll = Effect.fnUntraced(function* (config: McpConfig.McpConfig, show: Options["show"]) {
  const pins = Option.getOrUndefined(yield* Effect.serviceOption(ToolPins)) ?? (yield* ownPins)
  const tokens = Option.getOrUndefined(yield* Effect.serviceOption(TokenStore)) ?? (yield* ownTokens)
  // Servers that do not want to end take their time together, not one after the other.
  const scope = yield* Scope.fork(yield* Effect.scope, "parallel")
  const stations = new Map<string, Station>()
  for (const server of config.servers.values()) {
    const ask = show === undefined ? undefined : (url: string) => show(url, server.name)
    const oauth =
      server.transport === "stdio"
        ? undefined
        : yield* Effect.provideService(OAuth.make(server, { show: ask }), TokenStore, tokens)
    const connecting = McpConnection.make(server, { credentials: oauth?.credentials })
    const connection = yield* Scope.provide(connecting, scope)
    stations.set(server.name, new Station(connection, oauth, pins))
  }
  return stations
})

const ownPins = Effect.provide(ToolPins, pinsInMemory)
const ownTokens = Effect.provide(TokenStore, tokensInMemory)

/** The protocol block: a tool that fails is an error block, whoever says so (BP-179). */
const registerProtocol = Effect.fnUntraced(function* (
  stations: ReadonlyArray<Station>,
  limits: Limits,
  catalogFor: (scope: Protocol.ProtocolScope) => McpProtocol.Catalog,
  skillOf: (call: McpProtocol.ToolCall) => string | undefined
) {
  const registry = yield* ProtocolRegistry
  const protocol = Protocol.make("mcp", {
    documentation: documentation(stations.map(({ name }) => name)),
    // A request may be for any of them.
    timeout: stations.reduce((most, station) => Duration.max(most, station.timeout(limits)), limits.cleanUpTimeout),
    handle: (block, scope) =>
      Effect.flatMap(McpProtocol.answer(catalogFor(scope), block.content), (answer) => Call.succeeded("", answer)),
    skillOf: ({ content }) => {
      const call = McpProtocol.toolCallOf(content)
      const name = call === undefined ? undefined : skillOf(call)
      return call === undefined || name === undefined ? undefined : { name, input: jsonObject(call.input) }
    }
  })
  yield* Effect.catchTag(registry.register(protocol), "DefinitionInvalid", Effect.die)
})

const unknownServer = (server: string) =>
  new McpError({ server, reason: "not_found", detail: `there is no MCP server '${server}' in the config` })

const noSignIn = (server: string) =>
  new McpError({ server, reason: "config", detail: `MCP server '${server}' is a local process: there is no sign-in` })
