/**
 * An MCP server over HTTP that kills itself in the middle of a call: `node mortal.mjs <port> <log> [sse]`.
 *
 * It notes each call in the log. The tool says how far its response gets: `silent` sends nothing, `headers` and
 * `halfJson` begin a JSON body, `stream` opens an event stream, `numbered` sends an event with an id first, `half`
 * begins the event of its response.
 */
import { appendFileSync } from "node:fs"
import { createServer } from "node:http"

const [port, log, legacy] = process.argv.slice(2)
const tools = ["silent", "headers", "halfJson", "stream", "numbered", "half"].map((name) => ({
  name,
  inputSchema: { type: "object" }
}))
const die = () => process.kill(process.pid, "SIGKILL")
const json = (response, body, headers = {}) => {
  response.writeHead(200, { "content-type": "application/json", ...headers })
  response.end(JSON.stringify(body))
}
const capabilities = { tools: {} }
const results = {
  initialize: ({ protocolVersion }) => ({
    protocolVersion,
    capabilities,
    serverInfo: { name: "mortal", version: "1" }
  }),
  "server/discover": () => ({ supportedVersions: ["2026-07-28"], capabilities, ttlMs: 0, cacheScope: "public" }),
  "tools/list": () => ({ tools, resultType: "complete", ttlMs: 0, cacheScope: "public" }),
  ping: () => ({})
}
const endings = {
  silent: die,
  headers: (response) => {
    response.writeHead(200, { "content-type": "application/json" })
    response.flushHeaders()
    setTimeout(die, 50)
  },
  halfJson: (response) => {
    response.writeHead(200, { "content-type": "application/json" })
    response.write(`{"jsonrpc":"2.0","id":`)
    setTimeout(die, 50)
  },
  stream: (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(": working\n\n")
    setTimeout(die, 50)
  },
  numbered: (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write("id: 1\nretry: 100\ndata:\n\n")
    setTimeout(die, 50)
  },
  half: (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(`data: {"jsonrpc":"2.0",`)
    setTimeout(die, 50)
  }
}

let events
createServer((request, response) => {
  if (request.method === "GET") {
    if (legacy === undefined) return void response.writeHead(405).end()
    events = response
    response.writeHead(200, { "content-type": "text/event-stream" })
    return void response.write("event: endpoint\ndata: /messages\n\n")
  }
  if (request.method === "DELETE") return void response.writeHead(200).end()
  let body = ""
  request.on("data", (chunk) => (body += chunk))
  request.on("end", () => {
    const { id, method, params } = JSON.parse(body)
    if (method === "tools/call") {
      appendFileSync(log, `${params.name}\n`)
      if (legacy === undefined || params.name === "silent") return endings[params.name](response)
      response.writeHead(202).end()
      if (params.name === "half") events.write(`event: message\ndata: {"jsonrpc":"2.0",`)
      return void setTimeout(die, 50)
    }
    if (id === undefined) return void response.writeHead(202).end()
    const result = results[method]?.(params)
    const answer = { jsonrpc: "2.0", id, ...(result ? { result } : { error: { code: -32601, message: "unknown" } }) }
    if (legacy === undefined) return json(response, answer)
    response.writeHead(202).end()
    events.write(`event: message\ndata: ${JSON.stringify(answer)}\n\n`)
  })
}).listen(Number(port), "127.0.0.1", () => process.stdout.write("listening\n"))
