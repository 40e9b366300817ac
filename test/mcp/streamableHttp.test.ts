import { assert, layer } from "@effect/vitest"
import { Clock, Duration, Effect, Option } from "effect"
import type * as http from "node:http"
import * as Support from "../support/mcp/connect.ts"
import * as Http from "../support/mcp/httpServer.ts"

/** Time that stands still but for what it is told, and for the pauses that are let end. */
const standing = () => {
  const pauses = new Map<number, () => void>()
  let now = 0
  const nanos = () => BigInt(now) * 1_000_000n
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: () => now,
    currentTimeMillis: Effect.sync(() => now),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: nanos,
    monotonicTimeNanos: Effect.sync(nanos),
    sleep: (duration) =>
      Effect.callback((resume) => {
        const millis = Duration.toMillis(duration)
        pauses.set(millis, () => resume(Effect.void))
        return Effect.sync(() => pauses.delete(millis))
      })
  }
  /** Waits for a pause and lets it end; tells its seconds. */
  const pause = Effect.gen(function* () {
    yield* Support.until(() => pauses.size === 1)
    for (const [millis, end] of pauses) {
      pauses.delete(millis)
      now += millis
      end()
      return millis / 1_000
    }
  })
  return { clock, pause, isPausing: () => pauses.size > 0, pass: (millis: number) => (now += millis) }
}

/** A connection to a server that answers its own stream as it is told; it has read its tools, and was told of all. */
const connect = Effect.fnUntraced(function* (open: (time: number, response: http.ServerResponse) => boolean | void) {
  const notebook = new Http.Notebook()
  const small = Http.mcp(notebook)
  let asked = 0
  let answers = 0
  const handle: Parameters<typeof Http.serve>[0] = (request, response) => {
    // The first answer is cut off, no other is taken.
    const isAnswer = request.method === "POST" && !request.body.includes('"method"')
    if (isAnswer) return void (++answers === 1 && response.destroy())
    if (request.method !== "GET" || open(++asked, response) === true) small(request, response)
  }
  const server = yield* Http.serve(handle)
  const connection = yield* Support.connect({ url: server.url() })
  const time = standing()
  yield* Effect.provideService(connection.tools, Clock.Clock, time.clock)
  yield* connection.awaitChanges
  yield* Support.until(() => asked === 1)
  const isOpen = Support.until(() => notebook.streams.size === 1)
  const changed = Effect.map(connection.awaitChanges, (changes) => [...changes].sort().join())
  return { ...time, asked: () => asked, changed, connection, handle, isOpen, notebook, server }
})

const refuse = (response: http.ServerResponse, status: number) => void response.writeHead(status).end()

const end = ({ streams }: Http.Notebook, last = "") => {
  for (const stream of streams) stream.end(last)
  return Support.until(() => streams.size === 0)
}

const all = "prompts,resources,tools"

layer(Support.platform, { excludeTestServices: true })("the stream of a server", (it) => {
  it.effect("is reopened after a restart, and reports what may have changed in between", () =>
    Effect.gen(function* () {
      const { changed, connection, handle, isOpen, notebook, pause, server } = yield* connect(() => true)
      yield* isOpen
      yield* server.stop
      assert.deepStrictEqual([yield* pause, yield* pause, yield* pause], [1, 2, 4])
      notebook.tools.push("meanwhile")
      yield* Http.serve(handle, server.port)
      assert.strictEqual(yield* pause, 8)
      assert.strictEqual(yield* changed, all)
      assert.lengthOf(yield* connection.tools, notebook.tools.length)
      notebook.tools.push("later")
      notebook.changed()
      assert.strictEqual(yield* changed, "tools")
      assert.lengthOf(yield* connection.tools, notebook.tools.length)
    })
  )

  it.effect.each([401, 408, 429, 500, 503, 200, "cut"] as const)(
    "is requested again when it is refused with %s",
    (how) =>
      Effect.gen(function* () {
        const { changed, isOpen, notebook, pause } = yield* connect((time, response) => {
          if (time === 1 || time === 4) return true
          return how === "cut" ? void response.destroy() : refuse(response, how)
        })
        yield* isOpen
        yield* end(notebook)
        assert.deepStrictEqual([yield* pause, yield* pause, yield* pause], [1, 2, 4])
        assert.strictEqual(yield* changed, all)
      })
  )

  it.effect.each([405, 404, 400, 501, 200] as const)("is requested once when there is none (%s)", (status) =>
    Effect.gen(function* () {
      const { asked, connection, isPausing } = yield* connect((_, response) => refuse(response, status))
      yield* Effect.sleep("15 millis")
      assert.isFalse(isPausing())
      assert.strictEqual(asked(), 1)
      assert.deepStrictEqual(yield* Effect.timeoutOption(connection.awaitChanges, 0), Option.none())
    })
  )

  it.effect("is requested a few times when it may become available", () =>
    Effect.gen(function* () {
      const { asked, isPausing, pause } = yield* connect((_, response) => refuse(response, 503))
      const pauses = yield* Effect.replicateEffect(pause, 6)
      assert.deepStrictEqual(pauses, [1, 2, 4, 8, 16, 32])
      yield* Support.until(() => asked() === 7)
      yield* Effect.sleep("15 millis")
      assert.isFalse(isPausing())
      assert.strictEqual(asked(), 7)
    })
  )

  it.effect("reports that all may have changed when it opens late", () =>
    Effect.gen(function* () {
      const { changed, pause } = yield* connect((time, response) => (time === 1 ? refuse(response, 503) : true))
      yield* pause
      assert.strictEqual(yield* changed, all)
    })
  )

  it.effect("is opened less and less often when it ends at once", () =>
    Effect.gen(function* () {
      const { pause } = yield* connect((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" }).end()
      })
      const pauses = yield* Effect.replicateEffect(pause, 9)
      assert.deepStrictEqual(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60])
    })
  )

  it.effect("is reopened at once after a minute, and not before the server's retry time", () =>
    Effect.gen(function* () {
      const { isOpen, notebook, pass, pause } = yield* connect(() => true)
      const pauses: Array<number | undefined> = []
      for (const [millis, last] of [
        [0, ""],
        [59_999, "retry: 500\n\n"],
        [60_000, ""],
        [60_000, "retry: 5000\n\n"],
        [60_000, ""]
      ] as const) {
        yield* isOpen
        pass(millis)
        yield* end(notebook, last)
        pauses.push(yield* pause)
      }
      assert.deepStrictEqual(pauses, [1, 2, 1, 5, 1])
    })
  )

  it.effect.each([404, 400] as const)("leads to another session when a restarted server refuses it with %s", (status) =>
    Effect.gen(function* () {
      const { changed, connection, isOpen, notebook, pause } = yield* connect(() => true)
      notebook.unknownSession = status
      yield* isOpen
      notebook.sessions.clear()
      notebook.tools.push("new")
      yield* end(notebook)
      yield* pause
      assert.strictEqual(yield* changed, all)
      assert.lengthOf(yield* connection.tools, notebook.tools.length)
      yield* isOpen
      assert.strictEqual(notebook.sessions.size, 1)
    })
  )

  it.effect("ignores what is not a message or not a change", () =>
    Effect.gen(function* () {
      const { changed, connection, isOpen, notebook, server } = yield* connect(() => true)
      yield* isOpen
      const before = server.seen.length
      for (const text of ["{", "1", '{"jsonrpc":"2.0","id":9,"result":{}}', '{"jsonrpc":"2.0","method":"x"}']) {
        for (const stream of notebook.streams) stream.write(`data: ${text}\n\n`)
      }
      notebook.changed()
      assert.strictEqual(yield* changed, "tools")
      assert.lengthOf(yield* connection.tools, notebook.tools.length)
      assert.lengthOf(server.seen, before + 1)
    })
  )

  it.effect("continues when answers to its requests are not accepted", () =>
    Effect.gen(function* () {
      const { asked, changed, isOpen, notebook, pause, server } = yield* connect(() => true)
      yield* isOpen
      for (const stream of notebook.streams) {
        for (const id of [7, 8]) stream.write(`data: {"jsonrpc":"2.0","id":${id},"method":"ping"}\n\n`)
      }
      yield* Support.until(() => server.seen.at(-1)!.body.includes('"id":8'))
      assert.strictEqual(yield* pause, 10)
      notebook.changed()
      assert.strictEqual(yield* changed, "tools")
      assert.strictEqual(asked(), 1)
      const { body, headers } = server.seen.at(-1)!
      assert.deepStrictEqual(JSON.parse(body), { jsonrpc: "2.0", id: 8, result: {} })
      assert.include(headers.accept, "text/event-stream")
      assert.isTrue(notebook.sessions.has(`${headers["mcp-session-id"]}`))
    })
  )

  it.effect("is requested by a subscription in revision 2026-07-28", () =>
    Effect.gen(function* () {
      const streams: Array<http.ServerResponse> = []
      const server = yield* Http.serve((request, response) => {
        const { id, method } = JSON.parse(request.body)
        if (method === "subscriptions/listen") {
          streams.push(response.writeHead(200, { "content-type": "Text/Event-Stream ; charset=utf-8" }))
          return response.flushHeaders()
        }
        const discovered = { supportedVersions: ["2026-07-28"], capabilities: { tools: { listChanged: true } } }
        const result = method === "server/discover" ? discovered : { tools: [] }
        Http.json(response, 200, { jsonrpc: "2.0", id, result: { ...result, ttlMs: 0, cacheScope: "public" } })
      })
      const connection = yield* Support.connect({ url: server.url(), protocolVersion: "2026-07-28" })
      yield* connection.tools
      yield* connection.awaitChanges
      yield* Support.until(() => streams.length === 1)
      streams[0]!.write('data: {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}\n\n')
      assert.deepStrictEqual([...(yield* connection.awaitChanges)], ["prompts"])
      const { body, headers, method } = server.seen.find(({ body }) => body.includes("subscriptions/listen"))!
      const told = ["accept", "mcp-protocol-version", "mcp-method"].map((name) => headers[name])
      assert.deepStrictEqual(
        [method, ...told],
        ["POST", "application/json, text/event-stream", "2026-07-28", "subscriptions/listen"]
      )
      const { params } = JSON.parse(body)
      assert.deepStrictEqual(params.notifications, {
        toolsListChanged: true,
        promptsListChanged: true,
        resourcesListChanged: true
      })
      assert.strictEqual(params._meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28")
    })
  )
})
