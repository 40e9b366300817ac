/** Requests that a page or program forges, at every door that listens. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Option, Redacted } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import { connect } from "node:net"
import { text } from "node:stream/consumers"
import { Agent, Kernel, MediaStore, ProtocolRegistry, RunStore, SkillRegistry } from "kernai"
import { A2a, Access, AgUi, AiSdkUi, HttpKernel } from "kernai/http"
import { McpServe } from "kernai/mcp"
import { Studio } from "kernai/studio"
import { MockProvider } from "kernai/testing"
import { final } from "./support/blocks.ts"

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted" })
const token = "t".repeat(43)

type Headers = ReadonlyArray<readonly [name: string, value: string]>

/** A request of a program that may send it. */
interface Door {
  readonly port: number
  readonly path: string
  readonly headers: Headers
  readonly body: string
}

/** Sends a request exactly as it is written, and returns its status and body. */
const send = ({ body, headers, path, port }: Door) =>
  Effect.promise(async () => {
    const socket = connect(port, "127.0.0.1")
    const lines = [`POST ${path} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)]
    socket.write([...lines, `Content-Length: ${Buffer.byteLength(body)}`, "Connection: close", "", body].join("\r\n"))
    const answer = await text(socket)
    return { status: Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]), answer }
  })

const plain = { "Content-Type": "application/json" } as const

const doorOf = (port: number, path: string, body: object, more: Record<string, string> = {}): Door => ({
  port,
  path,
  headers: Object.entries({ Host: `127.0.0.1:${port}`, ...plain, ...more }),
  body: JSON.stringify(body)
})

/** A server with every door, and the number of its runs. */
const serve = (access: Layer.Layer<never> = Layer.empty, mcpToken: "none" | undefined = undefined) =>
  Effect.gen(function* () {
    const kernel = Kernel.layer.pipe(
      Layer.provide([
        MockProvider.layerOf(MockProvider.make().onCall(() => final("Done."))),
        SkillRegistry.layer(),
        ProtocolRegistry.layer()
      ]),
      Layer.provideMerge([RunStore.layerMemory, MediaStore.layerMemory])
    )
    const routes = Layer.mergeAll(AiSdkUi.layer(), AgUi.layer(), A2a.layer()).pipe(
      Layer.provideMerge(HttpKernel.layer({ agents: [agent] })),
      Layer.provide(access),
      Layer.merge(Studio.layer({ agents: [agent], path: "/studio", token: Redacted.make(token) }))
    )
    const server = HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provideMerge(kernel),
      Layer.provideMerge(
        NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: 100 })
      ),
      Layer.orDie
    )
    const built = yield* Layer.build(server)
    const { address } = Context.get(built, HttpServer.HttpServer)
    const port = "port" in address ? address.port : 0
    const mcp = yield* McpServe.http({ token: mcpToken }).pipe(
      Effect.provide(yield* Layer.build(SkillRegistry.layer())),
      Effect.orDie
    )
    const runs = Effect.map(Effect.orDie(Context.get(built, RunStore.RunStore).list({})), (heads) => heads.length)
    return { doors: yield* doorsOf(port, mcp), runs }
  })

const doorsOf = Effect.fnUntraced(function* (port: number, mcp: McpServe.Endpoint) {
  const session = doorOf(port, "/studio/session", { token })
  const { answer } = yield* send(session)
  const cookie = /^set-cookie: ([^;]+)/im.exec(answer)?.[1] ?? ""
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "Work." }] }
  const user = { id: "m", role: "user" }
  const bearer = mcp.token === undefined ? {} : { Authorization: `Bearer ${Redacted.value(mcp.token)}` }
  const hello = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "test", version: "1" } }
  const work = { agent: "clerk", input: "Work." }
  return {
    http: doorOf(port, "/runs", work),
    "AI SDK UI": doorOf(port, "/api/chat", {
      id: "chat",
      trigger: "submit-message",
      messages: [{ ...user, parts: [{ type: "text", text: "Work." }] }]
    }),
    "AG-UI": doorOf(port, "/agui", {
      threadId: "thread",
      runId: "run",
      state: {},
      messages: [{ ...user, content: "Work." }],
      tools: [],
      context: [],
      forwardedProps: {}
    }),
    A2A: doorOf(port, "/a2a", { jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } }),
    studio: doorOf(port, "/studio/api/runs", work, { Cookie: cookie, "X-Kernai-Studio": "1" }),
    "the session of a studio": session,
    MCP: doorOf(
      Number(new URL(mcp.url).port),
      "/mcp",
      { jsonrpc: "2.0", id: 1, method: "initialize", params: hello },
      { ...bearer, Accept: "application/json, text/event-stream" }
    )
  }
})

type Forgery = (door: Door) => Door

const withHeader =
  (name: string, valueOf: (port: number) => string): Forgery =>
  (door) => ({
    ...door,
    headers: [...door.headers.filter(([other]) => other !== name), [name, valueOf(door.port)]]
  })

const host = (valueOf: (port: number) => string) => withHeader("Host", valueOf)
const origin = (valueOf: (port: number) => string) => withHeader("Origin", valueOf)
const contentType = (value: string) => withHeader("Content-Type", () => value)
const added =
  (...more: Headers): Forgery =>
  (door) => ({ ...door, headers: [...door.headers, ...more] })
const target =
  (prefixOf: (port: number) => string): Forgery =>
  (door) => ({ ...door, path: prefixOf(door.port) + door.path })

const forgeries: ReadonlyArray<readonly [title: string, forge: Forgery, status: number]> = [
  ["a name of an attacker that resolves to loopback", host((port) => `evil.example:${port}`), 403],
  ["a name that begins like loopback", host((port) => `127.0.0.1.evil.example:${port}`), 403],
  ["a name that begins like localhost", host((port) => `localhost.evil.example:${port}`), 403],
  ["a name that ends like localhost", host((port) => `evillocalhost:${port}`), 403],
  ["a name in mixed case", host((port) => `Evil.Example:${port}`), 403],
  ["an empty host", host(() => ""), 403],
  ["a wildcard address", host((port) => `0.0.0.0:${port}`), 403],
  ["a short form of loopback", host((port) => `127.1:${port}`), 403],
  ["loopback as one number", host((port) => `2130706433:${port}`), 403],
  ["loopback in hexadecimal", host((port) => `0x7f.0.0.1:${port}`), 403],
  ["a part of an address above 255", host((port) => `127.0.0.256:${port}`), 403],
  ["an address with a trailing dot", host((port) => `127.0.0.1.:${port}`), 403],
  ["localhost with a trailing dot", host((port) => `localhost.:${port}`), 403],
  ["a user name before the host", host((port) => `localhost@evil.example:${port}`), 403],
  ["a user name before loopback", host((port) => `evil@127.0.0.1:${port}`), 403],
  ["two hosts in one header", host((port) => `127.0.0.1:${port}, evil.example`), 403],
  ["a path after the host", host((port) => `127.0.0.1:${port}/evil`), 403],
  ["two ports", host((port) => `127.0.0.1:${port}:80`), 403],
  ["a port that is no number", host(() => "127.0.0.1:http"), 403],
  ["a port that is empty", host(() => "127.0.0.1:"), 403],
  ["an IPv6 address that is not loopback", host((port) => `[fe80::1]:${port}`), 403],
  ["loopback of IPv4 within IPv6", host((port) => `[::ffff:127.0.0.1]:${port}`), 403],
  ["an IPv6 address without brackets", host((port) => `::1:${port}`), 403],
  ["the origin of a foreign page", origin(() => "https://evil.example"), 403],
  ["the origin of a sandboxed page", origin(() => "null"), 403],
  ["an empty origin", origin(() => ""), 403],
  ["the origin of another port", origin(() => "http://127.0.0.1:1"), 403],
  ["the origin of a file", origin(() => "file://"), 403],
  ["an origin of another scheme", origin((port) => `ftp://127.0.0.1:${port}`), 403],
  ["an origin with a user name", origin((port) => `http://evil@127.0.0.1:${port}`), 403],
  ["an origin with a path", origin((port) => `http://127.0.0.1:${port}/evil`), 403],
  ["an origin in a short form", origin((port) => `http://127.1:${port}`), 403],
  ["two origins in one header", origin((port) => `http://127.0.0.1:${port} https://evil.example`), 403],
  ["text, which needs no preflight", contentType("text/plain"), 403],
  ["text that names JSON as a parameter", contentType("text/plain; charset=application/json"), 403],
  ["text in mixed case", contentType("Text/Plain;charset=UTF-8"), 403],
  ["a form", contentType("application/x-www-form-urlencoded"), 403],
  ["a form with files", contentType("multipart/form-data; boundary=x"), 403],
  ["no content type", (door) => ({ ...door, headers: door.headers.filter(([name]) => name !== "Content-Type") }), 403],
  ["another charset", contentType("application/json; charset=utf-16le"), 415],
  ["a foreign page without an origin", added(["Sec-Fetch-Site", "cross-site"], ["Sec-Fetch-Mode", "no-cors"]), 403],
  ["the absolute target of another server", target(() => "http://evil.example"), 400],
  ["the absolute target of this server", target((port) => `http://127.0.0.1:${port}`), 400],
  ["a second host", added(["host", "evil.example"]), 400],
  ["the same host twice", (door) => added(["HOST", `127.0.0.1:${door.port}`])(door), 400],
  ["a second origin", added(["Origin", "https://evil.example"], ["Origin", "null"]), 400],
  ["two credentials", added(["Authorization", "Bearer a"], ["Authorization", "Bearer b"]), 400],
  ["a second content type", added(["Content-Type", "text/plain"]), 400]
]

describe("A forged request", () => {
  const served = <A>(use: (site: Effect.Success<ReturnType<typeof serve>>) => Effect.Effect<A>) =>
    Effect.flatMap(serve(), use)

  it.live("is refused by every door alike, and starts nothing", () =>
    served(({ doors, runs }) =>
      Effect.gen(function* () {
        const wrong: Array<string> = []
        for (const [title, forge, status] of forgeries) {
          for (const [name, door] of Object.entries(doors)) {
            const reply = yield* send(forge(door))
            // A problem of the HTTP door that is about the request has status 400.
            const expected = status === 415 && name !== "MCP" ? 400 : status
            if (reply.status !== expected) wrong.push(`${title} at ${name}: ${reply.status} instead of ${expected}`)
          }
        }
        assert.deepStrictEqual(wrong, [])
        assert.strictEqual(yield* runs, 0)
        console.log(`forgeries: ${forgeries.length * Object.keys(doors).length}`)
        // The requests they were made from are admitted.
        for (const [name, door] of Object.entries(doors)) {
          const own = [
            door,
            host((port) => `LOCALHOST:${port}`)(door),
            origin((port) => `http://127.0.0.1:${port}`)(door),
            contentType("application/json; charset=UTF-8")(door)
          ]
          for (const request of own) {
            const { answer, status } = yield* send(request)
            assert.isTrue(status >= 200 && status < 300, `${name}: ${answer}`)
          }
        }
      })
    ).pipe(Effect.scoped)
  )
})

describe("A request that came through a proxy", () => {
  const marks: Headers = [
    ["Forwarded", "for=203.0.113.7"],
    ["X-Forwarded-For", "203.0.113.7"],
    ["X-Forwarded-Host", "app.example"],
    ["X-Forwarded-Proto", "https"],
    ["Via", "1.1 proxy"],
    ["X-Real-IP", "203.0.113.7"]
  ]
  const open = ["http", "AI SDK UI", "AG-UI", "A2A", "MCP"] as const

  it.live("is not from this machine, where a server has no other way to know its callers", () =>
    Effect.gen(function* () {
      const { doors, runs } = yield* serve(Layer.empty, "none")
      for (const name of open) {
        for (const mark of marks) {
          const { answer, status } = yield* send(added(mark)(doors[name]))
          assert.deepStrictEqual([name, mark, status], [name, mark, 403])
          assert.match(answer, name === "MCP" ? /set a token/ : /Access\.bearer.*trustProxy/, answer)
        }
      }
      assert.strictEqual(yield* runs, 0)
    }).pipe(Effect.scoped)
  )

  it.live("is admitted with the credentials that a server asks for, or where its proxy is trusted", () =>
    Effect.gen(function* () {
      const bearer = Access.bearer(() => Effect.succeed(Option.some({ id: "ada" })))
      const known = yield* serve(bearer)
      const trusting = yield* serve(Access.layerLocal({ trustProxy: true }))
      for (const name of open) {
        const credentials = name === "MCP" ? added() : added(["Authorization", "Bearer a"])
        const proxied = added(...marks)
        for (const request of [credentials(proxied(known.doors[name])), proxied(trusting.doors[name])]) {
          const { answer, status } = yield* send(request)
          assert.include([200, 201], status, `${name}: ${answer}`)
        }
      }
    }).pipe(Effect.scoped)
  )
})

describe("A caller whose id cannot be in the id of a run", () => {
  it.live.each<readonly [string, string]>([
    ["is empty", ""],
    ["is too long", "x".repeat(49)],
    ["has half a character", "ada\ud800"],
    ["has a NUL", "ada\0"],
    ["has a line break", "ada\n"]
  ])("is refused if it %s", ([, id]) =>
    Effect.gen(function* () {
      const { doors } = yield* serve(Access.layer(Effect.succeed({ id })))
      for (const name of ["http", "AI SDK UI", "AG-UI", "A2A"] as const) {
        const { answer, status } = yield* send(doors[name])
        assert.strictEqual(status, 403, name)
        assert.include(answer, "the id of a caller")
      }
    }).pipe(Effect.scoped)
  )
})
