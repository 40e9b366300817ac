/**
 * Classifies failed requests and describes them. A message consists of fixed sentences and the server's own text, in
 * which secrets of the config are masked. Causes hold requests with keys, and are dropped.
 */

import type { McpClientError } from "effect/ai/McpClientError"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { remover } from "../../kit/encodedSecrets.ts"
import * as Secrets from "../../kit/secrets.ts"
import { errorCode, isUnconnected, retryAfterDate, retryAfterNumber } from "../../kit/failedRequest.ts"
import { redact } from "../../kit/redact.ts"
import { McpError } from "../../KernelError.ts"
import type { HttpServer, McpServer } from "../McpConfig.ts"
import * as JsonRpc from "./jsonRpc.ts"
import { isHttp } from "./serverEntry.ts"

/**
 * `refused`: the server did not accept the request, which may be sent again. `lost`: the server may have acted on it.
 * `answered`: the failure is the server's response.
 */
type Fate = "refused" | "lost" | "answered"

export const fateOf = ({ reason }: McpClientError): Fate => {
  switch (reason._tag) {
    case "ClosedError":
      return reason.sessionExpired === true ? "refused" : "lost"
    case "TransportError":
      return isUnconnected(reason.cause) ? "refused" : "lost"
    case "HttpError":
      // The protocol requires 404 for an unknown session, which counts as closed here. Some servers respond with 400.
      if (reason.status === 400 && /\bsession\b/i.test(reason.description ?? "")) return "refused"
      return reason.status >= 500 ? "lost" : "answered"
    default:
      return "answered"
  }
}

/** Returns the failure of a later request of a call. A refused one is lost, since the server has begun the call. */
export const begunBefore = (error: McpClientError): McpClientError =>
  fateOf(error) === "refused" ? JsonRpc.lost("the server was restarted during the call") : error

/**
 * Returns the parameters of challenges, such as `Bearer resource_metadata="…", scope="…"`. The last one of a name wins.
 */
export const parametersOf = (...challenges: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const parameter = /([a-z_]+)=(?:"([^"]*)"|([^\s",]+))/gi
  const found = challenges.flatMap((challenge) => [...challenge.slice(0, 4096).matchAll(parameter)])
  return new Map(found.map(([, name = "", quoted, bare = ""]) => [name.toLowerCase(), quoted ?? bare]))
}

/** Returns the scopes that a token lacked, or undefined if it was refused for another reason. */
export const lacked = (challenge: string): ReadonlyArray<string> | undefined => {
  const parameters = parametersOf(challenge)
  return parameters.get("error") === "insufficient_scope" ? scopesOf(parameters.get("scope")) : undefined
}

export const scopesOf = (list = ""): ReadonlyArray<string> => list.split(" ").filter((scope) => scope !== "")

export const union = (...lists: ReadonlyArray<string | undefined>): string =>
  [...new Set(lists.flatMap((list) => scopesOf(list)))].join(" ")

/** Returns the challenge of a server that asks for a sign-in or for further scopes, or "" if it sent none. */
export const challengeOf = ({ reason }: McpClientError): string | undefined => {
  if (reason._tag !== "HttpError") return undefined
  const challenge = reason.wwwAuthenticate ?? ""
  const asks = reason.status === 401 || (reason.status === 403 && lacked(challenge) !== undefined)
  return asks ? challenge : undefined
}

export class Failures {
  readonly server: McpServer
  /** Returns the last error output of a local server as the end of a sentence, or "" if there is none. */
  complaint: () => string = () => ""
  private readonly secrets: ReadonlyArray<string>
  private readonly tokens = new Set<string>()

  constructor(server: McpServer) {
    this.server = server
    this.secrets = secretsOf(server)
  }

  /** Masks an access token in all later messages. The last 1,024 tokens are masked. */
  mask(token: string): void {
    this.tokens.delete(token)
    this.tokens.add(token)
    const [oldest] = this.tokens
    if (this.tokens.size > 1024 && oldest !== undefined) this.tokens.delete(oldest)
  }

  /** Removes the keys and tokens of the server from a text, in every encoding. */
  clean(text: string): string {
    return remover([...this.secrets, ...this.tokens])(text)
  }

  /** Creates the error of a failed request. `operation` is its method, with the name of the tool. */
  of(operation: string, error: McpClientError): McpError {
    return this.make(...this.describe(operation, error))
  }

  /** Creates the error of a server to which no connection is possible. No request was sent. */
  unreachable(error: McpClientError): McpError {
    const [reason, detail] = this.describe("initialize", error)
    const { _tag, status } = { status: 0, ...error.reason }
    // A gateway responds for an unavailable server.
    const isAway = reason === "disconnected" || (_tag === "HttpError" && status >= 502 && status <= 504)
    return this.make(isAway ? "connect" : reason, detail)
  }

  notFound(detail: string): McpError {
    return this.make("not_found", detail)
  }

  /** Creates the error of a call that was cut off and may have had an effect, so that it is not repeated. */
  unknownOutcome(operation: string, error: McpClientError): McpError {
    const { name } = this.server
    const [, cause] = this.describe(operation, error)
    return this.make(
      "outcome_unknown",
      `${operation} was cut off before MCP server '${name}' answered (${cause}); it may have been done, and was not repeated`
    )
  }

  private describe(operation: string, error: McpClientError): ReturnType<typeof describe> {
    const [reason, detail] = describe(this.server, operation, error)
    return [reason, reason === "timeout" ? `${detail}${this.complaint()}` : detail]
  }

  private make(reason: McpError["reason"], detail: string): McpError {
    const masked = this.clean(detail)
    const short = masked.length > maxDetail ? `${masked.slice(0, maxDetail)}…` : masked
    return new McpError({ server: this.server.name, reason, detail: redact(short) })
  }
}

const maxDetail = 4096

const describe = (
  server: McpServer,
  operation: string,
  error: McpClientError
): readonly [reason: McpError["reason"], detail: string] => {
  const { reason } = error
  const named = `MCP server '${server.name}'`
  switch (reason._tag) {
    case "ToolError":
      return ["remote", reason.message]
    case "ProtocolError":
      // With a code it is the server's response; without one there was no valid response.
      return reason.code === undefined
        ? ["protocol", `${named} does not keep to the protocol: ${reason.message}`]
        : ["remote", reason.description ?? `MCP error ${reason.code}`]
    case "ValidationError":
      return ["protocol", `${named} answered ${operation} with something malformed`]
    case "HttpError": {
      const challenge = challengeOf(error)
      if (challenge !== undefined) return ["needs_sign_in", `${named} needs a sign-in${allowing(challenge)}`]
      const said = reason.description === undefined ? "" : `: ${reason.description}`
      return ["remote", `${named} answered with HTTP status ${reason.status}${said}${retryAfter(reason.retryAfter)}`]
    }
    case "TransportError": {
      const code = errorCode(reason.cause)
      if (code !== undefined) return ["disconnected", `${named} cannot be reached (${code})`]
      const verb = operation === "initialize" ? "cannot connect to" : "lost"
      return ["disconnected", `${verb} ${named}: ${reason.description ?? "the connection broke"}`]
    }
    case "ClosedError":
      return ["disconnected", `the connection to ${named} is closed`]
    case "TimeoutError":
      return ["timeout", `${named} did not answer ${operation} in time; the request was cancelled`]
    case "LimitError":
      return ["limit_exceeded", `${named}: ${reason.message}`]
    case "UnsupportedError":
      if (error === JsonRpc.inputRequired) return ["input_required", `${named}: ${reason.message}`]
      // After the handshake, the server lacks the requested feature.
      return [operation === "initialize" ? "version" : "not_found", `${named}: ${reason.message}`]
    case "ConfigurationError":
      return ["config", reason.message]
  }
}

const allowing = (challenge: string): string => {
  const scopes = lacked(challenge)
  if (scopes === undefined) return ""
  return ` that allows ${scopes.length === 0 ? "more" : `"${scopes.join(" ")}"`}`
}

/** Returns the time to retry, from `retry-after` in seconds or as a date. */
const retryAfter = (header: string | undefined): string => {
  const seconds = retryAfterNumber(header)
  if (seconds !== undefined && Number.isInteger(seconds)) return `; retry after ${seconds} s`
  const date = retryAfterDate(header)
  return date === undefined ? "" : `; retry at ${new Date(date).toISOString()}`
}

/**
 * Returns the values of the config that may be keys. Shorter values are not secrets, and masking them would garble the
 * text.
 */
const secretsOf = (server: McpServer): ReadonlyArray<string> =>
  (!isHttp(server)
    ? server.transport === "custom"
      ? []
      : [...Object.values(server.env), ...server.args.filter((word) => Redacted.isRedacted(word))].map(Redacted.value)
    : [...Secrets.ofHeaders(Object.values(server.headers)), ...addressSecrets(server)]
  )
    .flatMap((value) => [value, ...value.split(/\s+/)])
    .filter((value) => value.length >= 8)

/**
 * Returns the values of the query, and those of variables in the path: alone and with the rest of their segment, raw
 * and encoded. The location of the server is not a secret.
 */
const addressSecrets = ({ url, variables, written }: HttpServer): ReadonlyArray<string> => {
  const { host, origin, pathname, search, searchParams } = new URL(url)
  const known = new Set(written.url.split(/[/?#]/))
  const segments = pathname.split("/").filter((segment) => !known.has(segment))
  const values = variables.map(Redacted.value).flatMap((value) => [
    // A key may hold a separator. A variable for the server holds an address, of which only parts are keys.
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
    ...segments.flatMap((segment) => [segment, decoded(segment)]),
    ...values.filter((value) => !origin.includes(value))
  ]
}

// A value may hold a percent sign that is not an escape.
const decoded = (segment: string): string =>
  Result.getOrElse(
    Result.try(() => decodeURIComponent(segment)),
    () => segment
  )
