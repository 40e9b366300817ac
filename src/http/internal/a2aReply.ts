/** Encodes replies to A2A clients as JSON-RPC. */

import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { JsonObject } from "../../kit/json.ts"
import type { HttpProblem } from "../HttpProblem.ts"
import * as Older from "./a2aOlder.ts"
import type { Call, Rpc } from "./a2aRequest.ts"

/** An error of the protocol. */
interface RpcError {
  readonly code: number
  readonly message: string
}

/** Creates the reply to a call, in the version of the call. */
export const replyOf = ({ id = null, version }: Pick<Call, "id" | "version">, result: JsonObject): JsonObject => ({
  jsonrpc: "2.0",
  id,
  result: version === "1.0" ? result : Older.resultOf(result)
})

/** Creates the reply to a failed call. */
export const refusalOf = ({ id = null }: Pick<Rpc, "id">, { code, message }: RpcError): JsonObject => ({
  jsonrpc: "2.0",
  id,
  error: { code, message }
})

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

/** Returns the error for an unsupported method. */
export const unknown = (method: string): RpcError => {
  if (method.includes("PushNotification")) return { code: -32003, message: "Push notifications are not supported." }
  if (method === "GetExtendedAgentCard") return { code: -32007, message: "There is no extended agent card." }
  return { code: -32601, message: "There is no such method." }
}
