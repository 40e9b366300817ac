/** A small MCP server over HTTP. */
import { Effect } from "effect"
import type * as http from "node:http"
import * as Loopback from "../loopback.ts"

/** Starts a server for the time of the scope; MCP is at `/mcp`. */
export const serve = (handle: Loopback.Handle, port?: number) => Effect.map(Loopback.serve(handle, port), atMcp)

/** A server that is gone. */
export const gone = Effect.map(Loopback.gone, (server) => atMcp(server))

const atMcp = (server: Loopback.Running) => ({ ...server, url: (path = "/mcp") => server.url(path) })

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
export const mcp = (notebook: Notebook) => (request: Loopback.Seen, response: http.ServerResponse) => {
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
    const annotations = (name: string) => ({ readOnlyHint: name === "read" })
    return answer({
      tools: notebook.tools.map((name) => ({ name, inputSchema: { type: "object" }, annotations: annotations(name) }))
    })
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
