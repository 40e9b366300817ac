/** Tools that a server runs as tasks. */
import { assert, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Stream } from "effect"
import { Agent, Kernel, MediaStore, RunStore, type Skill } from "kernai"
import type { McpClient, McpSchema } from "effect/ai"
import { McpClientError, McpProtocol } from "effect/ai"
import { TestClock } from "effect/testing"
import { MockProvider } from "kernai/testing"
import { fateOf } from "../../src/mcp/internal/requestFailure.ts"
import * as TaskCalls from "../../src/mcp/internal/taskCalls.ts"
import { command, final } from "../support/blocks.ts"
import { of } from "../support/kernel.ts"
import * as Support from "../support/mcp/connect.ts"
import * as Everything from "../support/mcp/everything.ts"
import * as Hub from "../support/mcp/hub.ts"

const agent = Agent.make({ instructions: "", model: "mock", skills: "all" })
const research = command("mcp_s__simulate-research-query", { topic: "python", ambiguous: true })

layer(Support.platform, { excludeTestServices: true, timeout: "60 seconds" })("A tool that runs as a task", (it) => {
  it.effect.each(["stdio", "streamableHttp"] as const)(
    "of the official server is polled, asks its question and returns its result, over %s",
    (transport) =>
      Effect.gen(function* () {
        const settings =
          transport === "stdio"
            ? Support.node(Support.everythingScript, "stdio")
            : { url: (yield* Everything.serve(transport)).url }
        const asked: Array<string> = []
        const elicit = (asking: Skill.Asking): Effect.Effect<Skill.Reply> =>
          Effect.sync(() => {
            asked.push(asking.message)
            return { _tag: "Accepted", values: { interpretation: "technical" } }
          })
        const mock = MockProvider.make(research, final("done"))
        const kernel = Kernel.layer.pipe(
          Layer.provideMerge(Hub.hub({ s: settings }, { hub: { elicit } })),
          Layer.provide([MockProvider.layerOf(mock), MediaStore.layerMemory, RunStore.layerMemory])
        )
        const events = [...(yield* Effect.provide(Stream.runCollect(Kernel.stream(agent, "go")), kernel))]
        assert.lengthOf(asked, 1)
        const [result] = of(events, "skill_result")
        assert.match(JSON.stringify(result?.output), /technical/)
        // The messages of the task are the progress of the call.
        const said = of(events, "skill_progress").map(({ progress }) => JSON.stringify(progress))
        assert.isTrue(said.some((text) => text.includes("Gathering sources")))
      })
  )
})

const capabilities = { tasks: { requests: { tools: { call: {} } } } }
const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "slow" } } as const
const list = { jsonrpc: "2.0", id: 0, method: "tools/list", params: {} } as const

/** A server with one task, whose states are these. */
const server = (...states: ReadonlyArray<string>) => {
  const sent: Array<string> = []
  let at = 0
  const task = () => ({ taskId: "t", status: states[Math.min(at++, states.length - 1)], pollInterval: 500 })
  const answer = (method: string): unknown => {
    switch (method) {
      case "tools/list":
        return { tools: [{ name: "slow", inputSchema: {}, execution: { taskSupport: "required" } }] }
      case "tools/call":
        return { task: task() }
      case "tasks/get":
        return task()
      default:
        return { content: [] }
    }
  }
  const inner: McpClient.Transport = {
    "~effect/ai/McpClient/Transport": "~effect/ai/McpClient/Transport",
    protocol: McpProtocol.v2025_11_25,
    request: ({ id, method }) =>
      Effect.sync((): McpSchema.JsonRpcResponse => {
        sent.push(method)
        return { jsonrpc: "2.0", id, result: answer(method) }
      }),
    notify: () => Effect.void,
    isCallable: () => true
  }
  return { inner, sent }
}

layer(Layer.empty)("A task", (it) => {
  it.effect("is polled at the pace of its server, and its result has the id of the call", () =>
    Effect.gen(function* () {
      const { inner, sent } = server("working", "working", "completed")
      const transport = TaskCalls.over(inner, { capabilities })
      const listed = yield* transport.request(list)
      assert.deepStrictEqual(listed.result, { tools: [{ name: "slow", inputSchema: {} }] })
      const calling = yield* Effect.forkChild(transport.request(call), { startImmediately: true })
      yield* TestClock.adjust("499 millis")
      assert.deepStrictEqual(sent, ["tools/list", "tools/call"])
      yield* TestClock.adjust("501 millis")
      assert.deepStrictEqual((yield* Fiber.join(calling)).id, 1)
      assert.deepStrictEqual(sent.slice(2), ["tasks/get", "tasks/get", "tasks/result"])
    })
  )

  it.effect("that needs input is asked for its result at once", () =>
    Effect.gen(function* () {
      const { inner, sent } = server("input_required")
      const transport = TaskCalls.over(inner, { capabilities })
      yield* transport.request(list)
      yield* transport.request(call)
      assert.deepStrictEqual(sent.slice(1), ["tools/call", "tasks/result"])
    })
  )

  it.effect("is cancelled with its call", () =>
    Effect.gen(function* () {
      const { inner, sent } = server("working")
      const transport = TaskCalls.over(inner, { capabilities })
      yield* transport.request(list)
      const calling = yield* Effect.forkChild(transport.request(call), { startImmediately: true })
      yield* TestClock.adjust("600 millis")
      yield* Fiber.interrupt(calling)
      assert.deepStrictEqual(sent.slice(1), ["tools/call", "tasks/get", "tasks/cancel"])
    })
  )

  it.effect("that has begun on a server which is gone then is lost, and never counts as not sent", () =>
    Effect.gen(function* () {
      const { inner, sent } = server("working")
      const refusals = [
        new McpClientError.TransportError({ cause: { code: "ECONNREFUSED" } }),
        new McpClientError.ClosedError({ sessionExpired: true })
      ]
      for (const reason of refusals) {
        const gone: McpClient.Transport = {
          ...inner,
          request: (message, tool) =>
            message.method === "tasks/get"
              ? Effect.fail(new McpClientError.McpClientError({ reason }))
              : inner.request(message, tool)
        }
        const transport = TaskCalls.over(gone, { capabilities })
        yield* transport.request(list)
        const calling = yield* Effect.forkChild(Effect.flip(transport.request(call)), { startImmediately: true })
        yield* TestClock.adjust("1 second")
        assert.strictEqual(fateOf(yield* Fiber.join(calling)), "lost")
      }
      assert.deepStrictEqual(sent, ["tools/list", "tools/call", "tools/list", "tools/call"])
    })
  )

  it.effect("is not used when the server offers no tasks", () =>
    Effect.gen(function* () {
      const { inner, sent } = server("working")
      const transport = TaskCalls.over(inner, { capabilities: {} })
      yield* transport.request(list)
      yield* transport.request(call)
      assert.deepStrictEqual(sent, ["tools/list", "tools/call"])
    })
  )
})
