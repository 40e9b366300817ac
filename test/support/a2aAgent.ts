/** An agent of another service: the server of `@a2a-js/sdk` as it comes, on a free port of loopback. */
import { type AgentCard, type Part, Role, type Task, TaskState } from "@a2a-js/sdk"
import {
  AgentEvent,
  type AgentExecutor,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  type RequestContext,
  ServerCallContext
} from "@a2a-js/sdk/server"
import { LegacyJsonRpcTransportHandler } from "@a2a-js/sdk/compat/v0_3/server"
import { Effect, type Scope } from "effect"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import type { Socket } from "node:net"

/** What an agent does with a message. */
export interface Turn {
  readonly text: string
  readonly data: unknown
  /** Whether the message is to a task that waited for it. */
  readonly isReply: boolean
  /** Publishes a piece of the answer. */
  readonly say: (text: string, append?: boolean) => void
  readonly file: (bytes: Uint8Array, mediaType: string) => void
  /** Publishes how the task stands. */
  readonly status: (state: TaskState, ...parts: ReadonlyArray<string | object>) => void
  /** Replies without a task. */
  readonly reply: (text: string) => void
}

export interface Settings {
  readonly version?: "1.0" | "0.3"
  readonly streaming?: boolean
  /** Changes the card as it is sent. */
  readonly card?: (card: object, url: string) => object
  /** Answers a request itself, before the agent. */
  readonly intercept?: (request: IncomingMessage, response: ServerResponse) => boolean
  readonly turn: (turn: Turn) => Promise<void> | void
}

export interface Running {
  readonly url: string
  /** The methods that were called, in order. */
  readonly methods: ReadonlyArray<string>
  readonly messageIds: ReadonlyArray<string>
  readonly cancelled: ReadonlyArray<string>
  readonly headers: ReadonlyArray<IncomingMessage["headers"]>
  /** Breaks every open connection. */
  readonly drop: () => void
}

const part = (content: string | object): Part => ({
  content: typeof content === "string" ? { $case: "text", value: content } : { $case: "data", value: content },
  metadata: undefined,
  filename: "",
  mediaType: ""
})

const message = (taskId: string, contextId: string, parts: ReadonlyArray<Part>) => ({
  messageId: `${taskId}-${Math.random()}`,
  taskId,
  contextId,
  role: Role.ROLE_AGENT,
  parts: [...parts],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: []
})

const turnOf = ({ contextId, task, taskId, userMessage }: RequestContext, bus: ExecutionEventBus): Turn => {
  const artifact = (parts: ReadonlyArray<Part>, append: boolean, artifactId: string) =>
    bus.publish(
      AgentEvent.artifactUpdate({
        taskId,
        contextId,
        artifact: { artifactId, name: "", description: "", parts: [...parts], metadata: undefined, extensions: [] },
        append,
        lastChunk: false,
        metadata: undefined
      })
    )
  const values = (kind: "text" | "data") =>
    userMessage.parts.flatMap(({ content }) => (content?.$case === kind ? [content.value] : []))
  return {
    text: values("text").join(""),
    data: values("data")[0],
    isReply: task !== undefined,
    say: (text, append = false) => artifact([part(text)], append, "answer"),
    file: (bytes, mediaType) =>
      artifact(
        [{ content: { $case: "raw", value: Buffer.from(bytes) }, metadata: undefined, filename: "f", mediaType }],
        false,
        "file"
      ),
    status: (state, ...parts) => {
      const said = parts.length === 0 ? undefined : message(taskId, contextId, parts.map(part))
      const status = { state, message: said, timestamp: new Date().toISOString() }
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: undefined }))
    },
    reply: (text) => bus.publish(AgentEvent.message(message("", contextId, [part(text)])))
  }
}

const executorOf = (settings: Settings, cancelled: Array<string>): AgentExecutor => ({
  execute: async (context, bus) => {
    const { contextId, task, taskId } = context
    const turn = turnOf(context, bus)
    let hasTask = false
    const begun = () => {
      if (hasTask) return
      hasTask = true
      const status = { state: TaskState.TASK_STATE_WORKING, message: undefined, timestamp: undefined }
      const fresh: Task = { id: taskId, contextId, artifacts: [], history: [], metadata: undefined, status }
      bus.publish(AgentEvent.task({ ...(task ?? fresh), status }))
    }
    await settings.turn({
      ...turn,
      say: (...said) => (begun(), turn.say(...said)),
      file: (...given) => (begun(), turn.file(...given)),
      status: (...told) => (begun(), turn.status(...told))
    })
  },
  cancelTask: (taskId, bus) => {
    cancelled.push(taskId)
    const status = { state: TaskState.TASK_STATE_CANCELED, message: undefined, timestamp: undefined }
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId: "", status, metadata: undefined }))
    return Promise.resolve()
  }
})

const cardOf = (url: string, { streaming = true }: Settings): AgentCard => ({
  name: "Teller",
  description: "Knows what is owed.",
  version: "3.1.0",
  supportedInterfaces: [
    { url: `${url}/rpc`, protocolBinding: "GRPC", tenant: "", protocolVersion: "1.0" },
    { url: `${url}/rpc`, protocolBinding: "JSONRPC", tenant: "", protocolVersion: "1.0" },
    { url: `${url}/rpc`, protocolBinding: "JSONRPC", tenant: "", protocolVersion: "0.3" }
  ],
  provider: undefined,
  capabilities: { streaming, pushNotifications: false, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [
    {
      id: "owe",
      name: "Debts",
      description: "Adds up debts",
      tags: [],
      examples: [],
      inputModes: [],
      outputModes: [],
      securityRequirements: []
    }
  ],
  signatures: []
})

/** The card as an agent of version 0.3 publishes it. */
const olderCard = (url: string, { streaming = true }: Settings) => ({
  name: "Teller",
  description: "Knows what is owed.",
  version: "3.1.0",
  protocolVersion: "0.3.0",
  url: `${url}/rpc`,
  preferredTransport: "JSONRPC",
  capabilities: { streaming },
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [{ id: "owe", name: "Debts", description: "Adds up debts", tags: [] }]
})

const readBody = async (request: IncomingMessage): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  for await (const chunk of request) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}

const listening = (server: Server) =>
  new Promise<string>((resolve) =>
    server.listen(0, "127.0.0.1", () => {
      const address = server.address()
      resolve(`http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`)
    })
  )

/** Runs an agent for the time of the scope. */
export const run = (settings: Settings): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.gen(function* () {
    const methods: Array<string> = []
    const messageIds: Array<string> = []
    const cancelled: Array<string> = []
    const headers: Array<IncomingMessage["headers"]> = []
    const sockets = new Set<Socket>()
    const handlers: { card?: object; handle?: (request: IncomingMessage, response: ServerResponse) => Promise<void> } =
      {}
    const server = createServer((request, response) => {
      headers.push(request.headers)
      if (settings.intercept?.(request, response) === true) return
      if (request.method === "POST") void handlers.handle?.(request, response)
      else response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(handlers.card))
    })
    server.on("connection", (socket) => {
      sockets.add(socket)
      socket.on("close", () => sockets.delete(socket))
    })
    const drop = () => {
      for (const socket of sockets) socket.destroy()
    }
    const url = yield* Effect.acquireRelease(
      Effect.promise(() => listening(server)),
      () => Effect.promise(() => new Promise<void>((resolve) => (server.close(() => resolve()), drop())))
    )
    const core = new DefaultRequestHandler(
      cardOf(url, settings),
      new InMemoryTaskStore(),
      executorOf(settings, cancelled)
    )
    const rpc = new JsonRpcTransportHandler(core)
    const older = new LegacyJsonRpcTransportHandler(core)
    const written = settings.version === "0.3" ? olderCard(url, settings) : cardOf(url, settings)
    handlers.card = settings.card?.(written, url) ?? written
    handlers.handle = async (request, response) => {
      const body = JSON.parse(await readBody(request))
      methods.push(body.method)
      if (body.params?.message?.messageId !== undefined) messageIds.push(body.params.message.messageId)
      const requestedVersion = String(request.headers["a2a-version"] ?? "0.3")
      const context = new ServerCallContext({ requestedVersion })
      const reply = await (requestedVersion === "0.3" ? older : rpc).handle(body, context)
      if (!(Symbol.asyncIterator in reply)) {
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(reply))
        return
      }
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write("retry: 100\n\n: hello\n\n")
      try {
        for await (const event of reply) response.write(`data: ${JSON.stringify(event)}\n\n`)
      } catch (error) {
        const refusal = { jsonrpc: "2.0", id: body.id, error: JsonRpcTransportHandler.mapToJSONRPCError(error) }
        response.write(`data: ${JSON.stringify(refusal)}\n\n`)
      }
      response.end()
    }
    return { url, methods, messageIds, cancelled, headers, drop }
  })

/** A promise that others keep. */
export const gate = () => {
  let open: () => void = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { open, opened }
}
