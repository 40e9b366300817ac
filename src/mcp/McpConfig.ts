/**
 * Describes MCP servers and how to reach them.
 *
 * A config is YAML text or a plain value: `servers` maps names to commands or addresses. The configs of other programs
 * are also accepted: `mcpServers` instead of `servers`, `type` instead of `transport`, `disabled`, `${env:NAME}` and
 * `${NAME:-default}`; their other settings of a server, such as `autoApprove`, grant it nothing here. A time has a
 * unit, as in `30 seconds`. `${NAME}` is replaced in the values after parsing, so a variable never changes the
 * structure; a variable that is not set is an error. Commands do not pass through a shell: their words become arguments
 * unchanged. Headers, environment entries and arguments with a variable are redacted; messages show a command, a folder
 * and an address as written.
 *
 * @since 0.1.0
 */

import * as ConfigProvider from "effect/ConfigProvider"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import * as Bounds from "../kit/bounds.ts"
import { isOwnKey, nearestKey } from "../kit/fault.ts"
import { shorten, visible } from "../kit/text.ts"
import * as PlainValue from "../kit/yaml.ts"
import { ConfigInvalid } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import * as ServerEntry from "./internal/serverEntry.ts"

export { ConfigInvalid }
export {
  /**
   * Infers the transport of a server that does not name it: `stdio` with a command, `sse` if a whole segment of the
   * address's path is `sse`, otherwise `streamable_http`.
   *
   * @category getters
   * @since 0.1.0
   */
  inferTransport
} from "./internal/serverEntry.ts"

type Entry = typeof ServerEntry.Entry.Type

/**
 * A transport. `streamable_http` may be written `http` in a config; `custom` exists only in code.
 *
 * @category models
 * @since 0.1.0
 */
export type Transport = "stdio" | "sse" | "streamable_http" | "custom"

/**
 * A revision of the protocol.
 *
 * @category models
 * @since 0.1.0
 */
export type ProtocolVersion = Entry["protocolVersion"]

/** The settings of every server, whatever its transport. */
interface Settings extends Pick<
  Entry,
  "protocolVersion" | "connectTimeout" | "timeout" | "progressTimeout" | "trustAnnotations" | "elicitation"
> {
  readonly name: string
  readonly sampling?: SamplingSettings
}

/**
 * Limits on the replies that a server may request from the model of a run.
 *
 * @category models
 * @since 0.1.0
 */
export type SamplingSettings = typeof ServerEntry.SamplingEntry.Type

/**
 * A server that is started as a child process.
 *
 * @category models
 * @since 0.1.0
 */
export interface StdioServer extends Settings, Pick<Entry, "env" | "inheritNetwork"> {
  readonly transport: "stdio"
  readonly command: string
  /** An argument that holds the value of a variable is redacted. */
  readonly args: ReadonlyArray<string | Redacted.Redacted<string>>
  readonly cwd: string | undefined
  /** The command and the folder before variables are replaced, for messages. */
  readonly written: Pick<StdioServer, "command" | "cwd">
}

/**
 * Settings of the OAuth client for the authorization server of an MCP server.
 *
 * @category models
 * @since 0.1.0
 */
export type OAuthSettings = typeof ServerEntry.OAuthEntry.Type

/**
 * A server that is reached over HTTP.
 *
 * @category models
 * @since 0.1.0
 */
export interface HttpServer extends Settings, Pick<Entry, "headers" | "oauth"> {
  readonly transport: "sse" | "streamable_http"
  /** Whether the transport was inferred from the address, so that the other HTTP transport may be tried. */
  readonly inferred: boolean
  readonly url: string
  /** The address before variables are replaced, for messages. */
  readonly written: Pick<HttpServer, "url">
  /** The values of the variables in the address. */
  readonly variables: ReadonlyArray<Redacted.Redacted<string>>
}

/**
 * A two-way connection that carries JSON-RPC messages as texts.
 *
 * @category models
 * @since 0.1.0
 */
export interface Channel {
  /** Sends one message. Fails if it was not sent, or may not have been. */
  readonly send: (message: string) => Effect.Effect<void, unknown>
  /** Emits the messages of the server, each as one text. Ends or fails with the connection. It is run only once. */
  readonly received: Stream.Stream<string, unknown>
}

/**
 * A server that is reached by a transport of your own.
 *
 * @category models
 * @since 0.1.0
 */
export interface CustomServer extends Settings {
  readonly transport: "custom"
  /** Opens a connection until the scope closes. Run again after a connection has ended. */
  readonly open: Effect.Effect<Channel, unknown, Scope.Scope>
}

/**
 * A server that a config can describe.
 *
 * @category models
 * @since 0.1.0
 */
export type DescribedServer = StdioServer | HttpServer

/**
 * One server.
 *
 * @category models
 * @since 0.1.0
 */
export type McpServer = DescribedServer | CustomServer

/**
 * The servers by name, in the order in which they were written.
 *
 * @category models
 * @since 0.1.0
 */
export interface McpConfig<out Server extends McpServer = McpServer> {
  readonly servers: ReadonlyMap<string, Server>
}

/**
 * Options of reading a config.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly env?: { readonly [name: string]: string | undefined } | undefined
}

/**
 * Creates a server that is reached by a transport of your own. Settings and their defaults are those of a server in a
 * config file: `connectTimeout` is `Limits.headersTimeout`, `timeout` is `Limits.skillTimeout`, and `progressTimeout` is
 * `Limits.taskTimeout`.
 *
 * @example
 * const server = yield* McpConfig.custom("inbox", openSocket, { timeout: "10 seconds" })
 * const Hub = McpHub.layer(McpConfig.make(server))
 *
 * @category constructors
 * @since 0.1.0
 */
export const custom = (
  name: string,
  open: CustomServer["open"],
  options: {
    readonly protocolVersion?: ProtocolVersion | undefined
    readonly connectTimeout?: Duration.Input | undefined
    readonly timeout?: Duration.Input | undefined
    readonly progressTimeout?: Duration.Input | undefined
    readonly trustAnnotations?: boolean | undefined
    readonly elicitation?: boolean | undefined
    readonly sampling?: SamplingSettings | undefined
  } = {}
): Effect.Effect<CustomServer> =>
  Effect.map(Limits, ({ headersTimeout, skillTimeout, taskTimeout }) => ({
    name,
    transport: "custom",
    open,
    protocolVersion: options.protocolVersion ?? "2025-11-25",
    connectTimeout: Duration.fromInputUnsafe(options.connectTimeout ?? headersTimeout),
    timeout: Duration.fromInputUnsafe(options.timeout ?? skillTimeout),
    progressTimeout: Duration.fromInputUnsafe(options.progressTimeout ?? taskTimeout),
    trustAnnotations: options.trustAnnotations ?? false,
    elicitation: options.elicitation ?? true,
    ...(options.sampling === undefined ? {} : { sampling: options.sampling })
  }))

/**
 * Creates a config of servers. Of two with the same name, the last one wins.
 *
 * @category constructors
 * @since 0.1.0
 */
export const make = <Server extends McpServer>(...servers: ReadonlyArray<Server>): McpConfig<Server> => ({
  servers: new Map(servers.map((server) => [server.name, server]))
})

/**
 * Reads YAML text. Fails with the first problem.
 *
 * Accepts plain YAML only: no tags, no prototype keys, no duplicate keys, at most 10,000 nodes with all aliases
 * expanded.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromYaml = (text: string, options?: Options): Effect.Effect<McpConfig<DescribedServer>, ConfigInvalid> =>
  Effect.flatMap(inspectYaml(text, options), whole)

/**
 * Reads a value of the same shape as the YAML.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromValue = (
  value: unknown,
  options?: Options
): Effect.Effect<McpConfig<DescribedServer>, ConfigInvalid> =>
  Effect.flatMap(
    decode((bounds) => PlainValue.plain(value, bounds), options),
    whole
  )

/**
 * Reads YAML text server by server: each one is decoded, or has an error. Fails only if there is no server.
 *
 * @category constructors
 * @since 0.1.0
 */
export const inspectYaml = (
  text: string,
  options?: Options
): Effect.Effect<ReadonlyMap<string, Result.Result<DescribedServer, ConfigInvalid>>, ConfigInvalid> =>
  decode((bounds) => PlainValue.parse(text, bounds), options)

type Decoded = ReadonlyMap<string, Result.Result<DescribedServer, ConfigInvalid>>

const whole = (decoded: Decoded): Effect.Effect<McpConfig<DescribedServer>, ConfigInvalid> =>
  Effect.fromResult(
    Result.map(Result.all([...decoded.values()]), (servers) => ({
      servers: new Map(servers.map((server) => [server.name, server]))
    }))
  )

const decode = Effect.fnUntraced(function* (
  read: (bounds: PlainValue.Bounds) => Result.Result<PlainValue.Plain, string>,
  options: Options | undefined
): Effect.fn.Return<Decoded, ConfigInvalid> {
  const document = yield* Effect.mapError(
    Effect.fromResult(read({ nodes: Bounds.yamlNodes, depth: Bounds.jsonDepth })),
    (problem) => new ConfigInvalid({ path: "", reason: `MCP config cannot be read: ${problem}` })
  )
  const { isForeign, servers } = yield* Effect.fromResult(declaredIn(document))
  const { env } = options ?? {}
  const provider = env === undefined ? yield* ConfigProvider.ConfigProvider : ConfigProvider.fromUnknown(env)
  const decoded = new Map<string, Result.Result<DescribedServer, ConfigInvalid>>()
  for (const [name, value] of servers) {
    if (name === "" || name.length > 128) {
      return yield* invalid("the name of an MCP server must have 1 to 128 characters")
    }
    const reading = ServerEntry.decode(name, value, isForeign)
    const server = yield* Effect.result(Effect.provideService(reading, ConfigProvider.ConfigProvider, provider))
    if (Result.isFailure(server)) decoded.set(name, Result.fail(server.failure))
    else if (server.success !== undefined) decoded.set(name, Result.succeed(server.success))
  }
  return decoded.size === 0 ? yield* invalid("all MCP servers of the config are disabled") : decoded
})

const invalid = (reason: string) => new ConfigInvalid({ path: "servers", reason })

/**
 * Finds the servers of a document: under `servers`, or under `mcpServers`. A file with the latter may belong to another
 * program, or be an agent, so it may hold anything else.
 */
const declaredIn = (document: PlainValue.Plain) => {
  const keys = document instanceof Map ? document : new Map<string, PlainValue.Plain>()
  const isForeign = keys.has("mcpServers")
  const servers = keys.get(isForeign ? "mcpServers" : "servers")
  const unknown = isForeign ? undefined : [...keys.keys()].find((key) => key !== "servers" && !isOwnKey(key))
  const name = unknown === undefined ? "" : visible(shorten(unknown, 60))
  if (isForeign && keys.has("servers"))
    return Result.fail(invalid("the MCP config has both 'servers:' and 'mcpServers:'"))
  if (!(servers instanceof Map) || servers.size === 0) {
    const other = unknown === undefined ? "" : `, not under '${name}:'`
    return Result.fail(
      invalid(`MCP config must declare at least one server under '${isForeign ? "mcpServers" : "servers"}:'${other}`)
    )
  }
  if (unknown !== undefined) {
    const reason = `'${name}' is not a known key${nearestKey(unknown, ["servers", "mcpServers"])}`
    return Result.fail(new ConfigInvalid({ path: name, reason }))
  }
  return Result.succeed({ servers, isForeign })
}
