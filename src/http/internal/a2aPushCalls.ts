/** Answers the calls that set, read and remove push notification configs. */

import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { isJsonObject, type JsonObject, jsonObject } from "../../kit/json.ts"
import { type HttpProblem, NotFound } from "../HttpProblem.ts"
import type { CallerRuns } from "../ServedRuns.ts"
import type { Notifier } from "./a2aNotifier.ts"
import { decode, type PushConfig, shown } from "./a2aPush.ts"
import { type Call, read, type Send } from "./a2aRequest.ts"

/** Names a task and a configuration of it, or the first one. */
const ConfigOf = Schema.Struct({ taskId: Schema.String, id: Schema.optionalKey(Schema.String) })

/** Returns whether a method is about push notification configs. */
export const isPush = ({ method }: Call): boolean =>
  /^(?:CreateTask|GetTask|ListTask|DeleteTask)PushNotificationConfigs?$/.test(method)

/** Returns whether a call needs push notifications, because of its method or of the configuration in its message. */
export const isNeeded = (call: Call): boolean =>
  isPush(call) || isJsonObject(jsonObject(jsonObject(call.params)["configuration"])["taskPushNotificationConfig"])

/** Returns the result of a call. */
export const resultOf = Effect.fnUntraced(function* (
  runs: CallerRuns,
  notifier: Notifier,
  { method, params, version }: Call
): Effect.fn.Return<JsonObject, HttpProblem> {
  const { id = "", taskId } = yield* read(ConfigOf, params)
  if (method.startsWith("Create")) {
    const { taskId: _, tenant: __, ...given } = jsonObject(params)
    const config = yield* checked(notifier, given, version)
    yield* notifier.set(runs, taskId, config)
    return shown(taskId, config)
  }
  if (method.startsWith("Delete")) {
    yield* notifier.remove(runs, taskId, id)
    return {}
  }
  const configs = yield* notifier.list(runs, taskId)
  if (method.startsWith("List")) return { configs: configs.map((config) => shown(taskId, config)), nextPageToken: "" }
  const found = configs.find((config) => id === "" || config.id === id)
  return found === undefined ? yield* new NotFound({ what: "run", id: taskId }) : shown(taskId, found)
})

/** Returns the configuration in a message, so that one that is not accepted starts nothing. */
export const sentWith = (
  notifier: Notifier | undefined,
  { configuration }: Send,
  version: Call["version"]
): Effect.Effect<PushConfig | undefined, HttpProblem> => {
  const given = configuration?.taskPushNotificationConfig
  if (given === undefined || given === null || notifier === undefined) return Effect.undefined
  const { taskId: _, tenant: __, ...config } = jsonObject(given)
  return checked(notifier, config, version)
}

const checked = (notifier: Notifier, given: JsonObject, version: Call["version"]) =>
  Effect.tap(decode(given, version), notifier.check)
