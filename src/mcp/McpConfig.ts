/**
 * Which MCP servers there are and how each is reached.
 *
 * A config is YAML text or a plain value: `servers`, a mapping of names to
 * commands or addresses. A time has a unit, as in `30 seconds`. `${NAME}` is
 * replaced in the values once they are parsed, so what a variable holds can
 * never change the structure (W-16), and a name that is not set is an error.
 * Commands are lists of words: no shell ever sees them (S-1). Headers,
 * environment entries and arguments with a variable in them are redacted. A
 * command, an address and a folder stay text; messages show a command and a
 * folder as they were written, and of an address no part of its path that holds
 * what a variable does (S-7).
 *
 * @since 0.1.0
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Bounds from "../internal/base/bounds.ts"
import { ConfigInvalid } from "../KernelError.ts"
import { Limits } from "../Limits.ts"
import { type Expanded, expander, type Fields, isFields, Reader } from "./internal/fields.ts"
import { some } from "./internal/nameList.ts"
import * as Words from "./internal/commandLine.ts"
import { quote } from "../internal/base/text.ts"
import * as PlainValue from "../internal/base/yaml.ts"

export {
  /**
   * A config that cannot be used (BP-171).
   *
   * @category errors
   * @since 0.1.0
   */
  ConfigInvalid
} from "../KernelError.ts"

/**
 * How messages travel. `streamable_http` is also written `http` in a config.
 *
 * @category models
 * @since 0.1.0
 */
export type Transport = "stdio" | "sse" | "streamable_http"

/**
 * The revisions of the protocol kernai speaks.
 *
 * @category models
 * @since 0.1.0
 */
export type ProtocolVersion = "2024-11-05" | "2025-03-26" | "2025-06-18" | "2025-11-25" | "2026-07-28"

/**
 * What every server may say about itself, whatever its transport.
 *
 * @category models
 * @since 0.1.0
 */
export interface CommonSettings {
  readonly name: string
  /** The revision to offer first; older ones follow when the server declines it. Default: 2025-11-25. */
  readonly protocolVersion: ProtocolVersion
  /** How long the server may take to be ready, and to list what it has. Default: `Limits.headersTimeout`. */
  readonly connectTimeout: Duration.Duration
  /** How long one call may take. Default: `Limits.skillTimeout`. */
  readonly timeout: Duration.Duration
  /** Take the server's word for which of its tools may be called twice (AC-15). */
  readonly trustAnnotations: boolean
}

/**
 * A server started as a child process.
 *
 * @category models
 * @since 0.1.0
 */
export interface StdioServer extends CommonSettings {
  readonly transport: "stdio"
  readonly command: string
  /** A word that holds the value of a variable is redacted. */
  readonly args: ReadonlyArray<string | Redacted.Redacted<string>>
  /** What the process sees of an environment, besides PATH, HOME and LANG. */
  readonly env: ReadonlyMap<string, Redacted.Redacted<string>>
  readonly cwd: string | undefined
  /** How messages show the command and the folder where these hold variables: with them not replaced. */
  readonly written?: Pick<StdioServer, "command" | "cwd"> | undefined
}

/**
 * How kernai introduces itself to a server's authorization server.
 *
 * @category models
 * @since 0.1.0
 */
export interface OAuthSettings {
  /** A client registered by hand. Without it kernai registers itself where the server allows that. */
  readonly clientId: string | undefined
  readonly clientSecret: Redacted.Redacted<string> | undefined
  /** What to ask for; what a call needs besides is asked for as well. Default: what the server asks for. */
  readonly scopes: ReadonlyArray<string> | undefined
  /** The port on loopback the browser comes back to, when the client was registered with one; 0 is any. */
  readonly redirectPort: number
}

/**
 * A server reached by HTTP.
 *
 * @category models
 * @since 0.1.0
 */
export interface HttpServer extends CommonSettings {
  readonly transport: "sse" | "streamable_http"
  /** The transport was guessed from the address, so another may be tried. */
  readonly inferred: boolean
  readonly url: string
  /** The address with its variables not replaced, when it has any. */
  readonly written?: Pick<HttpServer, "url"> | undefined
  /** What the variables of the address hold. */
  readonly variables?: ReadonlyArray<Redacted.Redacted<string>> | undefined
  readonly headers: ReadonlyMap<string, Redacted.Redacted<string>>
  readonly oauth: OAuthSettings
}

/**
 * One server.
 *
 * @category models
 * @since 0.1.0
 */
export type McpServer = StdioServer | HttpServer

/**
 * The servers by name, in the order they were written.
 *
 * @category models
 * @since 0.1.0
 */
export interface McpConfig {
  readonly servers: ReadonlyMap<string, McpServer>
}

/**
 * Each server by name, or what is wrong with it.
 *
 * @category models
 * @since 0.1.0
 */
export type Decoded = ReadonlyMap<string, Result.Result<McpServer, ConfigInvalid>>

/**
 * Where `${NAME}` is looked up. Default: the ConfigProvider.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options {
  readonly env?: { readonly [name: string]: string | undefined } | undefined
}

/**
 * Reads YAML text.
 *
 * Plain YAML only: no tags, no prototype keys, no key twice, at most
 * 10,000 nodes with all aliases expanded (S-3).
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromYaml = (text: string, options?: Options): Effect.Effect<McpConfig, ConfigInvalid> =>
  Effect.flatMap(inspectYaml(text, options), whole)

/**
 * Reads a value of the same shape as the YAML.
 *
 * @category constructors
 * @since 0.1.0
 */
export const fromValue = Effect.fnUntraced(function* (value: unknown, options?: Options) {
  const document = PlainValue.plain(value, { nodes: Bounds.yamlNodes, depth: Bounds.jsonDepth })
  return yield* whole(yield* decode(yield* readable(document), options))
})

/**
 * Reads YAML text server by server: what is wrong with one says nothing about the others.
 *
 * Fails only when there are no servers to be found.
 *
 * @category constructors
 * @since 0.1.0
 */
export const inspectYaml = Effect.fnUntraced(function* (
  text: string,
  options?: Options
): Effect.fn.Return<Decoded, ConfigInvalid> {
  const document = PlainValue.parse(text, { nodes: Bounds.yamlNodes, depth: Bounds.jsonDepth })
  return yield* decode(yield* readable(document), options)
})

/**
 * Says how a server is reached that does not say it itself (BP-172).
 *
 * An address is legacy SSE only when a whole segment of its path is `sse`, so
 * that a host or a file that merely holds these letters is not (W-17).
 *
 * @category combinators
 * @since 0.1.0
 */
export const inferTransport = (server: {
  readonly command?: string | null | undefined
  readonly url?: string | null | undefined
}): Transport => {
  if (typeof server.command === "string") return "stdio"
  const path = server.url?.replace(/^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]*/, "").replace(/[?#].*$/s, "") ?? ""
  return path.split("/").some((segment) => segment === "sse") ? "sse" : "streamable_http"
}

// ---------------------------------------------------------------- private

const versions: ReadonlySet<string> = new Set<ProtocolVersion>([
  "2024-11-05",
  "2025-03-26",
  "2025-06-18",
  "2025-11-25",
  "2026-07-28"
])

/** What the entry of a server may say. */
const keys: ReadonlySet<string> = new Set(
  "transport protocolVersion connectTimeout timeout trustAnnotations command args env cwd url headers oauth".split(" ")
)

const isVersion = (text: string): text is ProtocolVersion => versions.has(text)

const invalid = (path: string, reason: string) => new ConfigInvalid({ path, reason })

const readable = (document: Result.Result<PlainValue.Plain, string>) =>
  Effect.fromResult(Result.mapError(document, (problem) => invalid("", `MCP config cannot be read: ${problem}`)))

/** All servers, or the first thing that is wrong. */
const whole = Effect.fnUntraced(function* (decoded: Decoded): Effect.fn.Return<McpConfig, ConfigInvalid> {
  const servers = new Map<string, McpServer>()
  for (const [name, server] of decoded) servers.set(name, yield* Effect.fromResult(server))
  return { servers }
})

const decode = Effect.fnUntraced(function* (document: PlainValue.Plain, options: Options | undefined) {
  const declared = isFields(document) ? document.get("servers") : undefined
  if (!isFields(declared) || declared.size === 0) {
    const other = isFields(document) && document.has("mcpServers") ? ", not under 'mcpServers:'" : ""
    return yield* invalid("servers", `MCP config must declare at least one server under 'servers:'${other}`)
  }
  const expand = yield* expander(options?.env)
  const servers = new Map<string, Result.Result<McpServer, ConfigInvalid>>()
  for (const [name, value] of declared) {
    if (name === "" || name.length > 128) {
      return yield* invalid("servers", "the name of an MCP server must have 1 to 128 characters")
    }
    const fields: Fields | undefined = value === null ? new Map() : isFields(value) ? value : undefined
    const odd = Array.from(fields?.keys() ?? []).filter((key) => !keys.has(key))
    if (odd.length > 0) {
      yield* Effect.logWarning(`MCP server ${quote(name)}: nothing is known of ${some(odd)}`)
    }
    servers.set(
      name,
      fields === undefined
        ? Result.fail(invalid(`servers.${name}`, `MCP server '${name}' must be a mapping`))
        : yield* Effect.result(decodeServer(name, new Reader(name, fields, expand)))
    )
  }
  return servers
})

const decodeServer = Effect.fnUntraced(function* (
  name: string,
  read: Reader
): Effect.fn.Return<McpServer, ConfigInvalid> {
  const command = (yield* read.raw("command")) || undefined
  const address = yield* read.text("url")
  const url = address?.value || undefined
  const given = (yield* read.text("transport"))?.value
  const transport = given ?? inferTransport({ command, url })
  switch (transport) {
    case "stdio":
      return yield* decodeStdio(name, read, command)
    case "sse":
      return yield* decodeHttp(name, read, "sse", address, given === undefined)
    case "http":
    case "streamable_http":
      return yield* decodeHttp(name, read, "streamable_http", address, given === undefined)
    default:
      return yield* read.invalid(
        "transport",
        `unknown MCP transport for server '${name}': ${JSON.stringify(transport)}`
      )
  }
})

const decodeCommon = Effect.fnUntraced(function* (name: string, read: Reader) {
  const limits = yield* Limits
  const version = (yield* read.text("protocolVersion"))?.value ?? "2025-11-25"
  if (!isVersion(version)) {
    return yield* read.invalid(
      "protocolVersion",
      `unknown MCP protocol version for server '${name}': ${JSON.stringify(version)}; known: ${[...versions].join(", ")}`
    )
  }
  const settings: CommonSettings = {
    name,
    protocolVersion: version,
    connectTimeout: yield* read.duration("connectTimeout", limits.headersTimeout),
    timeout: yield* read.duration("timeout", limits.skillTimeout),
    trustAnnotations: yield* read.flag("trustAnnotations")
  }
  return settings
})

const decodeStdio = Effect.fnUntraced(function* (name: string, read: Reader, line: string | undefined) {
  const missing = read.invalid("command", `stdio server '${name}' missing 'command'`)
  if (line === undefined) return yield* missing
  // With `args` the command is one word as it stands; without, it is a line to be split (BP-171).
  const listed = yield* read.list("args")
  const words = listed === undefined ? Words.split(line) : [line, ...listed]
  if (words === undefined) {
    return yield* read.invalid("command", `the 'command' of MCP server '${name}' has a quote that is never closed`)
  }
  const [program, ...args] = yield* Effect.forEach(words, (word, index) =>
    read.expand(word, listed !== undefined && index > 0 ? "args" : "command")
  )
  if (program === undefined || program.value === "") return yield* missing
  if ([program, ...args].some((word) => word.value.includes("\0"))) {
    return yield* read.invalid("command", `the 'command' of MCP server '${name}' holds a NUL character`)
  }
  const cwd = yield* read.text("cwd")
  const server: StdioServer = {
    ...(yield* decodeCommon(name, read)),
    transport: "stdio",
    command: program.value,
    args: args.map((arg) => (arg.secret ? Redacted.make(arg.value) : arg.value)),
    env: yield* read.environment(),
    cwd: cwd?.value,
    ...(program.secret || cwd?.secret === true ? { written: { command: program.written, cwd: cwd?.written } } : {})
  }
  return server
})

const decodeHttp = Effect.fnUntraced(function* (
  name: string,
  read: Reader,
  transport: "sse" | "streamable_http",
  address: Expanded | undefined,
  inferred: boolean
) {
  const url = address?.value
  if (address === undefined || !url) {
    return yield* read.invalid("url", `${transport === "sse" ? "sse" : "http"} server '${name}' missing 'url'`)
  }
  if (!isHttpUrl(url)) {
    return yield* read.invalid(
      "url",
      `the 'url' of MCP server '${name}' must be an http or https address without a user name or password`
    )
  }
  const oauth = yield* read.section("oauth")
  const secret = yield* oauth.text("clientSecret")
  const scopes = yield* oauth.list("scopes")
  const expanded = yield* Effect.forEach(scopes ?? [], (scope) => oauth.expand(scope, "scopes"))
  const server: HttpServer = {
    ...(yield* decodeCommon(name, read)),
    transport,
    inferred,
    url,
    ...(address.secret
      ? { written: { url: address.written }, variables: address.values.map((value) => Redacted.make(value)) }
      : {}),
    headers: yield* read.secrets("headers"),
    oauth: {
      clientId: (yield* oauth.text("clientId"))?.value,
      clientSecret: secret === undefined ? undefined : Redacted.make(secret.value),
      scopes: scopes === undefined ? undefined : expanded.map(({ value }) => value),
      redirectPort: yield* oauth.port("redirectPort")
    }
  }
  return server
})

const isHttpUrl = (text: string): boolean => {
  const url = URL.parse(text)
  if (url === null || url.username !== "" || url.password !== "") return false
  return url.protocol === "http:" || url.protocol === "https:"
}
