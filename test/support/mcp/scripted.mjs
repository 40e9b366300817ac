/**
 * An MCP server that has what a JSON file says, and tells when the file changed: `node scripted.mjs <file>`.
 *
 * `tools`, `resources`, `resourceTemplates` and `prompts` are listed as they stand; `results` are the answers by
 * the name of a tool, the uri of a resource or the name of a prompt. Calls are noted down in `<file>.calls`.
 */
import { appendFileSync, readFileSync, statSync } from "node:fs"
import { createInterface } from "node:readline"

const [file] = process.argv.slice(2)
const read = () => JSON.parse(readFileSync(file, "utf8"))
const send = (message) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
const version = () => statSync(file, { bigint: true }).mtimeNs

let known = version()
setInterval(() => {
  const now = version()
  if (now === known) return
  known = now
  for (const list of ["tools", "resources", "prompts"]) send({ method: `notifications/${list}/list_changed` })
}, 10).unref()

const list = (key) => (id) => send({ id, result: { [key]: read()[key] ?? [] } })
const unknown = (id, method) => send({ id, error: { code: -32601, message: `Method not found: ${method}` } })
const result = (name) => (id, params) => {
  appendFileSync(`${file}.calls`, `${JSON.stringify(params)}\n`)
  const found = read().results?.[params[name]]
  if (found === undefined) send({ id, error: { code: -32602, message: `nothing is known of ${params[name]}` } })
  else if (found.error !== undefined) send({ id, error: found.error })
  else send({ id, result: found })
}

const methods = {
  initialize: (id, { protocolVersion }) =>
    send({
      id,
      result: {
        protocolVersion,
        capabilities: {
          tools: { listChanged: true },
          ...(read().resources === undefined ? {} : { resources: { listChanged: true } }),
          ...(read().prompts === undefined ? {} : { prompts: { listChanged: true } })
        },
        serverInfo: { name: "scripted", version: "0" }
      }
    }),
  ping: (id) => send({ id, result: {} }),
  "tools/list": list("tools"),
  "resources/list": list("resources"),
  // Many a server with resources knows no such list.
  "resources/templates/list": (id) =>
    (read().resourceTemplates === undefined ? unknown : list("resourceTemplates"))(id, "resources/templates/list"),
  "prompts/list": list("prompts"),
  "tools/call": result("name"),
  "resources/read": result("uri"),
  "prompts/get": result("name")
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  if (methods[method] === undefined) unknown(id, method)
  else methods[method](id, params ?? {})
})
