/** Ids as clients of AI SDK UI, AG-UI and A2A choose them, edited and repeated messages, and refused requests. */
import { Chat } from "@ai-sdk/react"
import { assert, describe, it } from "@effect/vitest"
import { DefaultChatTransport, type UIMessage } from "ai"
import { Effect, Layer, Queue } from "effect"
import { Agent, Message } from "kernai"
import { A2a, AgUi, AiSdkUi } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { clientOf, serve, type Setup, spoken } from "../support/http.ts"

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", dialect: "tools" })

/** Answers the last message with its text. */
const echo = () =>
  MockProvider.make().onCall(({ messages }) => {
    const asked = messages.findLast(({ role }) => role === "user")
    return { text: `answer to ${asked === undefined ? "" : Message.text(asked)}` }
  })

const routes = Layer.mergeAll(AiSdkUi.layer(), AgUi.layer(), A2a.layer())

const start = (setup: Setup) => serve({ agent, routes, ...setup })

const post = (url: string, body: unknown) =>
  Effect.promise(async () => {
    const headers = { "content-type": "application/json", "a2a-version": "1.0" }
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
    return { status: response.status, text: await response.text() }
  })

const chatOf = (url: string, id: string) =>
  new Chat<UIMessage>({ id, transport: new DefaultChatTransport({ api: `${url}/api/chat` }) })

const shown = (chat: Chat<UIMessage>) =>
  chat.messages.map(({ parts }) => parts.map((part) => ("text" in part ? part.text : "")).join(""))

const agUi = (threadId: string, runId: string, content: string) => ({
  threadId,
  runId,
  messages: [{ id: "m1", role: "user", content }],
  tools: [],
  context: [],
  state: {},
  forwardedProps: {}
})

const a2a = (messageId: string, text: string, more = {}, method = "SendMessage") => ({
  jsonrpc: "2.0",
  id: 1,
  method,
  params: { message: { messageId, role: "ROLE_USER", parts: [{ text }], ...more } }
})

const ids = [
  "chat_0b9ed0a8-9d1f-4f5e-8c5c-8e1f4f2f7a11",
  "urn:msg:1",
  "user@x/1",
  "a.b~c=d%2F",
  "größe 📎",
  "x".repeat(200)
]

describe("the ids of clients", () => {
  it.live("may have any characters in useChat, also when the page opens the stream again", () =>
    Effect.gen(function* () {
      const { url } = yield* start({ model: echo() })
      for (const id of ids) {
        const messages = [{ id: `m/${id}`, role: "user", parts: [{ type: "text", text: "Hello." }] }]
        const sent = yield* post(`${url}/api/chat`, { id, messages, trigger: "submit-message" })
        assert.include(sent.text, "answer to Hello.", id)
        const again = yield* Effect.promise(() => fetch(`${url}/api/chat/${encodeURIComponent(id)}/stream`))
        assert.include(yield* Effect.promise(() => again.text()), "answer to Hello.", id)
      }
      // As the client of the AI SDK asks for it.
      for (const id of ["urn:msg:1", "user@x/1"]) {
        const again = yield* Effect.promise(() => fetch(`${url}/api/chat/${id}/stream`))
        assert.include(yield* Effect.promise(() => again.text()), "answer to Hello.", id)
      }
      const client = yield* clientOf(url)
      assert.strictEqual((yield* client.list()).runs.length, ids.length)
      const body = { messages: [{ id: "m", role: "user", parts: [] }], trigger: "submit-message" }
      for (const id of ["", "x".repeat(700), "\ud800"]) {
        assert.strictEqual((yield* post(`${url}/api/chat`, { ...body, id })).status, 400)
      }
    }).pipe(Effect.scoped)
  )

  it.live("may have any characters in AG-UI, whose client receives its own", () =>
    Effect.gen(function* () {
      const { url } = yield* start({ model: echo() })
      for (const id of ids) {
        const { text } = yield* post(`${url}/agui`, agUi(id, id, "Hello."))
        assert.include(text, JSON.stringify({ threadId: id, runId: id }).slice(1, -1), id)
        assert.include(text, "answer to Hello.", id)
      }
    }).pipe(Effect.scoped)
  )

  it.live("may have any characters in A2A, whose client receives its own", () =>
    Effect.gen(function* () {
      const { url } = yield* start({ model: echo() })
      for (const id of ids) {
        const { text } = yield* post(`${url}/a2a`, a2a(id, "Hello.", { contextId: id }))
        const { task } = JSON.parse(text).result
        assert.deepStrictEqual([task.contextId, task.history[0].messageId], [id, id])
        const params = { contextId: id }
        const listed = yield* post(`${url}/a2a`, { jsonrpc: "2.0", id: 1, method: "ListTasks", params })
        assert.strictEqual(JSON.parse(listed.text).result.tasks[0].id, task.id)
      }
    }).pipe(Effect.scoped)
  )
})

describe("a message", () => {
  it.live("that a user edits is another message of useChat, which drops what followed", () =>
    Effect.gen(function* () {
      const model = echo()
      const { url } = yield* start({ model })
      const chat = chatOf(url, "c")
      yield* Effect.promise(() => chat.sendMessage({ text: "capital of Peru" }))
      const messageId = chat.messages[0]?.id ?? ""
      yield* Effect.promise(() => chat.sendMessage({ text: "more" }))
      yield* Effect.promise(() => chat.sendMessage({ text: "capital of Chile", messageId }))
      assert.deepStrictEqual(shown(chat), ["capital of Chile", "answer to capital of Chile"])
      assert.deepStrictEqual(model.calls.at(-1)?.messages.map(Message.text), ["capital of Chile"])
      assert.strictEqual(model.callCount, 3)
      // The same text under the same id is the same message.
      yield* Effect.promise(() => chat.sendMessage({ text: "capital of Chile", messageId }))
      assert.deepStrictEqual(shown(chat), ["capital of Chile", "answer to capital of Chile"])
      assert.strictEqual(model.callCount, 3)
    }).pipe(Effect.scoped)
  )

  it.live("that is sent three times to A2A has one run, and another text under its id has another", () =>
    Effect.gen(function* () {
      const model = echo()
      const { url } = yield* start({ model })
      const tasks = new Set<string>()
      for (const text of ["Hello.", "Hello.", "Hello."]) {
        tasks.add(JSON.parse((yield* post(`${url}/a2a`, a2a("1", text))).text).result.task.id)
      }
      assert.deepStrictEqual([tasks.size, model.callCount], [1, 1])
      tasks.add(JSON.parse((yield* post(`${url}/a2a`, a2a("1", "Bye."))).text).result.task.id)
      assert.deepStrictEqual([tasks.size, model.callCount], [2, 2])
    }).pipe(Effect.scoped)
  )
})

describe("a request above the limit of streams", () => {
  it.live("starts no run, whatever the protocol", () =>
    Effect.gen(function* () {
      const pieces = yield* Queue.unbounded<string>()
      const { url } = yield* start({ model: spoken(pieces), options: { limits: { followers: 1 } } })
      const client = yield* clientOf(url)
      const first = yield* client.start("clerk", "Hello.")
      yield* Effect.acquireRelease(
        Effect.promise(() => fetch(`${url}/runs/${first}/events`)),
        (response) => Effect.promise(() => response.body?.cancel() ?? Promise.resolve())
      )
      const user = { id: "m", role: "user", parts: [{ type: "text", text: "Hello." }] }
      const refused = [
        yield* post(`${url}/runs/stream`, { input: "Hello." }),
        yield* post(`${url}/api/chat`, { id: "c", messages: [user], trigger: "submit-message" }),
        yield* post(`${url}/agui`, agUi("t", "r", "Hello.")),
        yield* post(`${url}/a2a`, a2a("1", "Hello.")),
        yield* post(`${url}/a2a`, a2a("2", "Hello.", {}, "SendStreamingMessage"))
      ]
      assert.deepStrictEqual(
        refused.map(({ status }) => status),
        [429, 429, 429, 429, 429]
      )
      assert.deepStrictEqual(
        (yield* client.list()).runs.map(({ runId }) => runId),
        [first]
      )
    }).pipe(Effect.scoped)
  )
})
