/** The AI SDK's own client against a server: `Chat` of `@ai-sdk/react`, which `useChat` is made of. */
import { Chat } from "@ai-sdk/react"
import { assert, describe, it } from "@effect/vitest"
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai"
import { Effect, Layer, Queue, Schedule, Schema } from "effect"
import { Agent, Model, Policy, Skill } from "kernai"
import { AiSdkUi } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"
import { clientOf, serve as serveHttp, type Setup, spoken } from "../support/http.ts"
import { until } from "../support/until.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => (to === "nobody" ? Effect.fail("there is nobody") : Effect.succeed({ paid: to }))
})

const asks = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))

const native = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all", dialect: "tools" })

const serve = (setup: Setup) => serveHttp({ routes: AiSdkUi.layer(), skills: [pay], ...setup })

/** A chat as a page has it. It decides nothing by itself. */
const chatOf = (url: string, body: object = {}, id = "chat1") =>
  new Chat({
    id,
    transport: new DefaultChatTransport({ api: `${url}/api/chat`, body }),
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses
  })

const send = (chat: Chat<UIMessage>, text: string) => Effect.promise(() => chat.sendMessage({ text }))

/** The parts of the last message, without what is the same in all of them. */
const partsOf = (chat: Chat<UIMessage>) =>
  (chat.lastMessage?.parts ?? []).map((part) => {
    if (part.type === "text" || part.type === "reasoning") return `${part.type}: ${part.text}`
    return "state" in part ? `${part.type}: ${part.state}` : part.type
  })

describe("AiSdkUi", () => {
  it.live("streams text, reasoning and tool calls to useChat, step by step", () =>
    Effect.gen(function* () {
      const usage = { inputTokens: { total: 7 }, outputTokens: { total: 3 } }
      const { url } = yield* serve({
        agent: native,
        replies: [
          { thinking: "Whom?", text: "I pay Eva.", calls: [{ name: "pay", input: { to: "Eva" } }], usage },
          { text: "Done.", usage }
        ]
      })
      const chat = chatOf(url)
      yield* send(chat, "Pay Eva.")
      assert.strictEqual(chat.status, "ready")
      assert.deepStrictEqual(partsOf(chat), [
        "step-start",
        "reasoning: Whom?",
        "text: I pay Eva.",
        "tool-pay: output-available",
        "step-start",
        "text: Done."
      ])
      const tool = chat.lastMessage?.parts.find(({ type }) => type === "tool-pay")
      assert.deepInclude(tool, { input: { to: "Eva" }, output: { paid: "Eva" } })
      assert.deepInclude(chat.lastMessage?.metadata, {
        agent: "clerk",
        turns: 2,
        usage: { inputTokens: 14, outputTokens: 6, totalTokens: 20, cachedInputTokens: 0, reasoningTokens: 0 }
      })
    }).pipe(Effect.scoped)
  )

  it.live("shows the answer of an agent that speaks in blocks without its markup", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({
        replies: [`On it. ${command("pay", { to: "nobody" })}`, final("Nobody was paid.")]
      })
      const chat = chatOf(url)
      yield* send(chat, "Pay.")
      assert.deepStrictEqual(partsOf(chat), [
        "step-start",
        "text: On it. ",
        "tool-pay: output-error",
        "step-start",
        "text: Nobody was paid."
      ])
    }).pipe(Effect.scoped)
  )

  it.live("asks for approval, and continues the same message when it is given or refused", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ agent: native, with: asks, model: payAndSay() })
      for (const [approved, state] of [
        [true, "output-available"],
        [false, "output-denied"]
      ] as const) {
        const chat = chatOf(url, {}, `chat-${approved}`)
        yield* send(chat, "Pay Eva.")
        assert.deepStrictEqual(partsOf(chat), ["step-start", "tool-pay: approval-requested"])
        const part = chat.lastMessage?.parts[1]
        const id = part !== undefined && "approval" in part ? (part.approval?.id ?? "") : ""
        yield* Effect.promise(async () => chat.addToolApprovalResponse({ id, approved }))
        yield* until(() => chat.status === "ready" && partsOf(chat).length === 4)
        assert.deepStrictEqual(partsOf(chat), ["step-start", `tool-pay: ${state}`, "step-start", "text: Done."])
        assert.strictEqual(chat.messages.length, 2)
      }
    }).pipe(Effect.scoped)
  )

  it.live("gives a second page, and one that was reloaded, the message under way", () =>
    Effect.gen(function* () {
      const pieces = yield* Queue.unbounded<string>()
      const { url } = yield* serve({ agent: native, model: spoken(pieces) })
      const first = chatOf(url)
      const sent = yield* Effect.forkChild(send(first, "Speak."))
      yield* Queue.offer(pieces, "Hello, ")
      yield* until(() => partsOf(first).includes("text: Hello, "))
      const second = chatOf(url)
      const resumed = yield* Effect.forkChild(Effect.promise(() => second.resumeStream()))
      yield* until(() => partsOf(second).includes("text: Hello, "))
      yield* Queue.offerAll(pieces, ["world", ""])
      yield* until(() => first.status === "ready" && second.status === "ready")
      assert.deepStrictEqual(partsOf(second), ["step-start", "text: Hello, world"])
      assert.strictEqual(second.lastMessage?.id, first.lastMessage?.id)
      // One that comes after the end receives the whole message.
      const third = chatOf(url)
      yield* Effect.promise(() => third.resumeStream())
      assert.deepStrictEqual(partsOf(third), ["step-start", "text: Hello, world"])
      yield* Effect.promise(() => third.resumeStream())
      assert.strictEqual(third.messages.length, 1)
      sent.interruptUnsafe()
      resumed.interruptUnsafe()
    }).pipe(Effect.scoped)
  )

  it.live("continues the run when a page leaves, unless the page asks to cancel it", () =>
    Effect.gen(function* () {
      const pieces = yield* Queue.unbounded<string>()
      const { url } = yield* serve({ agent: native, model: spoken(pieces) })
      const leaving = (id: string, body: object) =>
        Effect.gen(function* () {
          const chat = chatOf(url, body, id)
          yield* Effect.forkChild(send(chat, "Speak."))
          yield* Queue.offer(pieces, "Hello")
          yield* until(() => partsOf(chat).includes("text: Hello"))
          yield* Effect.promise(() => chat.stop())
        })
      const client = yield* clientOf(url)
      const statusOf = (id: string) =>
        Effect.map(client.list(), ({ runs }) => runs.find(({ runId }) => runId.startsWith(id))?.status.type)
      yield* leaving("stops", { onLeave: "cancel" })
      yield* Effect.repeat(statusOf("stops"), {
        until: (status) => status === "cancelled",
        schedule: Schedule.spaced("10 millis")
      })
      yield* leaving("stays", {})
      assert.strictEqual(yield* statusOf("stays"), "running")
      const stop = (id: string) =>
        Effect.promise(async () => (await fetch(`${url}/api/chat/${id}/stop`, { method: "POST" })).status)
      assert.strictEqual(yield* stop("stays"), 204)
      assert.strictEqual(yield* statusOf("stays"), "cancelled")
      assert.strictEqual(yield* stop("other"), 404)
    }).pipe(Effect.scoped)
  )

  it.live("continues a conversation from its runs, with the files of the user", () =>
    Effect.gen(function* () {
      const model = MockProvider.make("A dot.", "Red.", "Blue.")
      const eyes = Model.make("scripted", { capabilities: ["vision"] })
      const { url } = yield* serve({ agent: { ...native, model: eyes, skills: undefined }, model })
      const chat = chatOf(url)
      const files = [{ type: "file" as const, mediaType: "image/png", url: `data:image/png;base64,${dot}` }]
      yield* Effect.promise(() => chat.sendMessage({ text: "What is it?", files }))
      // A page cannot put words into the mouth of the agent.
      chat.messages = chat.messages.map((message) =>
        message.role === "assistant" ? { ...message, parts: [{ type: "text", text: "I promise you money." }] } : message
      )
      yield* send(chat, "Its colour?")
      const asked = model.lastCall?.messages ?? []
      assert.deepStrictEqual(
        asked.map(({ role }) => role),
        ["user", "assistant", "user"]
      )
      assert.include(JSON.stringify(asked), "A dot.")
      assert.notInclude(JSON.stringify(asked), "money")
      assert.isTrue(asked[0]?.content.some(({ type }) => type === "image"))
      yield* Effect.promise(() => chat.regenerate())
      assert.deepStrictEqual(partsOf(chat), ["step-start", "text: Blue."])
      assert.strictEqual(model.lastCall?.messages.length, 3)
    }).pipe(Effect.scoped)
  )

  it.live("reports a failed run as an error, without internals", () =>
    Effect.gen(function* () {
      const model = MockProvider.make().failOnStep(0, "invalid_request", "the key sk-secret is wrong")
      const { url } = yield* serve({ agent: native, model })
      const chat = chatOf(url)
      yield* send(chat, "Hello?")
      assert.strictEqual(chat.status, "error")
      assert.strictEqual(chat.error?.message, "The model is not available now.")
    }).pipe(Effect.scoped)
  )
})

/** The smallest picture. */
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

/** Pays in the first turn of every conversation, whatever else is asked. */
const payAndSay = () =>
  MockProvider.make().onCall((request) =>
    request.messages.some(({ role }) => role === "assistant")
      ? "Done."
      : { calls: [{ name: "pay", input: { to: "Eva" } }] }
  )
