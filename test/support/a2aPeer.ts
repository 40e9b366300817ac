/** Clients of both bindings of A2A 1.0 that know nothing but the wire, to see what a server replies. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"

/** The parameters of a call. */
export type Fields = { readonly [name: string]: unknown }

/** A task, with all its fields. */
export interface TaskJson {
  readonly id: string
  readonly contextId: string
  readonly status: { readonly state: string; readonly timestamp: string }
  readonly history: ReadonlyArray<{ readonly role: string; readonly parts: ReadonlyArray<{ readonly text: string }> }>
}

/** The result of any method. */
interface ResultJson extends TaskJson {
  readonly task: TaskJson
  readonly statusUpdate: Pick<TaskJson, "status">
  readonly tasks: ReadonlyArray<TaskJson>
  readonly nextPageToken: string
  readonly pageSize: number
  readonly totalSize: number
}

/** A reply of either binding. */
export interface Reply {
  readonly result: ResultJson
  /** The results of a stream. */
  readonly events: ReadonlyArray<ResultJson>
  /** The code of JSON-RPC or the status over REST, and the reason. */
  readonly error: readonly [code: number, reason: string] | undefined
  readonly type: string | null
}

/** A client of one binding, without any knowledge about errors. */
export interface Client {
  readonly binding: "JSONRPC" | "HTTP+JSON"
  readonly call: (method: string, params?: Fields, headers?: Record<string, string>) => Effect.Effect<Reply>
  /** Opens a stream, and returns once its first event has arrived. */
  readonly open: (method: string, params: Fields) => Effect.Effect<Effect.Effect<Reply>>
}

const paths: { readonly [method: string]: (params: Fields) => readonly [method: string, path: string] } = {
  SendMessage: () => ["POST", "/message:send"],
  SendStreamingMessage: () => ["POST", "/message:stream"],
  GetTask: ({ id, historyLength }) => [
    "GET",
    `/tasks/${id}${historyLength === undefined ? "" : `?historyLength=${historyLength}`}`
  ],
  ListTasks: (params) => {
    const query = Object.entries(params).map(([name, value]): [string, string] => [name, String(value)])
    return ["GET", `/tasks?${new URLSearchParams(query)}`]
  },
  CancelTask: ({ id }) => ["POST", `/tasks/${id}:cancel`],
  SubscribeToTask: ({ id }) => ["POST", `/tasks/${id}:subscribe`],
  CreateTaskPushNotificationConfig: ({ taskId }) => ["POST", `/tasks/${taskId}/pushNotificationConfigs`],
  GetTaskPushNotificationConfig: ({ id, taskId }) => ["GET", `/tasks/${taskId}/pushNotificationConfigs/${id}`],
  ListTaskPushNotificationConfigs: ({ taskId }) => ["GET", `/tasks/${taskId}/pushNotificationConfigs`],
  DeleteTaskPushNotificationConfig: ({ id, taskId }) => ["DELETE", `/tasks/${taskId}/pushNotificationConfigs/${id}`],
  GetExtendedAgentCard: () => ["GET", "/extendedAgentCard"],
  NoSuchMethod: () => ["GET", "/noSuchMethod"]
}

const readText = (text: string, status: number, type: string | null): Reply => {
  if (type?.startsWith("text/event-stream") === true) {
    const events = [...text.matchAll(/^data: (.*)$/gm)].map(([, data = ""]) => JSON.parse(data))
    return { ...nothing, events: events.map((event) => event.result ?? event), type }
  }
  const body = JSON.parse(text)
  const { error } = body
  if (error === undefined) return { ...nothing, result: body.result ?? body, type }
  const [info] = error.data ?? error.details
  assert.strictEqual(info["@type"], "type.googleapis.com/google.rpc.ErrorInfo")
  assert.strictEqual(info.domain, "a2a-protocol.org")
  assert.isString(error.message)
  if (error.details !== undefined) assert.strictEqual(error.code, status)
  return { ...nothing, error: [error.code, info.reason], type }
}

const nothing = { result: JSON.parse("{}"), events: [], error: undefined }

/** Returns once the body begins, with the reply that it becomes. */
const beginning = async (response: Response): Promise<Effect.Effect<Reply>> => {
  const decoder = new TextDecoder()
  const reader = response.body?.getReader()
  const first = decoder.decode((await reader?.read())?.value, { stream: true })
  return Effect.promise(async () => {
    let text = first
    while (true) {
      const next = await reader?.read()
      if (next?.done !== false) return readText(text, response.status, response.headers.get("content-type"))
      text += decoder.decode(next.value, { stream: true })
    }
  })
}

type Send = (method: string, params: Fields, headers: Record<string, string>) => Promise<Response>

const clientOf = (binding: Client["binding"], send: Send): Client => {
  const open = (method: string, params: Fields, headers: Record<string, string> = {}) =>
    Effect.promise(async () => beginning(await send(method, params, headers)))
  return { binding, open, call: (method, params = {}, headers) => Effect.flatten(open(method, params, headers)) }
}

export const jsonRpc = (url: string): Client =>
  clientOf("JSONRPC", (method, params, headers) =>
    fetch(`${url}/a2a`, {
      method: "POST",
      headers: { "content-type": "application/json", "a2a-version": "1.0", ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })
    })
  )

export const rest = (url: string): Client =>
  clientOf("HTTP+JSON", (name, params, headers) => {
    const [method = "GET", path = ""] = paths[name]?.(params) ?? []
    return fetch(`${url}/a2a${path}`, {
      method,
      headers: { "content-type": "application/a2a+json", "a2a-version": "1.0", ...headers },
      ...(method === "POST" ? { body: JSON.stringify(params) } : {})
    })
  })

/** Codes over JSON-RPC and statuses over REST, section 5.4. */
const errors = {
  TASK_NOT_FOUND: [-32001, 404],
  TASK_NOT_CANCELABLE: [-32002, 409],
  PUSH_NOTIFICATION_NOT_SUPPORTED: [-32003, 400],
  UNSUPPORTED_OPERATION: [-32004, 400],
  CONTENT_TYPE_NOT_SUPPORTED: [-32005, 415],
  EXTENDED_AGENT_CARD_NOT_CONFIGURED: [-32007, 400],
  EXTENSION_SUPPORT_REQUIRED: [-32008, 400],
  VERSION_NOT_SUPPORTED: [-32009, 400],
  METHOD_NOT_FOUND: [-32601, 404],
  INVALID_PARAMS: [-32602, 400]
} as const

/** Expects an error by its reason, with the code that the binding has for it. */
export const fails = (client: Client, reason: keyof typeof errors, reply: Effect.Effect<Reply>) =>
  Effect.map(reply, ({ error, type }) => {
    const [code, status] = errors[reason]
    assert.deepStrictEqual(error, [client.binding === "JSONRPC" ? code : status, reason])
    assert.match(type ?? "", /^application\/json/)
  })
