/** Completions, and resources that change. */
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer, Redacted, Schema, Stream } from "effect"
import { McpServer } from "effect/ai"
import { SkillRegistry } from "kernai"
import { McpHub, McpServe } from "kernai/mcp"
import * as Support from "../support/mcp/connect.ts"
import * as Hub from "../support/mcp/hub.ts"

const everything = Support.node(Support.everythingScript, "stdio")

layer(Support.platform, { excludeTestServices: true, timeout: "60 seconds" })("A server", (it) => {
  it.effect("completes the argument of a prompt, given the other arguments", () =>
    Effect.gen(function* () {
      const connection = yield* Support.connect(everything)
      const department = { name: "department", value: "S" }
      const { values } = yield* connection.complete({ prompt: "completable-prompt" }, department)
      assert.includeMembers([...values], ["Sales", "Support"])
      const name = { name: "name", value: "" }
      const { values: names } = yield* connection.complete({ prompt: "completable-prompt" }, name, {
        department: "Sales"
      })
      assert.isAbove(names.length, 0)
      const resource = { resource: "demo://resource/dynamic/text/{resourceId}" }
      const ids = yield* connection.complete(resource, { name: "resourceId", value: "7" })
      assert.deepStrictEqual(ids, { values: ["7"], hasMore: false })
    })
  )

  it.effect("of the hub completes, and fails for a server without completions", () =>
    Effect.gen(function* () {
      const hub = yield* McpHub.McpHub
      const of = { prompt: "completable-prompt" }
      const { values } = yield* hub.complete("s", of, { name: "department", value: "E" })
      assert.deepStrictEqual(values, ["Engineering"])
      const error = yield* Effect.flip(hub.complete("bare", of, { name: "department", value: "E" }))
      assert.strictEqual(error.message, "MCP server 'bare' offers no completions")
    }).pipe(
      Effect.provide(
        Layer.unwrap(
          Effect.map(Hub.scripted({ tools: [] }), ({ settings }) => Hub.hub({ s: everything, bare: settings }))
        )
      )
    )
  )

  it.effect("reports a changed resource as long as it is watched", () =>
    Effect.gen(function* () {
      const server = yield* Deferred.make<McpServer.McpServer["Service"]>()
      const registrations = Layer.mergeAll(
        McpServer.resource({ uri: "test://one", name: "one", content: Effect.succeed("now") }),
        McpServer.prompt({
          name: "greet",
          parameters: { name: Schema.String },
          completion: { name: () => Effect.succeed(["Ada"]) },
          content: () => Effect.succeed("hello")
        }),
        Layer.effectDiscard(McpServer.McpServer.use((made) => Deferred.succeed(server, made)))
      )
      const { token, url } = yield* McpServe.http({ registrations })
      const headers = { authorization: `Bearer ${Redacted.value(token!)}` }
      const connection = yield* Support.connect({ url, headers })
      let seen = 0
      const watching = yield* Effect.forkChild(
        Stream.runForEach(connection.watch("test://one"), () => Effect.sync(() => seen++))
      )
      const { notifications } = yield* Deferred.await(server)
      const updated = notifications["notifications/resources/updated"]({ uri: "test://one" })
      yield* Support.until(() => {
        Effect.runFork(updated)
        return seen > 0
      })
      yield* Fiber.interrupt(watching)
      assert.deepStrictEqual((yield* connection.complete({ prompt: "greet" }, { name: "name", value: "A" })).values, [
        "Ada"
      ])
      const { settings } = yield* Hub.scripted({ tools: [], resources: [] })
      const refused = yield* Support.connect(settings)
      const error = yield* Effect.flip(Stream.runDrain(refused.watch("file:///tmp")))
      assert.match(error.message, /offers no subscriptions to resources/)
    }).pipe(Effect.provide(SkillRegistry.layer()))
  )
})
