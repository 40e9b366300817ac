/**
 * What a failed request means: whether the server can have seen it, and what
 * to tell the caller.
 *
 * Only the server's own words and sentences of ours are told. Causes stay
 * here: they hold requests, and requests hold keys (S-7). The words are masked
 * where they repeat a secret of the config.
 */

import type { McpClientError } from "effect/ai/McpClientError"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { errorCode, retryAfterDate, retryAfterNumber } from "../../internal/base/transient.ts"
import { redact } from "../../internal/base/redact.ts"
import { McpError } from "../../KernelError.ts"
import type { HttpServer, McpServer } from "../McpConfig.ts"
import * as Challenge from "./challenge.ts"

/**
 * `refused`: the server did not take the request, so it may be sent again.
 * `lost`: nobody knows. `answered`: the server said what it has to say.
 */
export type Fate = "refused" | "lost" | "answered"

/** Can the server have acted on a request that failed like this? */
export const fateOf = ({ reason }: McpClientError): Fate => {
  switch (reason._tag) {
    case "ClosedError":
      return reason.sessionExpired === true ? "refused" : "lost"
    case "TransportError":
      return unsent.has(errorCode(reason.cause) ?? "") ? "refused" : "lost"
    case "HttpError":
      if (isUnknownSession(reason)) return "refused"
      return reason.status >= 500 ? "lost" : "answered"
    default:
      return "answered"
  }
}

/** Did the server ask for a sign-in, or for one that allows more? Then this is its challenge, or "" when it gave none. */
export const challengeOf = ({ reason }: McpClientError): string | undefined => {
  if (reason._tag !== "HttpError") return undefined
  const challenge = reason.wwwAuthenticate ?? ""
  const asks = reason.status === 401 || (reason.status === 403 && Challenge.lacked(challenge) !== undefined)
  return asks ? challenge : undefined
}

/** Puts failures of one server into words. */
export class Teller {
  readonly server: McpServer
  private readonly secrets: ReadonlyArray<string>
  private readonly tokens = new Set<string>()

  constructor(server: McpServer) {
    this.server = server
    this.secrets = secretsOf(server)
  }

  /** Another text that must never be told: an access token, as it is used. Of very many, the last used are known. */
  learn(token: string): void {
    this.tokens.delete(token)
    this.tokens.add(token)
    for (const oldest of this.tokens) {
      if (this.tokens.size <= maxTokens) return
      this.tokens.delete(oldest)
    }
  }

  /** `operation` is what was asked for, in the protocol's words. */
  tell(operation: string, error: McpClientError): McpError {
    return this.make(...describe(this.server, operation, error))
  }

  /** The server could not be connected to: nothing was asked of it yet. */
  unreachable(error: McpClientError): McpError {
    const [reason, detail] = describe(this.server, "initialize", error)
    return this.make(reason === "disconnected" || isAway(error) ? "connect" : reason, detail)
  }

  /** Something of the server's is not there. */
  notFound(detail: string): McpError {
    return this.make("not_found", detail)
  }

  /** A call that changes something was cut off: it is not repeated, and this says so. */
  unknownOutcome(operation: string, error: McpClientError): McpError {
    const [, cause] = describe(this.server, operation, error)
    return this.make(
      "outcome_unknown",
      `${operation} was cut off before MCP server '${this.server.name}' answered (${cause}); it may have been done, and was not repeated`
    )
  }

  private make(reason: McpError["reason"], detail: string): McpError {
    return new McpError({ server: this.server.name, reason, detail: this.mask(detail) })
  }

  private mask(text: string): string {
    let masked = text
    for (const secret of [...this.secrets, ...this.tokens].sort((a, b) => b.length - a.length)) {
      masked = masked.replaceAll(secret, "<redacted>")
    }
    return redact(masked.length > maxDetail ? `${masked.slice(0, maxDetail)}…` : masked)
  }
}

const describe = (
  server: McpServer,
  operation: string,
  error: McpClientError
): readonly [McpError["reason"], string] => {
  const { reason } = error
  switch (reason._tag) {
    case "ToolError":
      return ["remote", reason.message]
    case "ProtocolError":
      // With a code it is the server's answer, without one it is no answer at all.
      return reason.code === undefined
        ? ["protocol", `MCP server '${server.name}' does not keep to the protocol: ${reason.message}`]
        : ["remote", reason.description ?? `MCP error ${reason.code}`]
    case "ValidationError":
      return ["protocol", `MCP server '${server.name}' answered ${operation} with something malformed`]
    case "HttpError": {
      const challenge = challengeOf(error)
      return challenge === undefined
        ? [
            "remote",
            `MCP server '${server.name}' answered with HTTP status ${reason.status}${after(reason.description)}${again(reason.retryAfter)}`
          ]
        : ["needs_sign_in", `MCP server '${server.name}' needs a sign-in${allowing(Challenge.lacked(challenge))}`]
    }
    case "TransportError": {
      const code = errorCode(reason.cause)
      return [
        "disconnected",
        code === undefined
          ? `${operation === "initialize" ? "cannot connect to" : "lost"} MCP server '${server.name}': ${reason.description ?? "the connection broke"}`
          : `MCP server '${server.name}' cannot be reached (${code})`
      ]
    }
    case "ClosedError":
      return ["disconnected", `the connection to MCP server '${server.name}' is closed`]
    case "TimeoutError":
      return ["timeout", `MCP server '${server.name}' did not answer ${operation} in time; the request was cancelled`]
    case "LimitError":
      return ["limit_exceeded", `MCP server '${server.name}': ${reason.message}`]
    case "UnsupportedError":
      // After the handshake it is a thing this server does not have.
      return [operation === "initialize" ? "version" : "not_found", `MCP server '${server.name}': ${reason.message}`]
    case "ConfigurationError":
      return ["config", reason.message]
  }
}

const allowing = (scopes: ReadonlyArray<string> | undefined): string => {
  if (scopes === undefined) return ""
  return ` that allows ${scopes.length === 0 ? "more" : `"${scopes.join(" ")}"`}`
}

const after = (description: string | undefined) => (description === undefined ? "" : `: ${description}`)

/** When the server wants to be asked again, by its `retry-after`: in seconds or as a date. */
const again = (asked: string | undefined): string => {
  const seconds = retryAfterNumber(asked)
  if (seconds !== undefined && Number.isInteger(seconds) && seconds < 1e9)
    return `; it can be asked again after ${seconds} s`
  const date = retryAfterDate(asked)
  return date === undefined ? "" : `; it can be asked again at ${new Date(date).toISOString()}`
}

// Something on the way to the server says that it is not there.
const isAway = ({ reason }: McpClientError): boolean =>
  reason._tag === "HttpError" && reason.status >= 502 && reason.status <= 504

// The protocol wants 404 for a session that is gone, which comes as a closed one; some servers say 400.
const isUnknownSession = (error: { readonly status: number; readonly description?: string | undefined }): boolean =>
  error.status === 400 && /\bsession\b/i.test(error.description ?? "")

// With these nothing was ever sent.
const unsent: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT"
])

const maxDetail = 4096
const maxTokens = 1024

// Short values are no secrets, and masking them would only garble the text.
const secretsOf = (server: McpServer): ReadonlyArray<string> =>
  (server.transport === "stdio"
    ? [...server.env.values(), ...server.args.filter((word) => Redacted.isRedacted(word))].map(Redacted.value)
    : [...Array.from(server.headers.values(), Redacted.value), ...addressSecrets(server)]
  )
    .flatMap((value) => [value, ...value.split(/\s+/)])
    .filter((value) => value.length >= 8)

/**
 * What an address may hold of keys: the values of its query, and what variables made of its path, alone and with what
 * stands around them, as they are and as they are sent. Where the server is, is no secret.
 */
const addressSecrets = ({ url, variables = [], written }: HttpServer): ReadonlyArray<string> => {
  const { host, origin, pathname, search, searchParams } = new URL(url)
  const known = new Set(written?.url.split(/[/?#]/))
  const segments = written === undefined ? [] : pathname.split("/").filter((segment) => !known.has(segment))
  const values = variables.map(Redacted.value).flatMap((value) => [
    // A key may hold what parts an address. What names the server is an address, of which only parts are keys.
    ...(value.includes(host) ? [] : [value]),
    ...value.split(/[/?#]/)
  ])
  const queries = search
    .slice(1)
    .split("&")
    .map((pair) => pair.slice(pair.indexOf("=") + 1))
  return [
    ...searchParams.values(),
    ...queries,
    ...segments,
    ...segments.map(decoded),
    ...values.filter((value) => !origin.includes(value))
  ]
}

// A value may hold a percent sign that stands for nothing.
const decoded = (segment: string): string =>
  Result.getOrElse(
    Result.try(() => decodeURIComponent(segment)),
    () => segment
  )
