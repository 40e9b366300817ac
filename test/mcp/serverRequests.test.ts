/** Which call a request of a server belongs to. */
import { assert, describe, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import type { McpClient, McpSchema } from "effect/ai"
import { McpProtocol } from "effect/ai"
import type { Skill } from "kernai"
import { Caller, make } from "../../src/mcp/internal/serverRequests.ts"

const asked = (id: number, method: string, params: { readonly [key: string]: unknown } = {}) =>
  ({ jsonrpc: "2.0", id, method, params }) as const

const question = (id: number) =>
  asked(id, "elicitation/create", { message: "Sure?", requestedSchema: { type: "object", properties: {} } })

/** A transport whose requests stay open. */
const open: McpClient.Transport = {
  "~effect/ai/McpClient/Transport": "~effect/ai/McpClient/Transport",
  protocol: McpProtocol.v2025_11_25,
  request: () => Effect.never,
  notify: () => Effect.void,
  isCallable: () => true
}

const session = Effect.gen(function* () {
  const requests = yield* make({})
  const transport = requests.over(open)
  let sent = yield* Deferred.make<McpSchema.JsonRpcResponse>()
  /** Sends a request of the server, and waits for the reply. */
  const reply = Effect.fnUntraced(function* (message: McpSchema.JsonRpcRequest) {
    sent = yield* Deferred.make<McpSchema.JsonRpcResponse>()
    yield* requests.receive(message, (response) => Deferred.succeed(sent, response))
    const { error, result } = yield* Deferred.await(sent)
    return error?.message ?? result
  })
  /** Begins a call of a run whose person agrees. */
  const call = (run: string, values: object) =>
    transport.request(asked(1, "tools/call")).pipe(
      Effect.provideService(Caller, {
        host: { elicit: () => Effect.succeed<Skill.Reply>({ _tag: "Accepted", values: { ...values } }) },
        run,
        time: undefined
      }),
      Effect.forkChild({ startImmediately: true })
    )
  return { ...requests, call, reply, transport }
})

describe("a request of a server on a line", () => {
  it.effect("is answered for the run that calls, as long as there is one", () =>
    Effect.gen(function* () {
      const { call, reply } = yield* session
      assert.strictEqual(yield* reply(question(1)), "Method not found: elicitation/create")
      const first = yield* call("a", {})
      yield* call("a", {})
      assert.deepStrictEqual(yield* reply(question(2)), { action: "accept", content: {} })
      // Nobody answers for another run.
      const other = yield* call("b", {})
      assert.deepStrictEqual(yield* reply(question(3)), { action: "cancel" })
      yield* Fiber.interrupt(other)
      yield* Fiber.interrupt(first)
      assert.deepStrictEqual(yield* reply(question(4)), { action: "accept", content: {} })
    }).pipe(Effect.scoped)
  )

  it.effect("is answered by its kind only, and a ping always", () =>
    Effect.gen(function* () {
      const { call, reply } = yield* session
      yield* call("a", {})
      assert.deepStrictEqual(yield* reply(asked(1, "ping")), {})
      assert.strictEqual(yield* reply(asked(2, "roots/list")), "Method not found: roots/list")
      const sampling = asked(3, "sampling/createMessage")
      assert.strictEqual(yield* reply(sampling), "Method not found: sampling/createMessage")
      const notWeb = asked(4, "elicitation/create", { mode: "url", message: "open", url: "file:///etc/passwd" })
      assert.strictEqual(yield* reply(notWeb), "neither a form nor an address of the web")
    }).pipe(Effect.scoped)
  )

  it.effect("is not answered after the server cancelled it", () =>
    Effect.gen(function* () {
      const { cancelled, receive, transport } = yield* session
      const interrupted = yield* Deferred.make<void>()
      const waiting = Effect.onInterrupt(Effect.never, () => Deferred.succeed(interrupted, undefined))
      yield* transport
        .request(asked(1, "tools/call"))
        .pipe(
          Effect.provideService(Caller, { host: { elicit: () => waiting }, run: "a", time: undefined }),
          Effect.forkChild({ startImmediately: true })
        )
      yield* receive(question(7), () => Effect.die("answered"))
      yield* Effect.yieldNow
      yield* cancelled({ requestId: 7 })
      yield* Deferred.await(interrupted)
    }).pipe(Effect.scoped)
  )
})
