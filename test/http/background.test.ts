/** Background calls as the clients of each protocol see them. */
import { Role } from "@a2a-js/sdk"
import { ClientFactory } from "@a2a-js/sdk/client"
import { type BaseEvent, HttpAgent } from "@ag-ui/client"
import { Chat } from "@ai-sdk/react"
import { assert, describe, it } from "@effect/vitest"
import { DefaultChatTransport, type UIMessage } from "ai"
import { Effect, Layer } from "effect"
import { Agent, Program } from "kernai"
import { A2a, AgUi, AiSdkUi } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { serve } from "../support/http.ts"

const worker = Program.make("worker", {
  background: true,
  run: (to) => Effect.as(Program.sleep("200 millis"), `${to} is paid`)
})

const agent = Agent.make({
  name: "lead",
  description: "Pays people.",
  instructions: "",
  model: "scripted",
  dialect: "tools",
  agents: [worker]
})

/** Calls the worker in the background, says that it waits, and repeats what arrived. */
const model = MockProvider.make().onCall(({ messages }) => {
  const said = messages.filter(({ role }) => role === "assistant").length
  if (said === 0) return { calls: [{ id: "call-1", name: "worker", input: { input: "Ada", background: true } }] }
  return JSON.stringify(messages).includes("Ada is paid") ? "It is done." : "I wait."
})

const start = serve({ agent, model, routes: Layer.mergeAll(AiSdkUi.layer(), AgUi.layer(), A2a.layer()) })

describe("a background call", () => {
  it.live("has its result in a later event over HTTP", () =>
    Effect.gen(function* () {
      const { url } = yield* start
      const text = yield* Effect.promise(async () => {
        const headers = { "content-type": "application/json" }
        return (await fetch(`${url}/runs/stream`, { method: "POST", headers, body: `{"input":"Pay Ada"}` })).text()
      })
      const places = ["in the background as 't1/call-1'", "I wait.", `"ended":[{`, "It is done."].map((part) =>
        text.indexOf(part)
      )
      assert.deepStrictEqual(
        places,
        places.toSorted((a, b) => a - b)
      )
      assert.isAbove(places[0] ?? -1, 0)
    }).pipe(Effect.scoped)
  )

  it.live("is a tool of useChat with a preliminary output, and an agent that runs, until its result arrives", () =>
    Effect.gen(function* () {
      const { url } = yield* start
      const chat = new Chat<UIMessage>({ id: "c", transport: new DefaultChatTransport({ api: `${url}/api/chat` }) })
      const seen = new Set<string>()
      chat["~registerMessagesCallback"](() => {
        for (const part of chat.lastMessage?.parts ?? []) {
          if (part.type === "data-agent") seen.add(JSON.stringify(part.data))
          if ("preliminary" in part && part.preliminary === true) seen.add("preliminary")
        }
      })
      yield* Effect.promise(() => chat.sendMessage({ text: "Pay Ada" }))
      const parts = chat.lastMessage?.parts ?? []
      assert.deepInclude(
        parts.find((part) => "toolCallId" in part),
        { state: "output-available", output: "Ada is paid" }
      )
      const texts = parts.flatMap((part) => (part.type === "text" ? [part.text] : []))
      assert.deepStrictEqual(texts, ["I wait.", "It is done."])
      const statuses = [...seen].flatMap((json) => /"status":"(\w+)"/.exec(json)?.[1] ?? json)
      assert.includeMembers(statuses, ["preliminary", "completed"])
    }).pipe(Effect.scoped)
  )

  it.live("is a subagent over AG-UI that works while the agent speaks, and its result follows", () =>
    Effect.gen(function* () {
      const { url } = yield* start
      const page = new HttpAgent({ url: `${url}/agui`, threadId: "thread1" })
      page.addMessage({ id: "user-1", role: "user", content: "Pay Ada" })
      const events: Array<BaseEvent> = []
      yield* Effect.promise(() => page.runAgent({}, { onEvent: ({ event }) => void events.push(event) }))
      const at = (type: string, text = "") =>
        events.findIndex((event) => event.type === type && JSON.stringify(event).includes(text))
      const order = [
        at("SUBAGENT_STARTED"),
        at("TEXT_MESSAGE_CONTENT", "I wait"),
        at("SUBAGENT_FINISHED"),
        at("TEXT_MESSAGE_CONTENT", "It is done")
      ]
      assert.deepStrictEqual(
        order,
        order.toSorted((a, b) => a - b)
      )
      const results = page.messages.flatMap((message) =>
        message.role === "tool" && !("subagentRunId" in message) ? [message.content] : []
      )
      assert.deepStrictEqual(results, ["Ada is paid"])
    }).pipe(Effect.scoped)
  )

  it.live("belongs to its task over A2A, which completes with the last answer", () =>
    Effect.gen(function* () {
      const { url } = yield* start
      const client = yield* Effect.promise(() => new ClientFactory().createFromUrl(url))
      const parts = [
        { content: { $case: "text", value: "Pay Ada" } as const, metadata: undefined, filename: "", mediaType: "" }
      ]
      const message = {
        messageId: "m",
        contextId: "",
        taskId: "",
        role: Role.ROLE_USER,
        parts,
        metadata: undefined,
        extensions: [],
        referenceTaskIds: []
      }
      const reply = yield* Effect.promise(() =>
        client.sendMessage({ tenant: "", message, configuration: undefined, metadata: undefined })
      )
      assert.include(JSON.stringify(reply), "It is done.")
    }).pipe(Effect.scoped)
  )
})
