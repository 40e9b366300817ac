/** Forms of running calls in AI SDK UI, AG-UI and A2A: how a page sees and fills them, and answers as plain text. */
import { Chat } from "@ai-sdk/react"
import { assert, describe, it } from "@effect/vitest"
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai"
import { Effect, Layer, Schema } from "effect"
import { Agent, Policy, Skill } from "kernai"
import { A2a, AgUi, AiSdkUi } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { serve } from "../support/http.ts"
import { until } from "../support/until.ts"

const form = { type: "object", properties: { seat: { type: "string", minLength: 2 } }, required: ["seat"] }

const book = Skill.make("book", {
  description: "Books a seat",
  input: Schema.Struct({}),
  execute: (_, { ask }) =>
    Effect.map(ask?.({ message: "Which seat?", form }) ?? Effect.die("nobody"), (reply) =>
      reply._tag === "Accepted" ? `seat ${JSON.stringify(reply.values)}` : reply._tag
    )
})

const pay = Skill.make("pay", { description: "Pays", input: Schema.Struct({}), execute: () => Effect.succeed("paid") })

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all", dialect: "tools" })

const start = (name: "book" | "pay") =>
  serve({
    agent,
    skills: [book, pay],
    routes: Layer.mergeAll(AiSdkUi.layer(), AgUi.layer(), A2a.layer()),
    model: MockProvider.make().onCall(({ messages }) =>
      messages.some(({ role }) => role === "assistant") ? "Done." : { calls: [{ name, input: {} }] }
    ),
    with: Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))
  })

const post = (url: string, body: unknown) =>
  Effect.promise(async () => {
    const headers = { "content-type": "application/json", "a2a-version": "1.0" }
    const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })
    return { status: response.status, text: await response.text() }
  })

describe("the form of a running call", () => {
  it.live("is a part of a message of useChat, whose values the page sends with its approval", () =>
    Effect.gen(function* () {
      const { url } = yield* start("book")
      const chat = new Chat<UIMessage>({
        id: "c",
        transport: new DefaultChatTransport({ api: `${url}/api/chat` }),
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses
      })
      yield* Effect.promise(() => chat.sendMessage({ text: "Book." }))
      const part = chat.lastMessage?.parts.find(({ type }) => type === "data-form")
      assert.deepInclude(part, { data: { message: "Which seat?", form } })
      const id = part !== undefined && "id" in part ? String(part.id) : ""
      const answer = (values: object) =>
        Effect.promise(async () =>
          chat.addToolApprovalResponse({ id, approved: true, options: { body: { values: { [id]: values } } } })
        )
      yield* answer({ seat: "12A" })
      yield* until(() => chat.lastMessage?.parts.some((part) => part.type === "text" && part.text === "Done.") === true)
      const output = chat.lastMessage?.parts.find(({ type }) => type === "tool-book")
      assert.deepInclude(output, { state: "output-available", output: 'seat {"seat":"12A"}' })
    }).pipe(Effect.scoped)
  )

  it.live("refuses values that do not fit it", () =>
    Effect.gen(function* () {
      const { url } = yield* start("book")
      const user = { id: "m1", role: "user", parts: [{ type: "text", text: "Book." }] }
      const asked = yield* post(`${url}/api/chat`, { id: "c", messages: [user], trigger: "submit-message" })
      const id = /"messageId":"([^"]+)"/.exec(asked.text)?.[1] ?? ""
      const callId = /"approvalId":"([^"]+)"/.exec(asked.text)?.[1] ?? ""
      const part = { type: "tool-book", state: "approval-responded", approval: { id: callId, approved: true } }
      const messages = [user, { id, role: "assistant", parts: [part] }]
      for (const values of [undefined, {}, { [callId]: {} }, { [callId]: { seat: 5 } }]) {
        const body = { id: "c", messages, trigger: "submit-message", values }
        const { status, text } = yield* post(`${url}/api/chat`, body)
        assert.strictEqual(status, 400, text)
        assert.include(text, "the values do not fit the form")
      }
    }).pipe(Effect.scoped)
  )
})

describe("plain text", () => {
  const agUi = Effect.fnUntraced(function* (url: string, payloads: ReadonlyArray<unknown>) {
    const input = { threadId: "t", runId: "r1", tools: [], context: [], state: {}, forwardedProps: {} }
    const messages = [{ id: "m1", role: "user", content: "Go." }]
    const asked = yield* post(`${url}/agui`, { ...input, messages })
    const interruptId = /"interrupts":\[\{"id":"([^"]+)"/.exec(asked.text)?.[1] ?? ""
    return yield* Effect.forEach(payloads, (payload, index) =>
      post(`${url}/agui`, {
        ...input,
        runId: `r${index + 2}`,
        messages,
        resume: [{ interruptId, status: "resolved", payload }]
      })
    )
  })

  const a2a = Effect.fnUntraced(function* (url: string, texts: ReadonlyArray<string>) {
    let count = 0
    const send = (text: string, ids = {}) =>
      post(`${url}/a2a`, {
        jsonrpc: "2.0",
        id: 1,
        method: "SendMessage",
        params: { message: { messageId: `m${++count}`, role: "ROLE_USER", parts: [{ text }], ...ids } }
      })
    const { task } = JSON.parse((yield* send("Go.")).text).result
    return yield* Effect.forEach(texts, (text) => send(text, { taskId: task.id, contextId: task.contextId }))
  })

  it.live("fills a form of one text over AG-UI and A2A", () =>
    Effect.gen(function* () {
      const { url } = yield* start("book")
      const [short, fits] = yield* agUi(url, ["1", "12A"])
      assert.strictEqual(short?.status, 400)
      assert.include(fits?.text, "12A")
      assert.include(fits?.text, "Done.")
      const [refused, task] = yield* a2a(url, ["1", "12A"])
      assert.include(refused?.text, "the values do not fit the form")
      assert.include(task?.text, "TASK_STATE_COMPLETED")
    }).pipe(Effect.scoped)
  )

  it.live("approves or denies a call as yes or no over AG-UI and A2A, and nothing else does", () =>
    Effect.gen(function* () {
      const { url } = yield* start("pay")
      const [unclear, approved] = yield* agUi(url, ["perhaps", "Yes."])
      assert.strictEqual(unclear?.status, 400)
      assert.include(approved?.text, "paid")
      const [unread, denied] = yield* a2a(url, ["perhaps", "no"])
      assert.include(unread?.text, "-32602")
      assert.include(denied?.text, "TASK_STATE_COMPLETED")
    }).pipe(Effect.scoped)
  )
})
