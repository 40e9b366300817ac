/**
 * An MCP server on standard streams that misbehaves on demand.
 *
 * The first argument is a mode, for what happens before or besides calls; the
 * tools are what can go wrong in one call. It needs no package, so it starts fast.
 */
import { spawn } from "node:child_process"
import { appendFileSync, closeSync } from "node:fs"
import { createInterface } from "node:readline"

const [mode = "", side = "", complaint = ""] = process.argv.slice(2)
const write = (text) => process.stdout.write(`${text}\n`)
const send = (message) => write(JSON.stringify({ jsonrpc: "2.0", ...message }))
const note = (text) => side !== "" && appendFileSync(side, `${text}\n`)
const text = (text) => ({ content: [{ type: "text", text }] })
const tool = (name, more) => ({ name, inputSchema: { type: "object" }, ...more })

// Each piece is read by itself.
const complain = ([piece, ...later]) =>
  process.stderr.write(piece, () => (later.length === 0 ? process.exit(3) : setTimeout(() => complain(later), 50)))

const deafForever = "process.on('SIGTERM', () => {}); process.on('SIGHUP', () => {}); setInterval(() => {}, 1000)"

let added = 0
let asked = 0
const questions = new Map()

const tools = {
  say: (id, { text: said }) => send({ id, result: text(said) }),
  foreign: (id) => {
    for (const other of [id + 1, id + 2, `${id}`, -id, "kernai-1", null])
      send({ id: other ?? 999, result: text("forged") })
    send({ id, result: text("mine") })
    send({ id, result: text("again") })
  },
  sampling: (id) => {
    const question = `q${asked++}`
    questions.set(question, (answer) => send({ id, result: text(JSON.stringify(answer)) }))
    send({ id: question, method: "sampling/createMessage", params: { messages: [], maxTokens: 1 } })
  },
  // A question under the id of the call it belongs to is no answer to it.
  clash: (id) => {
    questions.set(id, () => send({ id, result: text("mine") }))
    send({ id, method: "roots/list" })
  },
  chatter: (id) => {
    write("listening on nothing")
    write("")
    process.stdout.write("\r\n  \n")
    send({ id, result: text("still here") })
  },
  log: (id) => {
    write("[info] listening on nothing")
    write("[2026-11-22 10:00:00] DEBUG {")
    write("[]")
    write("{'level': 'info'}")
    write("{")
    write("}")
    write(JSON.stringify({ level: 30, msg: "request", req: { id: 1, method: "GET" } }))
    write(JSON.stringify({ level: "error", id: "req-1", error: "boom" }))
    write(JSON.stringify({ level: "info", id, method: "GET", url: "/x" }))
    write(`{"error":"boom", oops`)
    write(`{"id":"req-1","error":"boom", oops`)
    write(JSON.stringify({ level: 20, id: 7, received: { jsonrpc: "2.0", id, method: "tools/call" } }))
    write(`[debug] received ${JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call" })}`)
    write(JSON.stringify([{ level: 30, msg: "call" }, 1]))
    write(`{"nested":${"[".repeat(200)}${"]".repeat(200)}}`)
    send({ id, result: text("logged") })
  },
  flood: (id) => {
    for (let index = 0; index < 5_000; index++) send({ method: "notifications/tools/list_changed" })
    send({ id, result: text("flooded") })
  },
  paramless: (id) => {
    send({ method: "notifications/message", params: null })
    send({ id: "p", method: "ping", params: null })
    send({ id, result: text("nothing to tell") })
  },
  batch: (id) =>
    write(
      JSON.stringify([
        { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1 } },
        { jsonrpc: "2.0", id, result: text("one of two") }
      ])
    ),
  cut: (id) => {
    const line = JSON.stringify({ jsonrpc: "2.0", id, result: text("é世界") })
    const bytes = Buffer.from(`${line}\n`)
    let at = bytes.findIndex((byte) => byte > 127)
    process.stdout.write(bytes.subarray(0, at))
    // Bytes that are written without a pause come together.
    const next = () => {
      if (at < bytes.length) process.stdout.write(bytes.subarray(at, ++at), () => setTimeout(next, 5))
    }
    setTimeout(next, 5)
  },
  halves: (id) => {
    const line = JSON.stringify({ jsonrpc: "2.0", id, result: text("h".repeat(3_000_000)) })
    process.stdout.write(line.slice(0, 2_000_000), () => setTimeout(() => write(line.slice(2_000_000)), 5))
  },
  // One write, so that both lines arrive together.
  rubbish: (id) =>
    process.stdout.write(
      `{"jsonrpc": "2.0", oops\n${JSON.stringify({ jsonrpc: "2.0", id, result: text("after rubbish") })}\n`
    ),
  question: (id) => send({ id, result: { resultType: "input_required", inputRequests: {}, requestState: "s" } }),
  weird: (id) => send({ id, result: { content: [{ type: "hologram", data: "x" }] } }),
  empty: (id) => send({ id, result: null }),
  proto: (id) =>
    write(
      `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}},"__proto__":{"polluted":1}}}`
    ),
  refuse: (id) => send({ id, error: { code: -32000, message: `no: ${process.env.SECRET ?? ""}` } }),
  fail: (id) => send({ id, result: { ...text("bad path"), isError: true } }),
  env: (id) => send({ id, result: text(JSON.stringify(process.env)) }),
  cwd: (id) => send({ id, result: text(process.cwd()) }),
  argv: (id) => send({ id, result: text(JSON.stringify(process.argv.slice(2))) }),
  // Works for a time, and reports so, or not.
  busy: async (id, { every, most = every, total }, { progressToken } = {}) => {
    for (let at = every; at <= total; at += every) {
      await new Promise((resolve) => setTimeout(resolve, every))
      if (at <= most) send({ method: "notifications/progress", params: { progressToken, progress: at, total } })
    }
    send({ id, result: text("busy no more") })
  },
  wait: (id) => {
    note(`waiting ${id}`)
    if (mode === "hanging") process.stderr.write("waiting for a lock\n")
  },
  shut: (id) => {
    process.stdin.destroy()
    closeSync(0)
    setInterval(() => {}, 1_000)
    setTimeout(() => send({ id, result: text("shut") }), 20)
  },
  // It says no more, and stays.
  hush: (id, { answer }) =>
    process.stdout.write(`${answer ? JSON.stringify({ jsonrpc: "2.0", id, result: text("hush") }) : ""}\n`, () =>
      closeSync(1)
    ),
  lastWords: (id) => {
    send({ id, result: text("w".repeat(60_000)) })
    process.exit(0)
  },
  // It goes, and somebody else holds its output open.
  leave: () => {
    spawn(process.execPath, ["-e", deafForever], { stdio: ["ignore", "inherit", "ignore"] })
    process.exit(1)
  },
  deaf: (id) => {
    send({ id, result: text("not listening") })
    setImmediate(() => process.kill(process.pid, "SIGSTOP"))
  },
  write: (id) => {
    note("written")
    send({ id, result: text("done") })
  },
  writeAndDie: () => {
    note("written")
    process.exit(1)
  },
  die: () => process.kill(process.pid, "SIGKILL"),
  add: (id) => {
    added++
    send({ method: "notifications/tools/list_changed" })
    send({ id, result: text("added") })
  },
  broken: () => write(`{"jsonrpc": "2.0", oops`),
  brokenLate: (id) => write(`{"id":${id},"result":{}, oops,"jsonrpc":"2.0"}`),
  nameless: (id) => write(JSON.stringify({ id, result: text("in no protocol") })),
  deep: (id) =>
    write(
      `{"jsonrpc":"2.0","id":${id},"result":{"content":[],"structuredContent":{"x":${"[".repeat(200)}${"]".repeat(200)}}}}`
    ),
  huge: () => process.stdout.write("x".repeat(11 * 1024 * 1024)),
  uncorrelated: () => send({ id: null, error: { code: -32700, message: "Parse error" } })
}

const listed = () => {
  const all = Object.keys(tools).map((name) => tool(name))
  for (let index = 0; index < added; index++) all.push(tool(`added${index}`))
  if (mode === "refs") {
    all.push(
      tool("remote", { inputSchema: { type: "object", properties: { a: { $ref: "http://evil.example/x" } } } }),
      tool("relative", { inputSchema: { type: "object", $defs: { a: { $ref: "other.json" } } } }),
      tool("output", { outputSchema: { type: "object", allOf: [{ $dynamicRef: "https://evil.example/y" }] } }),
      tool("local", {
        inputSchema: {
          type: "object",
          properties: { $ref: { $ref: "#/$defs/a" } },
          $defs: { a: { const: { $ref: "http://data" } } }
        }
      })
    )
  }
  if (mode === "malformed") {
    const odd = [
      tool("half", { inputSchema: 7 }),
      { inputSchema: { type: "object" } },
      null,
      "tool",
      tool("desc", { description: 7 })
    ]
    all.unshift(...odd)
  }
  return { tools: all }
}

const methods = {
  initialize: (id, params) => {
    if (mode === "silent") return
    if (mode === "hung") return void process.stderr.write("waiting for a port\n")
    if (mode === "dead") process.exit(3)
    if (mode === "complaining") return complain(complaint.split("\f"))
    if (mode === "early") for (let later = 1; later < 10; later++) send({ id: id + later, result: listed() })
    note(`offered ${params.protocolVersion}`)
    if (mode === "strict" && params.protocolVersion !== "2024-11-05") {
      return send({
        id,
        error: { code: -32602, message: "Unsupported protocol version", data: { supported: ["2024-11-05"] } }
      })
    }
    send({
      id,
      result: {
        protocolVersion: mode === "future" ? "2099-01-01" : params.protocolVersion,
        capabilities: { tools: { listChanged: true }, resources: {} },
        serverInfo: { name: "hostile", version: "0" }
      }
    })
  },
  "tools/list": (id, params) => {
    note("tools/list")
    if (mode === "loop") return send({ id, result: { ...listed(), nextCursor: "same" } })
    if (mode === "endless") return send({ id, result: { tools: [tool("a")], nextCursor: String(Math.random()) } })
    if (mode === "bloated") {
      const description = "x".repeat(9 * 1024 * 1024)
      return send({ id, result: { tools: [tool("a", { description })], nextCursor: String(Math.random()) } })
    }
    if (mode === "null") return send({ id, result: { ...listed(), nextCursor: null } })
    // It takes no cursor for the first page, as it writes it.
    if (mode === "blank") return send({ id, result: { ...listed(), nextCursor: "" } })
    if (mode === "second") {
      const all = listed().tools
      return send({
        id,
        result: params?.cursor === "" ? { tools: all.slice(3) } : { tools: all.slice(0, 3), nextCursor: "" }
      })
    }
    if (mode === "pages") {
      const all = listed().tools
      const at = Number(params?.cursor ?? 0)
      return send({
        id,
        result: { tools: all.slice(at, at + 10), ...(at + 10 < all.length ? { nextCursor: `${at + 10}` } : {}) }
      })
    }
    send({ id, result: listed() })
  },
  "tools/call": (id, params) => tools[params.name](id, params.arguments ?? {}, params._meta),
  "resources/templates/list": (id, params) => {
    const templates = ["a", "b", "c"].map((name) => ({ name, uriTemplate: `x://${name}/{id}` }))
    if (mode === "null") return send({ id, result: { resourceTemplates: templates, nextCursor: null } })
    if (mode === "blank") return send({ id, result: { resourceTemplates: templates, nextCursor: "" } })
    const at = Number(params?.cursor ?? 0)
    send({ id, result: { resourceTemplates: [templates[at]], ...(at < 2 ? { nextCursor: `${at + 1}` } : {}) } })
  },
  ping: (id) => (mode === "mute" ? note("ping") : send({ id, result: {} }))
}

if (mode === "parent") {
  // It ends when its input does, and its child does not.
  const child = spawn(process.execPath, ["-e", deafForever], { stdio: "ignore" })
  child.unref()
  note(`pids ${process.pid} ${child.pid}`)
} else if (mode === "stubborn") {
  // Neither it nor its child ends when asked to.
  process.on("SIGTERM", () => note("SIGTERM"))
  setInterval(() => {}, 1000)
  const child = spawn(process.execPath, ["-e", deafForever], { stdio: "ignore" })
  note(`pids ${process.pid} ${child.pid}`)
} else note(`pids ${process.pid}`)

// The revision without a handshake, and what it tells of changes to who asks.
if (mode === "modern") {
  Object.assign(methods, {
    "server/discover": (id) =>
      send({
        id,
        result: {
          supportedVersions: ["2026-07-28"],
          capabilities: { tools: { listChanged: true } },
          ttlMs: 0,
          cacheScope: "public"
        }
      }),
    "tools/list": (id) => send({ id, result: { ...listed(), resultType: "complete", ttlMs: 0, cacheScope: "public" } }),
    "subscriptions/listen": (id, params) => {
      note(`listens ${Object.keys(params.notifications)}`)
      setTimeout(() => send({ method: "notifications/tools/list_changed" }), 20)
    }
  })
}

const input = createInterface({ input: process.stdin })
// It has a little to do yet.
if (mode === "tidy") input.on("close", () => setTimeout(() => note("tidied up"), 10))
input.on("line", (line) => {
  const { error, id, method, params, result } = JSON.parse(line)
  if (method === undefined) questions.get(id)?.(error ?? result)
  else if (method === "notifications/cancelled") note(`cancelled ${params.requestId}`)
  else if (id !== undefined && methods[method] !== undefined) methods[method](id, params)
  else if (id !== undefined) send({ id, error: { code: -32601, message: `Method not found: ${method}` } })
})
