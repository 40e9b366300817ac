/** What a server of skills asks its client: for its person, for its model, and what it tells of changes. */
import { assert, describe, it } from "@effect/vitest"
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import type { Transport } from "@modelcontextprotocol/sdk/shared/transport.js"
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  type ElicitResult,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema
} from "@modelcontextprotocol/sdk/types.js"
import { Deferred, Effect, Layer, Redacted, Schema } from "effect"
import { McpServer } from "effect/ai"
import { Agent, Kernel, MediaStore, Policy, ProtocolRegistry, RunStore, Skill, SkillRegistry } from "kernai"
import { type McpConnection, McpServe } from "kernai/mcp"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import * as Support from "../support/mcp/connect.ts"

const form = { type: "object", properties: { seat: { type: "string" } }, required: ["seat"] }

const book = Skill.make("book", {
  description: "Books",
  input: Schema.Struct({}),
  execute: Effect.fnUntraced(function* (_, { ask }) {
    if (ask === undefined) return "nobody to ask"
    const reply = yield* ask({ message: "Which seat?", form })
    return reply._tag === "Accepted" ? `booked ${String(reply.values["seat"])}` : reply._tag
  })
})

const pair = Skill.make("pair", {
  description: "Books two seats",
  input: Schema.Struct({ row: Schema.optionalKey(Schema.Int), near: Schema.optionalKey(Schema.JsonObject) }),
  execute: Effect.fnUntraced(function* (_, { ask }) {
    if (ask === undefined) return "nobody to ask"
    const asking = ["Seat A", "Seat B"].map((message) => ask({ message, form }))
    const replies = yield* Effect.all(asking, { concurrency: "unbounded" })
    return replies.map((reply) => (reply._tag === "Accepted" ? String(reply.values["seat"]) : reply._tag)).join(" and ")
  })
})

const think = Skill.make("think", {
  description: "Thinks",
  input: Schema.Struct({}),
  execute: Effect.fnUntraced(function* (_, { sample }) {
    if (sample === undefined) return "no model"
    const messages = [{ role: "user" as const, content: [{ type: "text" as const, text: "2 + 2?" }] }]
    const { finishReason, model, text } = yield* sample({ messages, system: "Be short", maxTokens: 9 })
    return `${text} (${model}, ${finishReason})`
  })
})

/** The official client, whose person replies like this. */
const client = Effect.fnUntraced(function* (
  { token, url }: McpServe.Endpoint,
  reply: ((message: string) => ElicitResult) | undefined
) {
  const asked: Array<string> = []
  const client = new Client(
    { name: "oracle", version: "1" },
    { capabilities: reply === undefined ? {} : { elicitation: {}, sampling: {} } }
  )
  if (reply !== undefined) {
    client.setRequestHandler(ElicitRequestSchema, ({ params }) => {
      asked.push(params.message)
      return reply(params.message)
    })
    client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => {
      asked.push(JSON.stringify(params))
      return { role: "assistant", content: { type: "text", text: "four" }, model: "theirs", stopReason: "maxTokens" }
    })
  }
  const authorization = `Bearer ${Redacted.value(token!)}`
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: { authorization } } })
  yield* Effect.acquireRelease(
    Effect.promise(() => client.connect(transport as Transport)),
    () => Effect.promise(() => client.close())
  )
  const call = (name: string, input: Record<string, unknown> = {}) =>
    Effect.map(
      Effect.promise(() => client.callTool({ name, arguments: input })),
      ({ content }) => (content as ReadonlyArray<{ readonly text?: string }>).map(({ text }) => text).join("")
    )
  return { asked, call, client }
})

/** Calls the skill `pair` in the revision without a handshake, as a client that writes its requests itself. */
const calling = (token: Redacted.Redacted, url: string) => (params: object) =>
  Effect.promise(async () => {
    const response = await fetch(url, {
      method: "POST",
      headers: {
        authorization: `Bearer ${Redacted.value(token)}`,
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call",
        "mcp-name": "pair"
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: {
          ...params,
          name: "pair",
          _meta: {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
            "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } }
          }
        }
      })
    })
    const text = await response.text()
    return JSON.parse(/^data: (.*)$/m.exec(text)?.[1] ?? text)
  })

const seat = (): ElicitResult => ({ action: "accept", content: { seat: "12A" } })
const skills = SkillRegistry.layer(book, think)

/** A server whose agent calls a skill that has to be confirmed, and one that asks. */
const agents = (...replies: ReadonlyArray<string>) => {
  const pay = Skill.make("pay", {
    description: "Pays",
    input: Schema.Struct({ amount: Schema.Finite }),
    execute: ({ amount }) => Effect.succeed(`paid ${amount}`)
  })
  const agent = Agent.make({ name: "clerk", instructions: "", model: "mock", skills: "all" })
  const kernel = Kernel.layer.pipe(
    Layer.provide([
      SkillRegistry.layer(pay, book),
      ProtocolRegistry.layer(),
      MediaStore.layerMemory,
      RunStore.layerMemory,
      MockProvider.layer(...replies),
      Policy.layerRules({ confirm: [{ name: "pay" }] })
    ])
  )
  return SkillRegistry.layer(McpServe.agent(agent)).pipe(Layer.provide(kernel))
}

describe("A server of skills", () => {
  it.live("asks the person and the model of a client that can be asked", () =>
    Effect.gen(function* () {
      const { asked, call } = yield* client(yield* McpServe.http(), seat)
      assert.strictEqual(yield* call("book"), "booked 12A")
      assert.strictEqual(yield* call("think"), "four (theirs, length)")
      assert.strictEqual(asked[0], "Which seat?")
      assert.deepInclude(JSON.parse(asked[1]!), {
        systemPrompt: "Be short",
        maxTokens: 9,
        messages: [{ role: "user", content: { type: "text", text: "2 + 2?" } }]
      })
    }).pipe(Effect.provide(skills))
  )

  it.live("fails the questions of skills if the client cannot ask a person", () =>
    Effect.gen(function* () {
      const { call } = yield* client(yield* McpServe.http(), undefined)
      assert.strictEqual(yield* call("book"), "nobody to ask")
      assert.strictEqual(yield* call("think"), "no model")
    }).pipe(Effect.provide(skills))
  )

  it.live.each([
    [{ action: "decline" }, "Declined"],
    [{ action: "cancel" }, "Dismissed"]
  ] as const)("passes on the reply %j", ([reply, tag]) =>
    Effect.gen(function* () {
      const { call } = yield* client(yield* McpServe.http(), () => ({ ...reply }))
      assert.strictEqual(yield* call("book"), tag)
    }).pipe(Effect.provide(skills))
  )

  it.live("passes no values that do not fit the form to a skill", () =>
    Effect.gen(function* () {
      for (const content of [{}, { seat: 5 }, { other: "12A" }] as ReadonlyArray<Record<string, string | number>>) {
        const { call } = yield* client(yield* McpServe.http(), () => ({ action: "accept", content }))
        assert.strictEqual(yield* call("book"), "Declined")
      }
    }).pipe(Effect.provide(skills))
  )

  describe("has a call confirmed by the person of the client", () => {
    const careful = Layer.orDie(Policy.layerRules({ confirm: [{ name: "book", reason: "it costs" }] }))
    const served = <A, E>(
      reply: Parameters<typeof client>[1],
      body: (made: Effect.Success<ReturnType<typeof client>>) => Effect.Effect<A, E>
    ) =>
      Effect.gen(function* () {
        return yield* body(yield* client(yield* McpServe.http(), reply))
      }).pipe(Effect.provide(Layer.merge(skills, careful)))

    it.live("if the skill itself demands it", () =>
      Effect.gen(function* () {
        const { asked, call } = yield* client(yield* McpServe.http(), () => ({ action: "decline" }))
        assert.include(yield* call("pay"), "it was not confirmed")
        assert.include(asked[0], "'pay' has to be approved: pay {}")
      }).pipe(
        Effect.provide(
          SkillRegistry.layer(
            Skill.make("pay", {
              description: "Pays",
              input: Schema.Struct({}),
              approval: "always",
              execute: () => Effect.succeed("paid")
            })
          )
        )
      )
    )

    it.live("and runs the call when it is confirmed", () =>
      served(seat, ({ asked, call }) =>
        Effect.gen(function* () {
          assert.strictEqual(yield* call("book"), "booked 12A")
          assert.deepStrictEqual(asked, ["it costs: book {}", "Which seat?"])
        })
      )
    )

    it.live("and fails the call when it is refused, or if there is no person", () =>
      Effect.gen(function* () {
        yield* served(
          () => ({ action: "decline" }),
          ({ call }) => Effect.map(call("book"), (text) => assert.strictEqual(text, "it costs (it was not confirmed)"))
        )
        yield* served(undefined, ({ call }) =>
          Effect.map(call("book"), (text) =>
            assert.strictEqual(text, "it costs (a person has to confirm this, and none is here)")
          )
        )
      })
    )
  })

  describe("of an agent", () => {
    it.live("asks the questions of its run, and answers with the result of the run", () =>
      Effect.gen(function* () {
        const { asked, call } = yield* client(yield* McpServe.http(), seat)
        assert.strictEqual(yield* call("clerk", { input: "pay and book" }), "all done")
        assert.deepStrictEqual(asked, [`'pay' has to be confirmed: pay {"amount":7}`, "Which seat?"])
      }).pipe(Effect.provide(agents(command("pay", { amount: 7 }) + command("book"), final("all done"))))
    )

    it.live("fails when the client cannot ask", () =>
      Effect.gen(function* () {
        const { call } = yield* client(yield* McpServe.http(), undefined)
        assert.match(yield* call("clerk", { input: "pay" }), /is paused: approval_required/)
      }).pipe(Effect.provide(agents(command("pay", { amount: 7 }), final("never"))))
    )
  })

  describe("in the revision without a handshake", () => {
    const connect = Effect.fnUntraced(function* (host?: McpConnection.Host) {
      const { token, url } = yield* McpServe.http()
      const headers = { authorization: `Bearer ${Redacted.value(token!)}` }
      return yield* Support.connect(
        { url, headers, protocolVersion: "2026-07-28" },
        host === undefined ? undefined : { host }
      )
    })
    const accepts = (): Effect.Effect<Skill.Reply> => Effect.succeed({ _tag: "Accepted", values: { seat: "3C" } })

    it.live("responds to the call with the question, and continues when it is sent again", () =>
      Effect.gen(function* () {
        const connection = yield* connect({ elicit: accepts })
        assert.strictEqual(Support.textOf(yield* connection.callTool("book", {})), "booked 3C")
      }).pipe(Effect.provide([skills, Support.platform]))
    )

    it.live("asks several times in one call of an agent", () =>
      Effect.gen(function* () {
        const connection = yield* connect({ elicit: accepts })
        const result = yield* connection.callTool("clerk", { input: "pay and book" })
        assert.strictEqual(Support.textOf(result), "all done")
      }).pipe(
        Effect.provide([agents(command("pay", { amount: 7 }) + command("book"), final("all done")), Support.platform])
      )
    )

    it.live("sends the questions that a call asks at the same time together, and gives each its own answer", () =>
      Effect.gen(function* () {
        const connection = yield* connect({
          elicit: ({ message }) => Effect.succeed({ _tag: "Accepted", values: { seat: message.slice(-1) } })
        })
        assert.strictEqual(Support.textOf(yield* connection.callTool("pair", {})), "A and B")
      }).pipe(Effect.provide([SkillRegistry.layer(pair), Support.platform]))
    )

    it.live("refuses a state that is changed, or of another call, with an error of the protocol", () =>
      Effect.gen(function* () {
        const { token, url } = yield* McpServe.http()
        const call = calling(token!, url)
        const { result } = yield* call({ arguments: { row: 1 } })
        const keys = Object.keys(result.inputRequests)
        assert.lengthOf(keys, 2)
        const answers = (given: ReadonlyArray<string>) =>
          Object.fromEntries(given.map((key) => [key, { action: "accept", content: { seat: key } }]))
        const { requestState } = result
        for (const wrong of [
          { arguments: { row: 1 }, requestState: `${requestState}x` },
          { arguments: { row: 2 }, requestState }
        ]) {
          const { error } = yield* call({ ...wrong, inputResponses: answers(keys) })
          assert.strictEqual(error?.code, -32602)
        }
        // The call still waits, and asks again for an answer that is missing.
        const again = yield* call({ arguments: { row: 1 }, requestState, inputResponses: answers(keys.slice(0, 1)) })
        assert.deepStrictEqual(Object.keys(again.result.inputRequests), keys.slice(1))
        const done = yield* call({
          arguments: { row: 1 },
          requestState: again.result.requestState,
          inputResponses: answers(keys.slice(1))
        })
        assert.strictEqual(done.result.content[0].text, keys.join(" and "))
      }).pipe(Effect.scoped, Effect.provide(SkillRegistry.layer(pair)))
    )

    it.live("knows a repeated call again whose arguments are in another order", () =>
      Effect.gen(function* () {
        const { token, url } = yield* McpServe.http()
        const call = calling(token!, url)
        const first = { row: 1, near: { aisle: true, door: false } }
        const { requestState } = (yield* call({ arguments: first })).result
        const again = { near: { door: false, aisle: true }, row: 1 }
        const { result } = yield* call({ arguments: again, requestState, inputResponses: {} })
        assert.lengthOf(Object.keys(result.inputRequests), 2)
      }).pipe(Effect.scoped, Effect.provide(SkillRegistry.layer(pair)))
    )

    it.live("does not ask a client that cannot be asked", () =>
      Effect.gen(function* () {
        const connection = yield* connect()
        assert.strictEqual(Support.textOf(yield* connection.callTool("book", {})), "nobody to ask")
      }).pipe(Effect.provide([skills, Support.platform]))
    )
  })

  it.live("announces changed tools, and resources that a client subscribed to, over HTTP", () =>
    Effect.gen(function* () {
      const server = yield* Deferred.make<McpServer.McpServer["Service"]>()
      const watched = (uri: string) => McpServer.resource({ uri, name: uri, content: Effect.succeed("now") })
      const registrations = Layer.mergeAll(
        watched("test://one"),
        watched("test://two"),
        Layer.effectDiscard(McpServer.McpServer.use((made) => Deferred.succeed(server, made)))
      )
      const { client: official } = yield* client(yield* McpServe.http({ registrations }), undefined)
      const seen: Array<string> = []
      official.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void seen.push(params.uri))
      official.setNotificationHandler(ToolListChangedNotificationSchema, () => void seen.push("tools"))
      assert.deepStrictEqual(official.getServerCapabilities()?.resources, { listChanged: true, subscribe: true })
      const { resources } = yield* Effect.promise(() => official.listResources())
      assert.lengthOf(resources, 2)
      yield* Effect.promise(() => official.subscribeResource({ uri: "test://one" }))
      const { notifications } = yield* Deferred.await(server)
      const updated = (uri: string) => notifications["notifications/resources/updated"]({ uri })
      // The stream of a client opens a moment after its handshake.
      yield* Support.until(() => {
        Effect.runFork(updated("test://one"))
        return seen.length > 0
      })
      assert.notInclude(seen, "test://two")
      yield* Effect.promise(() => official.unsubscribeResource({ uri: "test://one" }))
      yield* updated("test://two")
      seen.length = 0
      const late = Skill.make("late", { description: "", input: Schema.Struct({}), execute: () => Effect.succeed("") })
      const registry = yield* SkillRegistry.SkillRegistry
      yield* registry.register(late)
      yield* Support.until(() => seen.includes("tools"))
      assert.deepStrictEqual([...new Set(seen)], ["tools"])
    }).pipe(Effect.scoped, Effect.provide(skills))
  )
})
