/**
 * Calls tools that a server runs as tasks: starts a task, polls it, and requests its result. An interrupted call
 * cancels its task.
 *
 * Polling lets a task outlive the stream of its request. The result of a task that needs input is requested at once,
 * since its questions arrive with that request.
 */

import type * as McpClient from "effect/ai/McpClient"
import type { McpClientError } from "effect/ai/McpClientError"
import type * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { isRecord, own } from "../../kit/json.ts"
import { shorten } from "../../kit/text.ts"
import type { Handshake } from "./handshake.ts"
import * as JsonRpc from "./jsonRpc.ts"
import { begunBefore } from "./requestFailure.ts"
import { Listener } from "./serverProgress.ts"

/** Creates a transport that calls tools as tasks if the server offers that. */
export const over = (inner: McpClient.Transport, handshake: Pick<Handshake, "capabilities">): McpClient.Transport => {
  const asTasks = new Set<string>()
  return {
    ...inner,
    request: (message, tool) => {
      const { method, params } = message
      if (method === "tools/list") {
        return Effect.map(inner.request(message, tool), (response) =>
          offersTasks(handshake.capabilities) ? noted(response, asTasks) : response
        )
      }
      const name = params?.["name"]
      return method === "tools/call" && typeof name === "string" && asTasks.has(name)
        ? run(inner, message, tool)
        : inner.request(message, tool)
    }
  }
}

const offersTasks = (capabilities: Readonly<Record<string, unknown>>): boolean => {
  const tasks = capabilities["tasks"]
  const requests = isRecord(tasks) ? own(tasks, "requests") : undefined
  const tools = isRecord(requests) ? own(requests, "tools") : undefined
  return isRecord(tools) && own(tools, "call") !== undefined
}

/**
 * Notes the tools that run as tasks. effect's client does not support tasks, and would omit tools that require them.
 */
const noted = (response: McpSchema.JsonRpcResponse, asTasks: Set<string>): McpSchema.JsonRpcResponse => {
  if (response.error !== undefined || !isRecord(response.result)) return response
  const tools = own(response.result, "tools")
  if (!Array.isArray(tools)) return response
  const shown = tools.map((tool: unknown) => {
    if (!isRecord(tool) || typeof tool["name"] !== "string") return tool
    const { execution, ...plain } = tool
    const support = isRecord(execution) ? own(execution, "taskSupport") : undefined
    if (support === "required" || support === "optional") asTasks.add(tool["name"])
    else asTasks.delete(tool["name"])
    return support === "required" ? plain : tool
  })
  return { ...response, result: { ...response.result, tools: shown } }
}

const Task = Schema.Struct({
  taskId: Schema.String,
  status: Schema.Literals(["working", "input_required", "completed", "failed", "cancelled"]),
  statusMessage: Schema.optionalKey(Schema.NullOr(Schema.String)),
  pollInterval: Schema.optionalKey(Schema.NullOr(Schema.Finite))
})
type Task = typeof Task.Type

const decode = Schema.decodeUnknownOption(Task)
const decodeCreated = Schema.decodeUnknownOption(Schema.Struct({ task: Task }))

const run = Effect.fnUntraced(function* (
  inner: McpClient.Transport,
  message: McpSchema.JsonRpcRequest,
  tool: McpSchema.Tool | undefined
): Effect.fn.Return<McpSchema.JsonRpcResponse, McpClientError> {
  const created = yield* inner.request({ ...message, params: { ...message.params, task: {} } }, tool)
  const begun = Option.getOrUndefined(decodeCreated(created.result))
  // A server may respond with a result, or with an error.
  if (begun === undefined) return created
  const { taskId } = begun.task
  // The server has started the task, so no later failure lets the call be sent again.
  const ask = (method: string) =>
    Effect.mapError(inner.request({ jsonrpc: "2.0", id: `task-${nextId++}`, method, params: { taskId } }), begunBefore)
  const cancel = Effect.ignore(Effect.timeoutOption(ask("tasks/cancel"), "1 second"))
  const ended = Effect.andThen(polled(begun.task, ask("tasks/get")), ask("tasks/result"))
  const response = yield* Effect.onInterrupt(ended, () => cancel)
  return { ...response, id: message.id }
})

let nextId = 1

/** Waits until a task has ended or needs input. Reports its messages as the progress of the call. */
const polled = Effect.fnUntraced(function* (
  begun: Task,
  get: Effect.Effect<McpSchema.JsonRpcResponse, McpClientError>
): Effect.fn.Return<void, McpClientError> {
  const listener = yield* Listener
  let task = begun
  let said: string | null | undefined
  for (let count = 1; task.status === "working"; count++) {
    if (listener !== undefined && typeof task.statusMessage === "string" && task.statusMessage !== said) {
      said = task.statusMessage
      yield* listener({ progress: count, message: shorten(said, longest) })
    }
    yield* Effect.sleep(Math.min(Math.max(task.pollInterval ?? usualPause, shortestPause), longestPause))
    const { error, result } = yield* get
    // The result shows why the task can no longer be read.
    if (error !== undefined) return
    const next = decode(result)
    if (Option.isNone(next)) return yield* JsonRpc.broken("the server's description of a task is malformed")
    task = next.value
  }
})

const usualPause = 1_000
const shortestPause = 100
const longestPause = 30_000
const longest = 1_000
