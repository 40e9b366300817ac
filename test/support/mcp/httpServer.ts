/** HTTP servers on loopback that tests script themselves. */
import { Effect, Schedule } from "effect"
import * as http from "node:http"
import type { AddressInfo } from "node:net"

/** What reached a server. */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

/** A running server. */
export interface Running {
  readonly port: number
  readonly url: (path?: string) => string
  readonly seen: ReadonlyArray<Seen>
  readonly openSockets: () => number
  /** Ends it at once, connections too. */
  readonly stop: Effect.Effect<void>
}

/** Somebody's connection may hold a port for a moment that a server had and wants again. */
const untilFree = {
  while: (error: NodeJS.ErrnoException) => error.code === "EADDRINUSE",
  schedule: Schedule.spaced("20 millis"),
  times: 250
}

/** Starts a server for the time of the scope. */
export const serve = (handle: (request: Seen, response: http.ServerResponse) => void, port = 0) =>
  Effect.acquireRelease(
    Effect.callback<Running, NodeJS.ErrnoException>((resume) => {
      const seen: Array<Seen> = []
      let sockets = 0
      const server = http.createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk) => chunks.push(chunk))
        request.on("end", () => {
          const { headers, method = "", url = "" } = request
          const one = { method, path: url, headers, body: Buffer.concat(chunks).toString() }
          seen.push(one)
          handle(one, response)
        })
      })
      server.on("connection", (socket) => {
        sockets++
        socket.on("close", () => sockets--)
      })
      server.once("error", (error) => resume(Effect.fail(error)))
      server.listen(port, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        const stop = Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
        resume(
          Effect.succeed({
            port,
            url: (path = "/mcp") => `http://127.0.0.1:${port}${path}`,
            seen,
            openSockets: () => sockets,
            stop
          })
        )
      })
    }).pipe(Effect.retry(untilFree), Effect.orDie),
    (server) => Effect.ignore(server.stop)
  )

export const json = (response: http.ServerResponse, status: number, body: unknown, headers = {}) => {
  response.writeHead(status, { "content-type": "application/json", ...headers })
  response.end(JSON.stringify(body))
}

/** What one small MCP server remembers, over restarts too. */
export class Notebook {
  sessions = new Set<string>()
  tools = ["write", "read", "cut", "wrong", "bomb"]
  written = 0
  reads = 0
  deleted = 0
  streams = new Set<http.ServerResponse>()
  /** How it refuses a session it does not know. */
  unknownSession: 404 | 400 = 404

  changed() {
    const message = { jsonrpc: "2.0", method: "notifications/tools/list_changed" }
    for (const stream of this.streams) stream.write(`data: ${JSON.stringify(message)}\n\n`)
  }
}

/** A small MCP server over Streamable HTTP, with sessions. */
export const mcp = (notebook: Notebook) => (request: Seen, response: http.ServerResponse) => {
  const session = request.headers["mcp-session-id"]
  const known = typeof session === "string" && notebook.sessions.has(session)
  const unknown = () =>
    json(response, notebook.unknownSession, {
      jsonrpc: "2.0",
      id: null,
      error: { code: -32000, message: "Bad Request: No valid session ID provided" }
    })
  if (request.method === "DELETE") {
    notebook.deleted++
    return json(response, 200, {})
  }
  if (request.method === "GET") {
    if (!known) return unknown()
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(": hello\n\n")
    notebook.streams.add(response)
    return void response.on("close", () => notebook.streams.delete(response))
  }
  const { id, method, params } = JSON.parse(request.body)
  const answer = (result: unknown, headers = {}) => json(response, 200, { jsonrpc: "2.0", id, result }, headers)
  if (method === "initialize") {
    const session = `session-${Math.random()}`
    notebook.sessions.add(session)
    return answer(
      {
        protocolVersion: "2025-06-18",
        capabilities: { tools: { listChanged: true } },
        serverInfo: { name: "small", version: "1" }
      },
      { "mcp-session-id": session }
    )
  }
  if (!known) return unknown()
  if (id === undefined) return void response.writeHead(202).end()
  if (method === "tools/list") {
    return answer({ tools: notebook.tools.map((name) => ({ name, inputSchema: { type: "object" } })) })
  }
  switch (params.name) {
    case "write":
      return answer({ content: [{ type: "text", text: `${++notebook.written}` }] })
    case "read":
      notebook.reads++
      response.writeHead(200, { "content-type": "text/event-stream" })
      return response.end(
        notebook.reads === 1
          ? "data: {\n"
          : `data: ${JSON.stringify({ jsonrpc: "2.0", id, result: { content: [] } })}\n\n`
      )
    case "cut":
      notebook.written++
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write("event: message\n")
      return void setImmediate(() => response.destroy())
    case "wrong":
      return json(response, 200, { jsonrpc: "2.0", id: id + 1, result: { content: [] } })
    default:
      return answer({ content: [{ type: "text", text: "x".repeat(11 * 1024 * 1024) }] })
  }
}
