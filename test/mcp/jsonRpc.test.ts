import { assert, describe, it } from "@effect/vitest"
import { Clock, Effect, Fiber, Option } from "effect"
import { TestClock } from "effect/testing"
import { Limits } from "kernai"
import { frameLength } from "../../src/kit/bounds.ts"
import * as JsonRpc from "../../src/mcp/internal/jsonRpc.ts"

/** A line, and what was sent over it. */
const line = () => {
  const sent: Array<unknown> = []
  const heard: Array<string> = []
  const exchange = JsonRpc.make({
    send: (text) => Effect.sync(() => void sent.push(JSON.parse(text))),
    receivers: {
      onNotification: (method) => Effect.sync(() => void heard.push(method)),
      onRequest: ({ id }, send) => send({ jsonrpc: "2.0", id, result: {} })
    },
    limits: Limits.defaults
  })
  return { ...exchange, sent, heard }
}

const request = (id: number, method: string) => ({ jsonrpc: "2.0", id, method }) as const

describe("a line", () => {
  it.effect("sends nothing once it is closed, and fails late messages as not sent", () =>
    Effect.gen(function* () {
      const { close, isOpen, notify, request: ask, sent } = line()
      const told = { jsonrpc: "2.0", method: "notifications/initialized" } as const
      yield* notify(told)
      assert.isTrue(yield* isOpen)
      yield* close(JsonRpc.lost("gone"))
      assert.isFalse(yield* isOpen)
      for (const late of [ask(request(1, "tools/list")), notify(told)]) {
        const { reason } = yield* Effect.flip(late)
        assert.isTrue(reason._tag === "ClosedError" && reason.sessionExpired)
      }
      assert.deepStrictEqual(sent, [told])
    })
  )

  it.effect("sends no half of a surrogate pair", () =>
    Effect.gen(function* () {
      const { notify, sent } = line()
      yield* notify({ jsonrpc: "2.0", method: "m", params: { text: "cut \ud83c" } })
      assert.deepStrictEqual(sent, [{ jsonrpc: "2.0", method: "m", params: { text: "cut \ufffd" } }])
    })
  )

  it.effect("notifies the server of a cancelled request, except the first one", () =>
    Effect.gen(function* () {
      const { request: ask, sent } = line()
      for (const asked of [request(1, "initialize"), request(2, "tools/list")]) {
        yield* Fiber.interrupt(yield* Effect.forkChild(ask(asked), { startImmediately: true }))
      }
      assert.deepStrictEqual(sent, [
        request(1, "initialize"),
        request(2, "tools/list"),
        { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 2 } }
      ])
    })
  )

  it.effect("ends a request at its time limit when the server reads nothing any more", () =>
    Effect.gen(function* () {
      const { request: ask } = JsonRpc.make({
        send: () => Effect.never,
        receivers: { onNotification: () => Effect.void, onRequest: () => Effect.void },
        limits: Limits.defaults
      })
      const asking = yield* Effect.forkChild(Effect.timeoutOption(ask(request(1, "tools/call")), "2 seconds"))
      yield* TestClock.adjust("2 seconds")
      assert.isTrue(Option.isNone(yield* Fiber.join(asking)))
      assert.strictEqual(yield* Clock.currentTimeMillis, 2_000)
    })
  )

  it.effect("sends no message that exceeds the frame limit", () =>
    Effect.gen(function* () {
      const { notify, sent } = line()
      const around = JSON.stringify({ jsonrpc: "2.0", method: "" }).length
      const told = { jsonrpc: "2.0", method: "x".repeat(frameLength - around) } as const
      yield* notify(told)
      const larger = yield* Effect.flip(notify({ ...told, method: `${told.method}!` }))
      assert.strictEqual(larger.reason._tag, "LimitError")
      assert.deepStrictEqual(sent, [told])
    })
  )

  it.effect("hands over requests of the server, and sends the replies", () =>
    Effect.gen(function* () {
      const { heard, receive, sent } = line()
      yield* receive(JSON.stringify([request(7, "ping"), request(8, "sampling/createMessage")]))
      assert.deepStrictEqual(sent, [
        { jsonrpc: "2.0", id: 7, result: {} },
        { jsonrpc: "2.0", id: 8, result: {} }
      ])
      assert.deepStrictEqual(heard, [])
    })
  )
})
