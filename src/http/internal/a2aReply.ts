/** Encodes replies to A2A clients, as JSON-RPC or for the REST binding. */

import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { JsonObject } from "../../kit/json.ts"
import type { HttpProblem } from "../HttpProblem.ts"
import * as Older from "./a2aOlder.ts"
import type { Call, Rpc } from "./a2aRequest.ts"
import * as Sse from "./sse.ts"

/** An error of the protocol. */
interface RpcError {
  readonly code: number
  readonly message: string
}

/** Creates the reply to a call, in the version and the binding of the call. */
export const replyOf = ({ id = null, isRest, version }: Omit<Call, "params">, result: JsonObject): JsonObject =>
  isRest ? result : { jsonrpc: "2.0", id, result: version === "1.0" ? result : Older.resultOf(result) }

/** Creates the response to a call. */
export const response = (call: Call, result: JsonObject): HttpServerResponse.HttpServerResponse =>
  json(replyOf(call, result))

/** Creates the response to a failed call. */
export const refused = (call: Call, error: RpcError): HttpServerResponse.HttpServerResponse => {
  if (!call.isRest) return json(refusalOf(call, error))
  const status = restStatusOf(error.code)
  return HttpServerResponse.text(JSON.stringify(restRefusalOf(error)), { status, contentType: "application/json" })
}

/** Creates the last server-sent event of a stream that failed. */
export const brokenOff = (call: Call): string => {
  const error = { code: -32603, message: "The stream broke off." }
  return call.isRest ? `event: error\n${Sse.dataOf(restRefusalOf(error))}` : Sse.dataOf(refusalOf(call, error))
}

/** Creates the body of a failed request of the REST binding. */
const restRefusalOf = ({ code, message }: RpcError): JsonObject => {
  const status = restStatusOf(code)
  const word = code <= -32600 ? "INVALID_ARGUMENT" : "FAILED_PRECONDITION"
  return {
    error: { code: status, status: words.get(status) ?? word, message, details: [errorInfo(code)] }
  }
}

const restStatusOf = (code: number): number => {
  if (code === -32001 || code === -32601) return 404
  return code === -32603 ? 500 : 400
}

const words: ReadonlyMap<number, string> = new Map([
  [404, "NOT_FOUND"],
  [500, "INTERNAL"]
])

/** Creates the reply to a failed call of JSON-RPC. */
export const refusalOf = ({ id = null }: Pick<Rpc, "id">, { code, message }: RpcError): JsonObject => ({
  jsonrpc: "2.0",
  id,
  error: { code, message, data: [errorInfo(code)] }
})

/** Creates the detail by which programs tell errors apart. */
const errorInfo = (code: number): JsonObject => ({
  "@type": "type.googleapis.com/google.rpc.ErrorInfo",
  reason: reasons.get(code) ?? "INTERNAL_ERROR",
  domain: "a2a-protocol.org"
})

const reasons: ReadonlyMap<number, string> = new Map([
  [-32700, "PARSE_ERROR"],
  [-32600, "INVALID_REQUEST"],
  [-32601, "METHOD_NOT_FOUND"],
  [-32602, "INVALID_PARAMS"],
  [-32001, "TASK_NOT_FOUND"],
  [-32002, "TASK_NOT_CANCELABLE"],
  [-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"],
  [-32004, "UNSUPPORTED_OPERATION"],
  [-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"],
  [-32009, "VERSION_NOT_SUPPORTED"]
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

/** Returns the error for an unsupported method. */
export const unknown = (method: string): RpcError => {
  if (method === "GetExtendedAgentCard") return { code: -32007, message: "There is no extended agent card." }
  return { code: -32601, message: "There is no such method." }
}
