/** External calls over AG-UI: tools that the page of the protocol's own client runs, and interrupts that ask for a result. */
import { HttpAgent, type ResumeEntry } from "@ag-ui/client"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Skill } from "kernai"
import { A2a, AgUi } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { serve } from "../support/http.ts"

const locate = Skill.external("locate", {
  description: "Finds the place of the user's device",
  input: Schema.Struct({}),
  output: Schema.Struct({ city: Schema.String })
})

const agent = Agent.make({ name: "guide", instructions: "", model: "scripted", skills: [locate], dialect: "tools" })

const start = serve({
  agent,
  routes: Layer.mergeAll(AgUi.layer(), A2a.layer()),
  model: MockProvider.make().onCall(({ messages }) =>
    messages.some(({ role }) => role === "assistant")
      ? `You are in ${JSON.stringify(messages.at(-1)?.content).includes("Rome") ? "Rome" : "no city"}.`
      : { calls: [{ name: "locate", input: {} }] }
  )
})

const tool = { name: "locate", description: "Finds the place", parameters: { type: "object", properties: {} } }

const pageOf = (url: string) => {
  const page = new HttpAgent({ url: `${url}/agui`, threadId: "thread1" })
  page.addMessage({ id: "user-0", role: "user", content: "Where am I?" })
  return page
}

const run = (page: HttpAgent, parameters: Parameters<HttpAgent["runAgent"]>[0] = {}) =>
  Effect.promise(() => page.runAgent(parameters))

/** The id of the call that the page received. */
const calledIn = (page: HttpAgent): string =>
  page.messages.flatMap((message) => (message.role === "assistant" ? (message.toolCalls ?? []) : []))[0]?.id ?? ""

describe("an external call over AG-UI", () => {
  it.live("is a tool of the page, whose next request has its result", () =>
    Effect.gen(function* () {
      const { url } = yield* start
      const page = pageOf(url)
      yield* run(page, { tools: [tool] })
      assert.strictEqual(page.pendingInterrupts.length, 0)
      page.addMessage({ id: "result-0", role: "tool", toolCallId: calledIn(page), content: `{"city":"Rome"}` })
      yield* run(page, { tools: [tool] })
      assert.strictEqual(page.messages.at(-1)?.content, "You are in Rome.")
    }).pipe(Effect.scoped)
  )

  it.live("is an interrupt for a page that does not have the tool, which sends the result or why there is none", () =>
    Effect.gen(function* () {
      const { url } = yield* start
      for (const [payload, said] of [
        [{ output: { city: "Rome" } }, "You are in Rome."],
        [{ error: "no signal" }, "You are in no city."]
      ] as const) {
        const page = new HttpAgent({ url: `${url}/agui`, threadId: `thread-${said}` })
        page.addMessage({ id: "user-0", role: "user", content: "Where am I?" })
        yield* run(page)
        const resume = page.pendingInterrupts.map(({ id }): ResumeEntry => ({
          interruptId: id,
          status: "resolved",
          payload
        }))
        assert.strictEqual(resume.length, 1)
        yield* run(page, { resume })
        assert.strictEqual(page.messages.at(-1)?.content, said)
      }
    }).pipe(Effect.scoped)
  )

  it.live("takes no result that does not fit", () =>
    Effect.gen(function* () {
      const { url } = yield* start
      const page = pageOf(url)
      yield* run(page, { tools: [tool] })
      page.addMessage({ id: "result-0", role: "tool", toolCallId: calledIn(page), content: `{"city":5}` })
      const failed = yield* Effect.promise(() => page.runAgent({ tools: [tool] }).then(String, String))
      assert.include(failed, "the output does not fit its schema")
    }).pipe(Effect.scoped)
  )
})

describe("an external call over A2A", () => {
  it.live("requires input, and takes the result as data", () =>
    Effect.gen(function* () {
      const { url } = yield* start
      const sent = (message: object) =>
        Effect.promise(async () => {
          const headers = { "content-type": "application/json", "a2a-version": "1.0" }
          const params = { message: { role: "ROLE_USER", ...message } }
          const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params })
          const response = await fetch(`${url}/a2a`, { method: "POST", headers, body })
          return JSON.parse(await response.text()).result.task
        })
      const asked = yield* sent({ messageId: "1", parts: [{ text: "Where am I?" }] })
      assert.strictEqual(asked.status.state, "TASK_STATE_INPUT_REQUIRED")
      const data = { output: { city: "Rome" } }
      const answered = yield* sent({ messageId: "2", taskId: asked.id, parts: [{ data }] })
      assert.deepStrictEqual(answered.artifacts[0].parts, [{ text: "You are in Rome." }])
    }).pipe(Effect.scoped)
  )
})
