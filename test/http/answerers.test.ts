/** One rule about who may answer, over HTTP, useChat, AG-UI and A2A. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Option, Redacted, Schema, Stream } from "effect"
import { HttpClient, HttpClientRequest } from "effect/http"
import { Agent, Policy, Skill } from "kernai"
import { A2a, Access, AgUi, AiSdkUi } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { clientOf, serve } from "../support/http.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed({ paid: to })
})

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all", dialect: "tools" })

const payAndSay = () =>
  MockProvider.make().onCall((request) =>
    request.messages.some(({ role }) => role === "assistant")
      ? "Done."
      : { calls: [{ name: "pay", input: { to: "Eva" } }] }
  )

const callers: Record<string, Access.Caller> = {
  eva: { id: "eva", roles: ["finance"] },
  bob: { id: "bob", roles: ["finance"] },
  carl: { id: "carl" },
  root: { id: "root", isOperator: true }
}

const setup = {
  agent,
  skills: [pay],
  routes: Layer.mergeAll(AiSdkUi.layer(), AgUi.layer(), A2a.layer()),
  with: Layer.merge(
    Access.bearer((token) => Effect.succeed(Option.fromNullishOr(callers[Redacted.value(token)]))),
    Policy.layer(() => Effect.succeed(Policy.confirm("it costs", { within: "1 day", by: { roles: ["finance"] } })))
  )
}

let count = 0

const post = (url: string, token: string, body: unknown) =>
  Effect.promise(async () => {
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}`, "a2a-version": "1.0" },
      body: JSON.stringify(body)
    })
    return { status: response.status, text: await response.text() }
  })

const tokenOf = (token: string) => ({
  transformClient: HttpClient.mapRequest(HttpClientRequest.bearerToken(token))
})

describe("an answer to the question of one's own run", () => {
  it.live("is refused over HTTP, and the question says who may answer until when", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ ...setup, model: payAndSay() })
      const client = yield* clientOf(url, tokenOf("eva"))
      const runId = yield* client.start("clerk", "Pay.")
      yield* waits(client, runId)
      const [question] = yield* client.questions(runId)
      assert.deepStrictEqual(question?.answerers, [{ roles: ["finance"] }])
      assert.isAbove(question?.answerBy ?? 0, Date.now())
      const answers = [{ callId: question?.callId ?? "", approved: true }]
      const refused = yield* post(`${url}/runs/${encodeURIComponent(runId)}/answers`, "eva", { answers })
      assert.deepStrictEqual(
        [refused.status, JSON.parse(refused.text).detail],
        [403, "'eva' may not answer this question"]
      )
      // An operator needs the role, too.
      const operator = yield* post(`${url}/runs/${encodeURIComponent(runId)}/answers`, "root", { answers })
      assert.strictEqual(operator.status, 403)
      assert.strictEqual((yield* client.questions(runId)).length, 1)
    }).pipe(Effect.scoped)
  )

  it.live("is refused to a page of useChat", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ ...setup, model: payAndSay() })
      const user = { id: "m1", role: "user", parts: [{ type: "text", text: "Pay." }] }
      const asked = yield* post(`${url}/api/chat`, "eva", { id: "c", messages: [user], trigger: "submit-message" })
      const approval = /"approvalId":"([^"]+)"/.exec(asked.text)?.[1] ?? ""
      const callId = /"toolCallId":"([^"]+)"/.exec(asked.text)?.[1] ?? ""
      const id = /"messageId":"([^"]+)"/.exec(asked.text)?.[1] ?? ""
      const part = {
        type: "tool-pay",
        toolCallId: callId,
        state: "approval-responded",
        input: { to: "Eva" },
        approval: { id: approval, approved: true }
      }
      const messages = [user, { id, role: "assistant", parts: [part] }]
      const answered = yield* post(`${url}/api/chat`, "eva", { id: "c", messages, trigger: "submit-message" })
      assert.strictEqual(answered.status, 403, answered.text)
    }).pipe(Effect.scoped)
  )

  it.live("is refused to a page of AG-UI", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ ...setup, model: payAndSay() })
      const input = { threadId: "t", runId: "r1", messages: [], tools: [], context: [], state: {}, forwardedProps: {} }
      const messages = [{ id: "m1", role: "user", content: "Pay." }]
      const asked = yield* post(`${url}/agui`, "eva", { ...input, messages })
      const interruptId = /"interrupts":\[\{"id":"([^"]+)"/.exec(asked.text)?.[1] ?? ""
      assert.notStrictEqual(interruptId, "", asked.text)
      const resume = [{ interruptId, status: "resolved", payload: { approved: true } }]
      const answered = yield* post(`${url}/agui`, "eva", { ...input, runId: "r2", messages, resume })
      assert.strictEqual(answered.status, 403, answered.text)
    }).pipe(Effect.scoped)
  )

  it.live("is refused to a client of A2A", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ ...setup, model: payAndSay() })
      const send = (parts: ReadonlyArray<unknown>, ids = {}) =>
        post(`${url}/a2a`, "eva", {
          jsonrpc: "2.0",
          id: 1,
          method: "SendMessage",
          params: { message: { messageId: `m-${++count}`, role: "ROLE_USER", parts, ...ids } }
        })
      const asked = yield* send([{ text: "Pay." }])
      const task = JSON.parse(asked.text).result?.task
      assert.strictEqual(task?.status?.state, "TASK_STATE_INPUT_REQUIRED", asked.text)
      const answered = yield* send([{ data: { approved: true } }], { taskId: task.id, contextId: task.contextId })
      assert.include(answered.text, "may not answer")
    }).pipe(Effect.scoped)
  )
})

describe("the rules of a host", () => {
  const path = (runId: string) => `/runs/${encodeURIComponent(runId)}`
  const get = (url: string, token: string) =>
    Effect.promise(async () => (await fetch(url, { headers: { authorization: `Bearer ${token}` } })).status)

  it.live("show a run of another caller, who answers what its policy admits and cannot cancel it", () =>
    Effect.gen(function* () {
      const maySee = (caller: Access.Caller) => Effect.succeed(caller.roles?.includes("finance") === true)
      const { url } = yield* serve({ ...setup, model: payAndSay(), options: { maySee } })
      const eva = yield* clientOf(url, tokenOf("eva"))
      const bob = yield* clientOf(url, tokenOf("bob"))
      const runId = yield* eva.start("clerk", "Pay.")
      yield* waits(eva, runId)
      for (const part of ["", "/questions", "/events?until=rest"]) {
        assert.strictEqual(yield* get(`${url}${path(runId)}${part}`, "bob"), 200)
        assert.strictEqual(yield* get(`${url}${path(runId)}${part}`, "carl"), 404)
      }
      assert.deepStrictEqual((yield* bob.list()).runs, [])
      assert.strictEqual((yield* post(`${url}${path(runId)}/cancel`, "bob", {})).status, 404)
      const [question] = yield* bob.questions(runId)
      const answers = [{ callId: question?.callId ?? "", approved: true }]
      assert.strictEqual((yield* post(`${url}${path(runId)}/answers`, "carl", { answers })).status, 404)
      assert.strictEqual((yield* post(`${url}${path(runId)}/answers`, "bob", { answers })).status, 204)
      const events = yield* Stream.runCollect(eva.follow(runId, { until: "end" }))
      assert.strictEqual(events.at(-1)?.type, "run_completed")
    }).pipe(Effect.scoped)
  )

  it.live("decide who may answer, in addition to the policies, and viewers answer nothing by themselves", () =>
    Effect.gen(function* () {
      const asks = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))
      const access = Access.bearer((token) => Effect.succeed(Option.fromNullishOr(callers[Redacted.value(token)])))
      const given = { ...setup, model: payAndSay(), with: Layer.merge(access, asks) }
      const mayAnswer = (caller: Access.Caller) => Effect.succeed(caller.id === "bob")
      const maySee = () => Effect.succeed(true)
      for (const [options, statuses] of [
        [{ maySee }, { bob: 403, eva: 204 }],
        [
          { maySee, mayAnswer },
          { eva: 403, carl: 403, bob: 204 }
        ]
      ] as const) {
        const { url } = yield* serve({ ...given, options })
        const eva = yield* clientOf(url, tokenOf("eva"))
        const runId = yield* eva.start("clerk", "Pay.")
        yield* waits(eva, runId)
        const [question] = yield* eva.questions(runId)
        const answers = [{ callId: question?.callId ?? "", approved: true }]
        for (const [token, status] of Object.entries(statuses)) {
          const answered = yield* post(`${url}${path(runId)}/answers`, token, { answers })
          assert.strictEqual(answered.status, status, token)
        }
      }
    }).pipe(Effect.scoped)
  )
})

/** Waits until a run asks. */
const waits = (client: Effect.Success<ReturnType<typeof clientOf>>, runId: string) =>
  Effect.repeat(client.questions(runId), { until: (open) => open.length > 0, times: 100 })
