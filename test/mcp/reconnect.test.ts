import { assert, layer } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import * as Support from "../support/mcp/connect.ts"
import * as Http from "../support/mcp/httpServer.ts"

/** A connection to a server that holds back its answers to a method until a test releases them. */
const holding = Effect.fnUntraced(function* (method: string) {
  const notebook = new Http.Notebook()
  const small = Http.mcp(notebook)
  const held: Array<() => void> = []
  const server = yield* Http.serve((request, response) => {
    const answer = () => small(request, response)
    return request.body.includes(`"method":"${method}"`) ? void held.push(answer) : answer()
  })
  const connection = yield* Support.connect({ url: server.url() })
  const release = (index: number) =>
    Effect.andThen(
      Support.until(() => held.length > index),
      Effect.sync(() => held[index]!())
    )
  return { connection, held, notebook, release }
})

layer(Support.platform, { excludeTestServices: true })("a connection shared by many", (it) => {
  it.effect("connects once for all concurrent requests", () =>
    Effect.gen(function* () {
      const { connection, held, release } = yield* holding("initialize")
      const asking = yield* Effect.replicateEffect(Effect.forkChild(connection.info), 1_000)
      yield* release(0)
      const infos = yield* Fiber.joinAll(asking)
      assert.deepStrictEqual(new Set(infos.map(({ name }) => name)), new Set(["small"]))
      assert.lengthOf(held, 1)
    })
  )

  it.effect("connects for the others when the first to ask gives up", () =>
    Effect.gen(function* () {
      const { connection, held, release } = yield* holding("initialize")
      const [first, second] = [yield* Effect.forkChild(connection.info), yield* Effect.forkChild(connection.info)]
      yield* Support.until(() => held.length === 1)
      yield* Fiber.interrupt(first)
      yield* release(0)
      assert.strictEqual((yield* Fiber.join(second)).name, "small")
      assert.lengthOf(held, 1)
    })
  )

  it.effect("connects again when all requests were given up", () =>
    Effect.gen(function* () {
      const { connection, held, release } = yield* holding("initialize")
      const asking = yield* Effect.replicateEffect(Effect.forkChild(connection.info), 3)
      yield* Support.until(() => held.length === 1)
      yield* Fiber.interruptAll(asking)
      const next = yield* Effect.forkChild(connection.info)
      yield* release(1)
      assert.strictEqual((yield* Fiber.join(next)).name, "small")
    })
  )

  it.effect("reads a list once for all concurrent requests, and caches it", () =>
    Effect.gen(function* () {
      const { connection, held, release } = yield* holding("tools/list")
      const asking = yield* Effect.replicateEffect(Effect.forkChild(connection.tools), 1_000)
      yield* release(0)
      const lists = new Set(yield* Fiber.joinAll(asking))
      assert.deepStrictEqual([...lists], [yield* connection.tools])
      assert.lengthOf(held, 1)
    })
  )

  it.effect("reads a list for the others when the first to ask gives up", () =>
    Effect.gen(function* () {
      const { connection, held, release } = yield* holding("tools/list")
      const [first, second] = [yield* Effect.forkChild(connection.tools), yield* Effect.forkChild(connection.tools)]
      yield* Support.until(() => held.length === 1)
      yield* Fiber.interrupt(first)
      yield* release(0)
      assert.isNotEmpty(yield* Fiber.join(second))
      assert.lengthOf(held, 1)
    })
  )

  it.effect("reads a list again for a request after it changed, and caches only the later one", () =>
    Effect.gen(function* () {
      const { connection, held, notebook, release } = yield* holding("tools/list")
      yield* connection.info
      yield* connection.awaitChanges
      yield* Support.until(() => notebook.streams.size === 1)
      const early = yield* Effect.forkChild(connection.tools)
      yield* Support.until(() => held.length === 1)
      notebook.changed()
      yield* connection.awaitChanges
      const late = yield* Effect.forkChild(connection.tools)
      yield* release(1)
      const kept = yield* Fiber.join(late)
      yield* release(0)
      assert.deepStrictEqual(yield* Fiber.join(early), kept)
      assert.strictEqual(yield* connection.tools, kept)
      assert.lengthOf(held, 2)
    })
  )
})
