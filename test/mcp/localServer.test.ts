import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Latch, Scheduler } from "effect"
import { HttpEffect, HttpServerRequest, HttpServerResponse } from "effect/http"
import { once } from "node:events"
import { connect } from "node:net"
import { bounded, listening } from "../../src/mcp/internal/localServer.ts"
import { interruptingAt } from "../support/interrupting.ts"
import * as Support from "../support/mcp/connect.ts"

describe("an HTTP server for the time of a scope", () => {
  const free = { host: "127.0.0.1", port: 0 }

  it.live("stops listening, wherever it is interrupted (R-15)", () =>
    Effect.gen(function* () {
      const there = () => process.getActiveResourcesInfo().filter((name) => name === "TCPServerWrap").length
      const before = there()
      let isCut = true
      for (let at = 0; isCut; at++) {
        const server = Effect.provideService(listening(free), Scheduler.Scheduler, interruptingAt(at))
        isCut = Exit.hasInterrupts(yield* Fiber.await(yield* Effect.forkChild(Effect.scoped(server))))
      }
      yield* Support.until(() => there() === before)
    })
  )

  it.live.each(["", "POST /mcp HTTP/1.1\r\nHost: "])("drops a connection that sent only %j", (text) =>
    Effect.gen(function* () {
      const socket = yield* Effect.scoped(
        Effect.gen(function* () {
          const { address } = yield* listening(free)
          assert.isTrue("port" in address)
          const socket = connect("port" in address ? address.port : 0, free.host)
          yield* Effect.promise(() => once(socket, "connect"))
          socket.write(text)
          yield* Effect.sleep("20 millis")
          return socket.on("error", () => {})
        })
      )
      yield* Support.until(() => socket.closed)
    })
  )
})

const url = "http://127.0.0.1/mcp"

/** A server with at most two sessions that it keeps until they are ended; a call of one may wait. */
const served = () => {
  const kept = new Set<string>()
  const latch = Latch.makeUnsafe(true)
  let named = 0
  const app = Effect.gen(function* () {
    const { headers, method } = yield* HttpServerRequest.HttpServerRequest
    const id = headers["mcp-session-id"]
    if (id === undefined) {
      const session = `s${++named}`
      kept.add(session)
      yield* HttpEffect.appendPreResponseHandler((_, response) =>
        Effect.succeed(HttpServerResponse.setHeader(response, "mcp-session-id", session))
      )
      return HttpServerResponse.empty({ status: 200 })
    }
    if (!kept.has(id)) return HttpServerResponse.empty({ status: 404 })
    if (method === "DELETE") kept.delete(id)
    else yield* latch.await
    return HttpServerResponse.empty({ status: 200 })
  })
  const handle = HttpEffect.toWebHandler(bounded(app, url, 2))
  const ask = (id?: string, method = "POST") =>
    Effect.promise(async () => {
      const headers = id === undefined ? {} : { "mcp-session-id": id }
      return (await handle(new Request(url, { method, headers }))).status
    })
  return { ask, kept, latch }
}

describe("the sessions of a server", () => {
  it.live("end beyond the limit, the least recently used first", () =>
    Effect.gen(function* () {
      const { ask, kept } = served()
      for (let count = 0; count < 3; count++) yield* ask()
      assert.strictEqual(yield* ask("s1"), 200)
      yield* ask()
      assert.deepStrictEqual([...kept], ["s1", "s3", "s4"])
      assert.strictEqual(yield* ask("s2"), 404)
      for (let count = 0; count < 20; count++) yield* ask()
      assert.deepStrictEqual([...kept], ["s22", "s23", "s24"])
    })
  )

  it.live("do not end while they are in use", () =>
    Effect.gen(function* () {
      const { ask, kept, latch } = served()
      yield* ask()
      latch.closeUnsafe()
      const using = yield* Effect.forkChild(ask("s1"), { startImmediately: true })
      for (let count = 0; count < 5; count++) yield* ask()
      assert.isTrue(kept.has("s1"))
      latch.openUnsafe()
      assert.strictEqual(yield* Fiber.join(using), 200)
    })
  )
})
