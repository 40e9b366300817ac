/** Reads requests of the REST binding (`HTTP+JSON`) as calls of the protocol. */

import * as Result from "effect/Result"
import * as Bounds from "../../kit/bounds.ts"
import { isJsonObject, type Json, type JsonObject, parseJson } from "../../kit/json.ts"
import type { Call } from "./a2aRequest.ts"

/** A request: the rest of its path behind the base address, its query and the text of its body. */
export interface RestRequest {
  readonly method: "GET" | "POST" | "DELETE"
  readonly path: string
  readonly query: URLSearchParams
  readonly body: string
}

/** Returns the call of a request, or undefined for a path that the binding does not have. */
export const callOf = (request: RestRequest): Call | undefined => {
  const route = routeOf(request)
  if (route === undefined) return undefined
  const { ids, method, params = bodyOf(request.body, ids) } = route
  return { jsonrpc: "2.0", method, params, version: "1.0", isRest: true }
}

/** A method and its parameters, which are the body of the request if undefined. */
interface Route {
  readonly method: string
  readonly params?: JsonObject
  /** Parameters in the path, which those of the body do not replace. */
  readonly ids?: JsonObject
}

const routeOf = ({ method, path, query }: RestRequest): Route | undefined => {
  if (method === "POST" && path === "message:send") return { method: "SendMessage" }
  if (method === "POST" && path === "message:stream") return { method: "SendStreamingMessage" }
  if (method === "GET" && path === "extendedAgentCard") return { method: "GetExtendedAgentCard", params: {} }
  if (method === "GET" && path === "tasks") return { method: "ListTasks", params: paramsOf(query) }
  const [, id = "", verb = ""] =
    /^tasks\/(.+?)(:cancel|:subscribe|\/pushNotificationConfigs(?:\/.*)?)?$/s.exec(path) ?? []
  if (id === "") return undefined
  const params = { ...paramsOf(query), id }
  if (verb === ":subscribe") return { method: "SubscribeToTask", params }
  if (verb === ":cancel") return method === "POST" ? { method: "CancelTask", params } : undefined
  if (verb !== "") return pushRouteOf(method, id, verb.replace(/^\/[^/]*\/?/, ""))
  return method === "GET" ? { method: "GetTask", params } : undefined
}

const pushRouteOf = (method: RestRequest["method"], taskId: string, id: string): Route | undefined => {
  if (method === "POST") return id === "" ? { method: "CreateTaskPushNotificationConfig", ids: { taskId } } : undefined
  if (method === "GET" && id === "") return { method: "ListTaskPushNotificationConfigs", params: { taskId } }
  const verb = method === "GET" ? "Get" : "Delete"
  return id === "" ? undefined : { method: `${verb}TaskPushNotificationConfig`, params: { taskId, id } }
}

/** Returns the parameters in a query, where every value is a text. */
const paramsOf = (query: URLSearchParams): JsonObject =>
  Object.fromEntries([...query].map(([name, value]): [string, Json] => [name, valueOf(name, value)]))

const valueOf = (name: string, value: string): Json => {
  if ((name === "historyLength" || name === "pageSize") && /^-?\d{1,15}$/.test(value)) return Number(value)
  return name === "includeArtifacts" ? value === "true" : value
}

/** Returns the parameters in a body. Those of one that is not JSON are null, which no method accepts. */
const bodyOf = (text: string, ids: JsonObject = {}): Json => {
  const body = parseJson(text, Bounds.jsonDepth)
  return Result.isSuccess(body) && isJsonObject(body.success) ? { ...body.success, ...ids } : null
}
