/** Encodes replies to A2A clients, as JSON-RPC or for the REST binding. */

import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { JsonObject } from "../../kit/json.ts"
import type { HttpProblem } from "../HttpProblem.ts"
import * as Older from "./a2aOlder.ts"
import type { Call, Rpc } from "./a2aRequest.ts"
import * as Sse from "./sse.ts"

/** An error of the protocol. */
export interface RpcError {
  readonly code: number
  readonly message: string
}

/** Creates the reply to a call, in the version and the binding of the call. */
export const replyOf = ({ id = null, isRest, version }: Omit<Call, "params">, result: JsonObject): JsonObject =>
  isRest ? result : { jsonrpc: "2.0", id, result: version === "1.0" ? result : Older.resultOf(result) }

/** Creates the response to a call. */
export const response = (call: Call, result: JsonObject): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(JSON.stringify(replyOf(call, result)), {
    contentType: call.isRest ? "application/a2a+json" : "application/json"
  })

/** Creates the response to a failed call. */
export const refused = (call: Call, error: RpcError): HttpServerResponse.HttpServerResponse =>
  call.isRest ? restRefused(error) : json(refusalOf(call, error))

/** Creates the response to a failed request of the REST binding. */
export const restRefused = (error: RpcError): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(JSON.stringify(restRefusalOf(error)), {
    status: kindOf(error.code).status,
    contentType: "application/json"
  })

/** Creates the last server-sent event of a stream that failed. */
export const brokenOff = (call: Call): string => {
  const error = { code: -32603, message: "The stream broke off." }
  return call.isRest ? `event: error\n${Sse.dataOf(restRefusalOf(error))}` : Sse.dataOf(refusalOf(call, error))
}

/** Creates the body of a failed request of the REST binding. */
const restRefusalOf = ({ code, message }: RpcError): JsonObject => {
  const { status, word } = kindOf(code)
  return { error: { code: status, status: word, message, details: [errorInfo(code)] } }
}

/** Creates the reply to a failed call of JSON-RPC. */
export const refusalOf = ({ id = null }: Pick<Rpc, "id">, { code, message }: RpcError): JsonObject => ({
  jsonrpc: "2.0",
  id,
  error: { code, message, data: [errorInfo(code)] }
})

/** Creates the detail by which programs tell errors apart. */
const errorInfo = (code: number): JsonObject => ({
  "@type": "type.googleapis.com/google.rpc.ErrorInfo",
  reason: kindOf(code).reason,
  domain: "a2a-protocol.org"
})

/** The reason of an error in its details, and its HTTP status and status word over REST. */
interface ErrorKind {
  readonly reason: string
  readonly status: number
  readonly word: string
}

const kindOf = (code: number): ErrorKind => kinds.get(code) ?? internal

const internal: ErrorKind = { reason: "INTERNAL_ERROR", status: 500, word: "INTERNAL" }

const kind = (reason: string, status: number, word: string): ErrorKind => ({ reason, status, word })

const kinds: ReadonlyMap<number, ErrorKind> = new Map([
  [-32700, kind("PARSE_ERROR", 400, "INVALID_ARGUMENT")],
  [-32600, kind("INVALID_REQUEST", 400, "INVALID_ARGUMENT")],
  [-32601, kind("METHOD_NOT_FOUND", 404, "NOT_FOUND")],
  [-32602, kind("INVALID_PARAMS", 400, "INVALID_ARGUMENT")],
  [-32001, kind("TASK_NOT_FOUND", 404, "NOT_FOUND")],
  [-32002, kind("TASK_NOT_CANCELABLE", 409, "FAILED_PRECONDITION")],
  [-32003, kind("PUSH_NOTIFICATION_NOT_SUPPORTED", 400, "UNIMPLEMENTED")],
  [-32004, kind("UNSUPPORTED_OPERATION", 400, "UNIMPLEMENTED")],
  [-32005, kind("CONTENT_TYPE_NOT_SUPPORTED", 415, "INVALID_ARGUMENT")],
  [-32007, kind("EXTENDED_AGENT_CARD_NOT_CONFIGURED", 400, "FAILED_PRECONDITION")],
  [-32008, kind("EXTENSION_SUPPORT_REQUIRED", 400, "FAILED_PRECONDITION")],
  [-32009, kind("VERSION_NOT_SUPPORTED", 400, "UNIMPLEMENTED")]
])

/** The error for a body that is not JSON. */
export const notJson: RpcError = { code: -32700, message: "The body is not JSON." }

/** The error for a body that is JSON, but no call. Batches are not supported. */
export const notACall: RpcError = { code: -32600, message: "The body is not a JSON-RPC 2.0 call." }

export const json = (body: JsonObject): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.text(JSON.stringify(body), { contentType: "application/json" })

/** Returns the protocol error for a problem, or undefined for one that the status of the response expresses. */
export const errorOf = (method: string, problem: HttpProblem): RpcError | undefined => {
  const message = problem.detail ?? problem.title
  switch (problem._tag) {
    case "NotFound":
      return { code: problem.what === "run" ? -32001 : -32602, message: `There is no such ${problem.what}.` }
    case "Conflict":
      return method === "CancelTask"
        ? { code: -32002, message: "The task is over." }
        : { code: -32004, message: "The task accepts no message or subscriber now." }
    case "Invalid":
      return { code: -32602, message }
    default:
      return undefined
  }
}

/** The error for a call that needs push notifications, where there are none. */
export const noPush: RpcError = { code: -32003, message: "Push notifications are not supported." }

/** The error for a method that the protocol does not have. */
export const noMethod: RpcError = { code: -32601, message: "There is no such method." }

/** The error for a version that is not supported, or that does not have the method. */
export const otherVersion: RpcError = {
  code: -32009,
  message: "This server speaks versions 1.0 and 0.3, each with its own methods."
}
