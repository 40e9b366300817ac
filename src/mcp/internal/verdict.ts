/**
 * What a failed request means: whether the server can have seen it, and what
 * to tell the caller.
 *
 * Only the server's own words and sentences of ours are told. Causes stay
 * here: they hold requests, and requests hold keys (S-7). The words are masked
 * where they repeat a secret of the config.
 *
 * @since 0.1.0
 */
import type { McpClientError } from "effect/ai/McpClientError"
import * as Redacted from "effect/Redacted"
import { isRecord } from "../../internal/untrusted.ts"
import { McpError } from "../../KernelError.ts"
import type { McpServer } from "../McpConfig.ts"

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

/** Did the server ask for a sign-in? Then this is its challenge, or "" when it gave none. */
export const challengeOf = ({ reason }: McpClientError): string | undefined =>
  reason._tag === "HttpError" && reason.status === 401 ? (reason.wwwAuthenticate ?? "") : undefined

/** Tells the caller. `operation` is what was asked for, in the protocol's words. */
export const tell = (server: McpServer, operation: string, error: McpClientError): McpError => {
  const [reason, detail] = describe(server, operation, error)
  return new McpError({ server: server.name, reason, detail: mask(server, detail) })
}

/** The server could not be connected to: nothing was asked of it yet. */
export const unreachable = (server: McpServer, error: McpClientError): McpError => {
  const told = tell(server, "initialize", error)
  return told.reason === "disconnected" ? new McpError({ ...told, reason: "connect" }) : told
}

/** Something of the server's is not there. */
export const notFound = (server: McpServer, detail: string) =>
  new McpError({ server: server.name, reason: "not_found", detail })

/** A call that changes something was cut off: it is not repeated, and this says so. */
export const unknownOutcome = (server: McpServer, operation: string, error: McpClientError): McpError =>
  new McpError({
    server: server.name,
    reason: "outcome_unknown",
    detail: mask(
      server,
      `${operation} was cut off before MCP server '${server.name}' answered (${describe(server, operation, error)[1]}); it may have been done, and was not repeated`
    )
  })

const describe = (
  server: McpServer,
  operation: string,
  { reason }: McpClientError
): readonly [McpError["reason"], string] => {
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
    case "HttpError":
      if (reason.status === 401) return ["needs_sign_in", `MCP server '${server.name}' needs a sign-in`]
      return [
        "remote",
        `MCP server '${server.name}' answered with HTTP status ${reason.status}${after(reason.description)}`
      ]
    case "TransportError": {
      const code = errorCode(reason.cause)
      return [
        "disconnected",
        code === undefined
          ? `lost MCP server '${server.name}': ${reason.description ?? "the connection broke"}`
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
      return ["version", `MCP server '${server.name}': ${reason.message}`]
    case "ConfigurationError":
      return ["config", reason.message]
  }
}

const after = (description: string | undefined) => (description === undefined ? "" : `: ${description}`)

// Both say that the session is gone: the first is what the protocol asks for, the second what servers do.
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

/** The system's code of an error, somewhere down its causes. */
const errorCode = (error: unknown): string | undefined => {
  let current = error
  for (let depth = 0; depth < 8 && isRecord(current); depth++) {
    if (typeof current["code"] === "string") return current["code"]
    // A host with several addresses fails with one error for each.
    const inner: unknown = Array.isArray(current["errors"]) ? current["errors"][0] : undefined
    current = inner ?? current["reason"] ?? current["cause"]
  }
  return undefined
}

const mask = (server: McpServer, text: string): string => {
  let masked = text.length > maxDetail ? `${text.slice(0, maxDetail)}…` : text
  for (const secret of secretsOf(server)) masked = masked.replaceAll(secret, "<redacted>")
  return masked
}

const maxDetail = 4096

// Short values are no secrets, and masking them would only garble the text.
const secretsOf = (server: McpServer): ReadonlyArray<string> => {
  const values = [...(server.transport === "stdio" ? server.env : server.headers).values()]
  const words = server.transport === "stdio" ? server.args : []
  const args = words.flatMap((word) => (Redacted.isRedacted(word) ? [word] : []))
  return [...values, ...args]
    .map((value) => Redacted.value(value))
    .flatMap((value) => [value, ...value.split(/\s+/)])
    .filter((value) => value.length >= 8)
    .sort((a, b) => b.length - a.length)
}
