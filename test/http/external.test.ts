/** External calls over HTTP and in `useChat`: the page sees the call and gives its result. */
import { Chat } from "@ai-sdk/react"
import { assert, describe, it } from "@effect/vitest"
import { DefaultChatTransport, lastAssistantMessageIsCompleteWithToolCalls, type UIMessage } from "ai"
import { Effect, Schedule, Schema } from "effect"
import { Agent, Skill } from "kernai"
import { AiSdkUi } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { serve } from "../support/http.ts"
import { until } from "../support/until.ts"

const locate = Skill.external("locate", {
  description: "Finds the place of the user's device",
  input: Schema.Struct({}),
  output: Schema.Struct({ city: Schema.String })
})

const agent = Agent.make({ name: "guide", instructions: "", model: "scripted", skills: [locate], dialect: "tools" })

const start = serve({
  agent,
  routes: AiSdkUi.layer(),
  model: MockProvider.make().onCall(({ messages }) =>
    messages.some(({ role }) => role === "assistant")
      ? `You are in ${JSON.stringify(messages.at(-1)?.content).includes("Rome") ? "Rome" : "no city"}.`
      : { calls: [{ name: "locate", input: {} }] }
  )
})

describe("an external call", () => {
  it.live("is a tool call of useChat that the page runs, and its result continues the run", () =>
    Effect.gen(function* () {
      const { url } = yield* start
      const chat = new Chat<UIMessage>({
        id: "c",
        transport: new DefaultChatTransport({ api: `${url}/api/chat` }),
        sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls,
        onToolCall: ({ toolCall: { toolCallId, toolName: tool } }) => {
          void chat.addToolOutput({ tool, toolCallId, output: { city: "Rome" } })
        }
      })
      yield* Effect.promise(() => chat.sendMessage({ text: "Where am I?" }))
      yield* until(() => JSON.stringify(chat.lastMessage?.parts).includes("You are in Rome."))
    }).pipe(Effect.scoped)
  )

  it.live("is a question over HTTP with the schema of its result, and takes the result as its answer", () =>
    Effect.gen(function* () {
      const { url } = yield* start
      const fetched = (path: string, body?: unknown) =>
        Effect.promise(async () => {
          const given = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }
          const response = await fetch(`${url}${path}`, { headers: { "content-type": "application/json" }, ...given })
          return { status: response.status, text: await response.text() }
        })
      const started = yield* fetched("/runs", { input: "Where am I?" })
      const run = `/runs/${/"runId":"([^"]+)"/.exec(started.text)?.[1]}`
      const questions = yield* fetched(`${run}/questions`).pipe(
        Effect.repeat({ until: ({ text }) => text.includes("callId"), schedule: Schedule.spaced("20 millis") })
      )
      assert.include(questions.text, `"city"`)
      const callId = /"callId":"([^"]+)"/.exec(questions.text)?.[1] ?? ""
      const misfit = yield* fetched(`${run}/answers`, { answers: [{ callId, output: { city: 5 } }] })
      assert.strictEqual(misfit.status, 400)
      assert.include(misfit.text, "the output does not fit its schema")
      const given = yield* fetched(`${run}/answers`, { answers: [{ callId, output: { city: "Rome" } }] })
      assert.isBelow(given.status, 300)
    }).pipe(Effect.scoped)
  )
})
