/**
 * Converts between protocol versions 0.3 and 1.0: names of methods and states differ, and 0.3 has a `kind` in every
 * value.
 */

import { isEmpty, isJsonObject, type Json, type JsonObject, jsonObject } from "../../kit/json.ts"
import type { Call, Rpc } from "./a2aRequest.ts"

const methods: ReadonlyMap<string, string> = new Map([
  ["message/send", "SendMessage"],
  ["message/stream", "SendStreamingMessage"],
  ["tasks/get", "GetTask"],
  ["tasks/cancel", "CancelTask"],
  ["tasks/resubscribe", "SubscribeToTask"],
  ["tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig"],
  ["tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig"],
  ["tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs"],
  ["tasks/pushNotificationConfig/delete", "DeleteTaskPushNotificationConfig"],
  ["agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"]
])

/** Converts a call to version 1.0, and remembers its own version. */
export const callOf = (rpc: Rpc): Call => {
  const method = methods.get(rpc.method)
  return method === undefined
    ? { ...rpc, version: "1.0", isRest: false }
    : { ...rpc, method, params: paramsOf(method, rpc.params), version: "0.3", isRest: false }
}

const paramsOf = (method: string, given: Json = {}): Json => {
  const params = jsonObject(given)
  if (method.includes("PushNotification")) return pushParamsOf(params)
  const message = params["message"]
  if (!isJsonObject(message)) return params
  const { blocking, pushNotificationConfig, ...configuration } = jsonObject(params["configuration"])
  return {
    ...params,
    message: { ...message, parts: listOf(message["parts"]).map(fileAsPart) },
    configuration: {
      ...configuration,
      returnImmediately: blocking === false,
      ...(pushNotificationConfig === undefined ? {} : { taskPushNotificationConfig: configAs(pushNotificationConfig) })
    }
  }
}

const pushParamsOf = ({
  id,
  pushNotificationConfig,
  pushNotificationConfigId,
  taskId = id ?? null
}: JsonObject): JsonObject => ({
  ...jsonObject(configAs(pushNotificationConfig ?? {})),
  ...(pushNotificationConfigId === undefined ? {} : { id: pushNotificationConfigId }),
  taskId
})

/** Converts a push notification config. Of several schemes the first one is used. */
const configAs = (given: Json): Json => {
  if (!isJsonObject(given) || !isJsonObject(given["authentication"])) return given
  const { schemes, ...authentication } = given["authentication"]
  const scheme = listOf(schemes)[0]
  return { ...given, authentication: { ...authentication, ...(scheme === undefined ? {} : { scheme }) } }
}

const fileAsPart = (part: Json): Json => {
  const file = isJsonObject(part) ? part["file"] : undefined
  if (!isJsonObject(file)) return part
  const { bytes, mimeType, uri } = file
  return {
    ...(bytes === undefined ? {} : { raw: bytes }),
    ...(uri === undefined ? {} : { url: uri }),
    ...(mimeType === undefined ? {} : { mediaType: mimeType })
  }
}

/** Converts a result to version 0.3. */
export const resultOf = (result: JsonObject): Json => {
  if (result["configs"] !== undefined) return listOf(result["configs"]).map(configOf)
  if (typeof result["url"] === "string") return configOf(result)
  if (isEmpty(result)) return null
  const { artifactUpdate, statusUpdate, task = result } = result
  if (isJsonObject(statusUpdate)) {
    const status = statusOf(statusUpdate["status"])
    return { kind: "status-update", ...statusUpdate, status, final: rests.has(status["state"]) }
  }
  if (isJsonObject(artifactUpdate)) {
    return { kind: "artifact-update", ...artifactUpdate, artifact: artifactOf(artifactUpdate["artifact"]) }
  }
  const { artifacts, history, status, ...rest } = jsonObject(task)
  return {
    kind: "task",
    ...rest,
    status: statusOf(status),
    artifacts: listOf(artifacts).map(artifactOf),
    history: listOf(history).map(messageOf)
  }
}

const configOf = (given: Json): JsonObject => {
  const { authentication, taskId = null, ...config } = jsonObject(given)
  if (!isJsonObject(authentication)) return { taskId, pushNotificationConfig: config }
  const { scheme = "", ...rest } = authentication
  return { taskId, pushNotificationConfig: { ...config, authentication: { ...rest, schemes: [scheme] } } }
}

/** States in which a task does not progress by itself. */
const rests: ReadonlySet<Json | undefined> = new Set(["completed", "failed", "canceled", "rejected", "input-required"])

const statusOf = (given: Json | undefined): JsonObject => {
  const { message, state, ...rest } = jsonObject(given)
  const word =
    typeof state === "string" ? state.replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-") : "unknown"
  return { ...rest, state: word, ...(message === undefined ? {} : { message: messageOf(message) }) }
}

const messageOf = (given: Json): JsonObject => {
  const { parts, role, ...rest } = jsonObject(given)
  return { kind: "message", ...rest, role: role === "ROLE_USER" ? "user" : "agent", parts: listOf(parts).map(partOf) }
}

const artifactOf = (given: Json | undefined): JsonObject => {
  const { parts, ...rest } = jsonObject(given)
  return { ...rest, parts: listOf(parts).map(partOf) }
}

const partOf = (part: Json): JsonObject => {
  const { data, mediaType, text, url } = jsonObject(part)
  if (url !== undefined)
    return { kind: "file", file: { uri: url, ...(mediaType === undefined ? {} : { mimeType: mediaType }) } }
  return data === undefined ? { kind: "text", text: text ?? "" } : { kind: "data", data }
}

const listOf = (value: Json | undefined): ReadonlyArray<Json> => (Array.isArray(value) ? value : [])
