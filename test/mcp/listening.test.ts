import { assert, describe, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Scheduler } from "effect"
import { once } from "node:events"
import { connect } from "node:net"
import { listening } from "../../src/mcp/internal/localServer.ts"
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
