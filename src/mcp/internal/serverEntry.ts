/**
 * Decodes one server of a config. Variables are replaced after parsing, so a value with quotes or line breaks stays one
 * text.
 */

import * as ConfigProvider from "effect/ConfigProvider"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as JsonPointer from "effect/JsonPointer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaIssue from "effect/SchemaIssue"
import * as Struct from "effect/Struct"
import { isHttpAddress } from "../../kit/discreetHttp.ts"
import { shorten, visible } from "../../kit/text.ts"
import * as Fault from "../../kit/fault.ts"
import { nearestKey } from "../../kit/fault.ts"
import type { Plain } from "../../kit/yaml.ts"
import { ConfigInvalid } from "../../KernelError.ts"
import { Limits } from "../../Limits.ts"
import type { DescribedServer, HttpServer, McpServer, Transport } from "../McpConfig.ts"

/** A text with its variables replaced, its original form, and the values of its variables. */
const Filled = Schema.Struct({ text: Schema.String, written: Schema.String, variables: Schema.Array(Schema.String) })
type Filled = typeof Filled.Type

/** Replaces every `${NAME}` by its value in the ConfigProvider. Values are not searched again. */
const fill = Effect.fnUntraced(function* (written: string): Effect.fn.Return<Filled, string> {
  const provider = yield* ConfigProvider.ConfigProvider
  const variable = yield* Variable
  const values = new Map<string, string>()
  for (const [, name = "", otherwise] of written.matchAll(variable)) {
    const value = (yield* Effect.orElseSucceed(provider.load([name]), () => undefined))?.value
    if (value !== undefined && value !== "") values.set(name, value)
    else if (otherwise === undefined) return yield* Effect.fail(`asks for \${${name}}, but ${name} is not set`)
  }
  const text = written.replace(variable, (_, name: string, otherwise = "") => values.get(name) ?? otherwise)
  if (text.includes("\0")) return yield* Effect.fail("must not hold a NUL character")
  return { text, written, variables: [...values.values()] }
})

const Variable = Context.Reference("kernai/mcp/Variable", { defaultValue: () => /\$\{([A-Z0-9_]+)\}/g })

/** Variables in the forms of other programs: `${env:NAME}`, and `${NAME:-default}` for one that may be missing. */
const foreignVariable = /\$\{(?:env:)?([A-Z0-9_]+)(?::-([^}]*))?\}/g

const misfit = (message: string) => new SchemaIssue.InvalidValue({ message })

/** Adds a message to a schema: the end of a sentence that begins with the key. */
const must = <S extends Schema.Top>(message: string, schema: S) =>
  schema.pipe(Schema.catchDecoding(() => Effect.fail(misfit(message))))

const Scalar = must("must be text", Schema.Union([Schema.String, Schema.Finite, Schema.Boolean]))

/** A scalar with its variables replaced. */
const filled = <S extends Schema.Top>(to: S, make: (filled: Filled) => S["Type"]) =>
  Scalar.pipe(
    Schema.decodeTo(Schema.toType(to), {
      decode: SchemaGetter.transformEffect((scalar: string | number | boolean) =>
        Effect.mapBoth(fill(String(scalar)), { onSuccess: make, onFailure: misfit })
      ),
      encode: SchemaGetter.forbiddenEncoding
    })
  )

const argument = ({ text, variables }: Filled) => (variables.length === 0 ? text : Redacted.make(text))

const Template = filled(Filled, (filled) => filled)
const Text = filled(Schema.String, ({ text }) => text)
const Secret = filled(Schema.Redacted(Schema.String), ({ text }) => Redacted.make(text))
const Argument = filled(Schema.Union([Schema.String, Schema.Redacted(Schema.String)]), argument)
const listOf = <S extends Schema.Top>(schema: S) =>
  Schema.Array(schema).annotate({ message: "must be a list of texts" })
const unknownKey = "is not a known key"
const mapping = { message: "must be a mapping", messageUnexpectedKey: unknownKey }
const Secrets = Schema.Record(Schema.String, Secret).annotate(mapping)

const names = "must be a mapping, or a list of names in capitals, digits and underscores"
/** The environment: a mapping sets variables, a list passes on the named variables. */
const Environment = Schema.Union([
  Secrets,
  Schema.Array(must(names, Schema.String.check(Schema.isPattern(/^[A-Z0-9_]+$/)))).pipe(
    Schema.decodeTo(Secrets, {
      decode: SchemaGetter.transform((names: ReadonlyArray<string>) =>
        Object.fromEntries(names.map((name) => [name, `\${${name}}`]))
      ),
      encode: SchemaGetter.forbiddenEncoding
    })
  )
]).annotate({ message: names })

const isSpan = Schema.makeFilter((span: Duration.Duration) => Duration.isPositive(span) && Duration.isFinite(span))
const Span = must("must be a duration with its unit, as in '30 seconds'", Schema.DurationFromString.check(isSpan))
const Flag = must("must be true or false", Schema.Boolean)
const Port = must("must be a port", Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 65_535 })))

/** The revisions of the protocol, oldest first. */
export const versions = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] as const
const Version = Text.pipe(Schema.decodeTo(must(`must be one of ${versions.join(", ")}`, Schema.Literals(versions))))

const or = Schema.withDecodingDefaultTypeKey
const limit = (name: "headersTimeout" | "skillTimeout" | "taskTimeout") => Effect.map(Limits, (limits) => limits[name])

export const OAuthEntry = Schema.Struct({
  /** The id of a client that was registered by hand. Default: kernai registers itself if the server allows that. */
  clientId: Schema.optionalKey(Text),
  clientSecret: Schema.optionalKey(Secret),
  /** The private key of the client as PEM (EC P-256 or RSA), with which it authenticates instead of a secret. */
  privateKey: Schema.optionalKey(Secret),
  /**
   * The grant type: `authorization_code` for a person who signs in, or `client_credentials` for the program itself, as
   * the client `clientId`. Default: `authorization_code`.
   */
  grant: must(
    "must be authorization_code or client_credentials",
    Schema.Literals(["authorization_code", "client_credentials"])
  ).pipe(or(Effect.succeed("authorization_code" as const))),
  /** The scopes to request, besides those that a call turns out to need. Default: those the server asks for. */
  scopes: Schema.optionalKey(listOf(Text)),
  /** The loopback port of the redirect, if the client was registered with one. Default: 0, any free port. */
  redirectPort: Port.pipe(or(Effect.succeed(0)))
}).annotate(mapping)

const Count = must("must be a whole number above 0", Schema.Int.check(Schema.isGreaterThan(0)))

/** Limits on the replies that a server may request from the model of a run during one call. */
export const SamplingEntry = Schema.Struct({
  /** Maximum number of replies. Default: 4. */
  calls: Count.pipe(or(Effect.succeed(4))),
  /** Maximum length of each reply in tokens. Default: 1,000. */
  maxTokens: Count.pipe(or(Effect.succeed(1_000)))
}).annotate(mapping)

export const Entry = Schema.Struct({
  transport: Schema.optionalKey(Template),
  /** The transport, under the key of other programs. */
  type: Schema.optionalKey(Template),
  /** Ignores the server. Default: false. */
  disabled: Flag.pipe(or(Effect.succeed(false))),
  /** The revision to offer first; older ones follow when the server declines it. Default: 2025-11-25. */
  protocolVersion: Version.pipe(or(Effect.succeed("2025-11-25" as const))),
  /** Time for the server to start, and to list its tools, resources and prompts. Default: `Limits.headersTimeout`. */
  connectTimeout: Span.pipe(or(limit("headersTimeout"))),
  /** Time for one call, anew from each progress that the server reports. Default: `Limits.skillTimeout`. */
  timeout: Span.pipe(or(limit("skillTimeout"))),
  /** Maximum time of a call that reports progress. Default: `Limits.taskTimeout`. */
  progressTimeout: Span.pipe(or(limit("taskTimeout"))),
  /** Trusts the server's annotations about which tools may be called twice. Default: false. */
  trustAnnotations: Flag.pipe(or(Effect.succeed(false))),
  /** Lets the server ask a person during a call. Default: true. */
  elicitation: Flag.pipe(or(Effect.succeed(true))),
  /** Lets the server ask the model of a run during a call, within these limits. Default: not allowed. */
  sampling: Schema.optionalKey(SamplingEntry),
  command: Schema.optionalKey(Scalar),
  args: Schema.optionalKey(listOf(Argument)),
  /** The environment of the process, besides PATH, HOME and LANG. */
  env: Environment.pipe(or(Effect.succeed({}))),
  /** Passes the variables of proxies and certificates on to the process (see `networkVariables`). Default: false. */
  inheritNetwork: Flag.pipe(or(Effect.succeed(false))),
  cwd: Schema.optionalKey(Template),
  url: Schema.optionalKey(Template),
  headers: Secrets.pipe(or(Effect.succeed({}))),
  oauth: OAuthEntry.pipe(or(Effect.succeed({ redirectPort: 0, grant: "authorization_code" as const })))
}).annotate(mapping)
type Entry = typeof Entry.Type

const settings = [
  "protocolVersion",
  "connectTimeout",
  "timeout",
  "progressTimeout",
  "trustAnnotations",
  "elicitation"
] as const

/** The variables with which a process reaches a network through a proxy, and trusts its certificates. */
export const networkVariables: ReadonlyArray<string> = [
  ...["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"].flatMap((name) => [name, name.toLowerCase()]),
  "NODE_USE_ENV_PROXY",
  "NODE_EXTRA_CA_CERTS",
  "NODE_USE_SYSTEM_CA",
  "SSL_CERT_FILE",
  "SSL_CERT_DIR",
  "REQUESTS_CA_BUNDLE",
  "CURL_CA_BUNDLE"
]

/** Keys of other programs about their handling of a server. They are ignored and grant nothing here. */
const foreign: ReadonlySet<string> = new Set(["description", "autoApprove", "alwaysAllow", "trust", "icon", "gallery"])

const decodeEntry = Schema.decodeUnknownEffect(Entry, { onExcessProperty: "error" })

/** Decodes a server. Returns undefined if it is disabled. `isForeign` is true for the config of another program. */
export const decode = (
  name: string,
  value: Plain,
  isForeign: boolean
): Effect.Effect<DescribedServer | undefined, ConfigInvalid> => {
  if (!isForeign) return read(name, value)
  const known = value instanceof Map ? new Map([...value].filter(([key]) => !foreign.has(key))) : value
  return Effect.provideService(read(name, known), Variable, foreignVariable)
}

const read = Effect.fnUntraced(function* (
  name: string,
  value: Plain
): Effect.fn.Return<DescribedServer | undefined, ConfigInvalid> {
  const entry = yield* Effect.mapError(decodeEntry(objectOf(value ?? new Map())), (error) => invalid(name, error))
  if (entry.disabled) return undefined
  const common = { name, ...Struct.pick(entry, settings), ...(entry.sampling && { sampling: entry.sampling }) }
  const { cwd, env, headers, inheritNetwork, oauth, transport: given = entry.type, url } = entry
  const command = String(entry.command ?? "")
  const named = given?.text.replace(/^streamable(?:-http|Http)$/, "streamable_http")
  const transport = named ?? inferTransport({ command: command === "" ? undefined : command, url: url?.text })
  if (transport === "stdio") {
    const { args, program } = yield* commandOf(name, command, entry.args)
    const written = { command: program.written, cwd: cwd?.written }
    return { ...common, transport, command: program.text, args, env, inheritNetwork, cwd: cwd?.text, written }
  }
  if (transport !== "sse" && transport !== "http" && transport !== "streamable_http") {
    const written = JSON.stringify(given?.written)
    return yield* wrong(name, "transport", `unknown MCP transport for server '${name}': ${written}`)
  }
  if (url === undefined || url.text === "") {
    return yield* wrong(name, "url", `${transport === "sse" ? "sse" : "http"} server '${name}' missing 'url'`)
  }
  if (!isHttpAddress(url.text)) {
    const must = "must be an http or https address without a user name or password"
    return yield* wrong(name, "url", `the 'url' of MCP server '${name}' ${must}`)
  }
  return {
    ...common,
    transport: transport === "sse" ? "sse" : "streamable_http",
    inferred: given === undefined,
    url: url.text,
    written: { url: url.written },
    variables: url.variables.map((value) => Redacted.make(value)),
    headers,
    oauth
  }
})

export const isHttp = (server: McpServer): server is HttpServer =>
  server.transport === "sse" || server.transport === "streamable_http"

/** Returns true if a variable makes a loader, a runtime or a shell run code that the command does not name. */
export const loadsCode = (variable: string): boolean => codeVariables.some((pattern) => pattern.test(variable))

const codeVariables: ReadonlyArray<RegExp> = [
  /^(?:LD_(?:PRELOAD|AUDIT|LIBRARY_PATH)|DYLD_.+|GCONV_PATH)$/i,
  /^(?:NODE_(?:OPTIONS|PATH|REPL_EXTERNAL_MODULE)|BUN_OPTIONS|npm_config_.+)$/i,
  /^PYTHON(?:PATH|HOME|STARTUP|INSPECT|USERBASE|WARNINGS|BREAKPOINT)$/i,
  /^(?:PERL5?(?:LIB|OPT|DB)|RUBY(?:OPT|LIB|PATH)|LUA_(?:INIT|PATH|CPATH)\w*|PHPRC|PHP_INI_SCAN_DIR|R_PROFILE\w*)$/i,
  /^(?:CLASSPATH|JAVA_TOOL_OPTIONS|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|DOTNET_STARTUP_HOOKS|COR(?:ECLR)?_PROFILER\w*)$/i,
  /^(?:BASH_ENV|ENV|PROMPT_COMMAND|SHELLOPTS|GIT_(?:SSH|SSH_COMMAND|EXEC_PATH|EXTERNAL_DIFF))$/i
]

/** Returns the program and its arguments. With `args` the command is one word; without, it is a line to split. */
const commandOf = Effect.fnUntraced(function* (name: string, command: string, given: Entry["args"]) {
  const fail = (reason: string) => wrong(name, "command", `the 'command' of MCP server '${name}' ${reason}`)
  const words = given === undefined ? split(command) : [command]
  if (words === undefined) return yield* fail("has a quote that is never closed")
  const [program, ...args] = yield* Effect.mapError(Effect.forEach(words, fill), fail)
  return program === undefined || program.text === ""
    ? yield* wrong(name, "command", `stdio server '${name}' missing 'command'`)
    : { program, args: given ?? args.map(argument) }
})

export const inferTransport = (server: {
  readonly command?: string | null | undefined
  readonly url?: string | null | undefined
}): Transport => {
  if (typeof server.command === "string") return "stdio"
  const path = server.url?.replace(/^[A-Za-z][A-Za-z0-9+.-]*:\/\/[^/?#]*/, "").replace(/[?#].*$/s, "") ?? ""
  return path.split("/").includes("sse") ? "sse" : "streamable_http"
}

/**
 * Splits a line into words like a POSIX shell, without variables and operators. Returns undefined for an unclosed
 * quote.
 */
const split = (line: string): ReadonlyArray<string> | undefined => {
  const words: Array<string> = []
  let word: string | undefined
  for (const [text, blank, single, double, escaped] of line.matchAll(part)) {
    if (text === "'" || text === '"') return undefined
    if (blank === undefined) {
      // Between double quotes a backslash escapes only special characters.
      const quoted = single ?? double?.replace(/\\(["\\$`\n])/g, (_, char) => (char === "\n" ? "" : char))
      word = `${word ?? ""}${quoted ?? escaped ?? text}`
    } else if (blank !== "\\\n" && word !== undefined) {
      words.push(word)
      word = undefined
    }
  }
  return word === undefined ? words : [...words, word]
}

const part = /(\s+|\\\n)|'([^']*)'|"((?:\\[^]|[^"\\])*)"|\\([^])|[^\s'"\\]+|[^]/g

/** Converts plain data to objects. A key without a value is omitted. */
const objectOf = (value: Plain): unknown => {
  if (Array.isArray(value)) return value.map(objectOf)
  if (!(value instanceof Map)) return value
  return Object.fromEntries([...value].flatMap(([key, item]) => (item === null ? [] : [[key, objectOf(item)]])))
}

const wrong = (server: string, key: string, reason: string) =>
  new ConfigInvalid({ path: `servers.${server}.${key}`, reason })

const invalid = (server: string, error: Schema.SchemaError): ConfigInvalid => {
  const { path, reason } = Fault.ofSchema(error)
  if (path === "") return new ConfigInvalid({ path: `servers.${server}`, reason: `MCP server '${server}' ${reason}` })
  const keys = path.slice(1).split("/").map(JsonPointer.unescapeToken)
  // Writes an index in brackets: `args[1]`, `oauth.scopes[0]`.
  const place = keys.map((key) => (/^\d+$/.test(key) ? `[${key}]` : `.${visible(shorten(key, 60))}`)).join("")
  const advice =
    reason === unknownKey
      ? nearestKey(
          keys.at(-1) ?? "",
          Object.keys((keys.length === 1 ? Entry : keys[0] === "sampling" ? SamplingEntry : OAuthEntry).fields)
        )
      : ""
  return wrong(server, place.slice(1), `'${place.slice(1)}' of MCP server '${server}' ${reason}${advice}`)
}
