import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import type * as http from "node:http"
import type * as Loopback from "../support/loopback.ts"
import * as Support from "../support/mcp/connect.ts"
import * as Http from "../support/mcp/httpServer.ts"

const open = (response: http.ServerResponse) => response.writeHead(200, { "content-type": "text/event-stream" })

/** An event, as a server writes it. */
const event = (id: string, data: string, lineEnd = "\n") => [`id: ${id}`, `data: ${data}`, "", ""].join(lineEnd)

const answer = (id: number, text: string) =>
  JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text }] } })

/** A server that begins the stream of each call as `begin` says, and continues it as `poll` says. */
const polled = Effect.fnUntraced(function* (
  begin: (response: http.ServerResponse, id: number) => void,
  poll: (response: http.ServerResponse, lastEventId: string, id: number) => void
) {
  const notebook = new Http.Notebook()
  const small = Http.mcp(notebook)
  let callId = 0
  const polls: Array<Loopback.Seen> = []
  const server = yield* Http.serve((request, response) => {
    const lastEventId = request.headers["last-event-id"]
    if (typeof lastEventId === "string") {
      polls.push(request)
      return poll(response, lastEventId, callId)
    }
    const { id, method } = request.body === "" ? {} : JSON.parse(request.body)
    if (method !== "tools/call") return small(request, response)
    notebook.written++
    callId = id
    begin(open(response), id)
  })
  const connection = yield* Support.connect({ url: server.url() })
  return { connection, notebook, polls }
})

const written = (connection: Effect.Success<ReturnType<typeof polled>>["connection"]) =>
  Effect.map(connection.callTool("write", {}), Support.textOf)

layer(Support.platform, { excludeTestServices: true })("A server that closes the stream of a call", (it) => {
  it.effect("and asks to be polled is polled until it answers, and called once", () =>
    Effect.gen(function* () {
      let times = 0
      const { connection, notebook, polls } = yield* polled(
        (response) => response.end(`retry: 1\n${event("1", "")}`),
        (response, lastEventId, id) => {
          assert.strictEqual(lastEventId, `${++times}`)
          open(response).end(times < 3 ? event(`${times + 1}`, "") : event("4", answer(id, "done")))
        }
      )
      assert.strictEqual(yield* written(connection), "done")
      assert.strictEqual(notebook.written, 1)
      assert.lengthOf(polls, 3)
      for (const { headers, method } of polls) {
        assert.strictEqual(method, "GET")
        assert.strictEqual(headers["mcp-session-id"], [...notebook.sessions][0])
        assert.strictEqual(headers["mcp-protocol-version"], "2025-06-18")
      }
    })
  )

  it.effect("inside of an event sends this event again", () =>
    Effect.gen(function* () {
      for (const lineEnd of ["\n", "\r\n", "\r"]) {
        const { connection } = yield* polled(
          (response, id) => {
            const whole = event("2", answer(id, "é cut"), lineEnd)
            response.write(`retry: 1${lineEnd}${event("1", "", lineEnd)}${whole.slice(0, whole.length / 2)}`, () =>
              response.destroy()
            )
          },
          (response, lastEventId, id) => {
            assert.strictEqual(lastEventId, "1")
            const pieces = Buffer.from(event("2", answer(id, "é whole"), lineEnd))
            open(response)
            for (const byte of pieces) response.write(Buffer.from([byte]))
          }
        )
        assert.strictEqual(yield* written(connection), "é whole")
      }
    })
  )

  it.effect("and is away for a moment is polled again", () =>
    Effect.gen(function* () {
      const { connection, polls } = yield* polled(
        (response) => response.end(`retry: 1\n${event("1", "")}`),
        (response, _, id) => {
          if (polls.length === 1) return void response.destroy()
          if (polls.length === 2) return void response.writeHead(503).end()
          open(response).end(event("2", answer(id, "back")))
        }
      )
      assert.strictEqual(yield* written(connection), "back")
    })
  )

  it.effect("and cannot be polled leaves a write with an unknown outcome", () =>
    Effect.gen(function* () {
      const closings: ReadonlyArray<readonly [string, number]> = [
        ["data: \n\n", 0],
        [`retry: 1\n${event("1", "")}`, 1]
      ]
      for (const [closing, expected] of closings) {
        const { connection, notebook, polls } = yield* polled(
          (response) => response.end(closing),
          (response) => void response.writeHead(405).end()
        )
        assert.strictEqual((yield* Effect.flip(connection.callTool("write", {}))).reason, "outcome_unknown")
        assert.lengthOf(polls, expected)
        assert.strictEqual(notebook.written, 1)
      }
    })
  )

  it.effect("is no longer polled when the call is cancelled", () =>
    Effect.gen(function* () {
      let isClosed = false
      const { connection, polls } = yield* polled(
        (response) => response.end(`retry: 1\n${event("1", "")}`),
        (response) => {
          open(response).write(": wait\n\n")
          response.on("close", () => (isClosed = true))
        }
      )
      const call = yield* Effect.forkChild(connection.callTool("write", {}))
      yield* Support.until(() => polls.length === 1)
      yield* Fiber.interrupt(call)
      yield* Support.until(() => isClosed)
      assert.lengthOf(polls, 1)
    })
  )
})
