/** The client of the A2A protocol as it comes, `@a2a-js/sdk`, against an agent that is served. */
import { Role, type StreamResponse, type Task, TaskState } from "@a2a-js/sdk"
import { type Client, ClientFactory, JsonRpcTransportFactory } from "@a2a-js/sdk/client"
import { LegacyJsonRpcTransport } from "@a2a-js/sdk/compat/v0_3/client"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Option, Queue, Redacted, Schedule, Schema } from "effect"
import { HttpRouter } from "effect/http"
import { request } from "node:http"
import * as Consumers from "node:stream/consumers"
import { Agent, Policy, Skill } from "kernai"
import { A2a, Access } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { app, serve as serveHttp, type Setup, spoken } from "../support/http.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed({ paid: to })
})

const asks = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))

const clerk = Agent.make({
  name: "clerk",
  description: "Pays people.",
  instructions: "Secret instructions.",
  model: "scripted",
  skills: "all",
  dialect: "tools"
})

const serve = (setup: Setup) => serveHttp({ agent: clerk, routes: A2a.layer(), skills: [pay], ...setup })

const payAndSay = () =>
  MockProvider.make().onCall((request) =>
    request.messages.some(({ role }) => role === "assistant")
      ? "Done."
      : { calls: [{ name: "pay", input: { to: "Eva" } }] }
  )

const clientOf = (url: string, token?: string) =>
  Effect.promise(() => {
    const fetchImpl: typeof fetch = (input, init) => {
      const headers = new Headers(init?.headers)
      if (token !== undefined) headers.set("authorization", `Bearer ${token}`)
      return fetch(input, { ...init, headers })
    }
    return new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl })] }).createFromUrl(url)
  })

type Content = { readonly $case: "text"; readonly value: string } | { readonly $case: "data"; readonly value: object }

let count = 0

/** A message as a client of the protocol writes it. */
const message = (content: Content, ids: { readonly contextId?: string; readonly taskId?: string } = {}) => ({
  tenant: "",
  metadata: undefined,
  configuration: undefined,
  message: {
    messageId: `message-${++count}`,
    contextId: "",
    taskId: "",
    ...ids,
    role: Role.ROLE_USER,
    parts: [{ content, metadata: undefined, filename: "", mediaType: "" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: []
  }
})

const text = (value: string, ids = {}) => message({ $case: "text", value }, ids)

const send = (client: Pick<Client, "sendMessage">, sent: Parameters<Client["sendMessage"]>[0]) =>
  Effect.promise(async (): Promise<Task> => {
    const result = await client.sendMessage(sent)
    if ("messageId" in result) throw new Error("a message is no task")
    return result
  })

const named = (id: string) => ({ tenant: "", id, metadata: undefined })

const answerOf = ({ artifacts }: Task) =>
  artifacts.flatMap(({ parts }) => parts.map(({ content }) => (content?.$case === "text" ? content.value : "")))

const wordsOf = ({ history }: Task) =>
  history.flatMap(({ parts }) => parts.map(({ content }) => (content?.$case === "text" ? content.value : "")))

const anyTask = {
  tenant: "",
  contextId: "",
  status: TaskState.TASK_STATE_UNSPECIFIED,
  pageToken: "",
  statusTimestampAfter: undefined
}

const stateOf = ({ status }: Task) => TaskState[status?.state ?? 0]

/** What a client shows of a stream: the states, and the answer as it grew. */
const collect = (stream: AsyncIterable<StreamResponse>, onText: (text: string) => void = () => {}) =>
  Effect.promise(async () => {
    const states: Array<string | undefined> = []
    let [answer, taskId] = ["", ""]
    for await (const { payload } of stream) {
      if (payload?.$case === "task") {
        taskId = payload.value.id
        states.push(TaskState[payload.value.status?.state ?? 0])
      } else if (payload?.$case === "statusUpdate") states.push(TaskState[payload.value.status?.state ?? 0])
      else if (payload?.$case === "artifactUpdate") {
        const piece = payload.value.artifact?.parts.map(({ content }) =>
          content?.$case === "text" ? content.value : ""
        )
        answer = (payload.value.append ? answer : "") + (piece ?? []).join("")
        onText(answer)
      }
    }
    return { states, answer, taskId }
  })

const failureOf = (attempt: () => Promise<unknown>) =>
  Effect.promise(async () => {
    try {
      await attempt()
      return "no failure"
    } catch (error) {
      return String(error)
    }
  })

const readRefusal = Schema.decodeUnknownSync(
  Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ code: Schema.Int }) }))
)

const json = { "content-type": "application/json" }

/** The code of the error that a call without a client gets. */
const codeOf = (url: string, method: string, headers: Record<string, string>) =>
  Effect.promise(async () => {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: {} })
    const response = await fetch(`${url}/a2a`, { method: "POST", body, headers: { ...json, ...headers } })
    return readRefusal(await response.text()).error.code
  })

describe("A2a", () => {
  it.live("describes the agent in its card, without its instructions", () =>
    Effect.gen(function* () {
      const card = { version: "2.0.0", provider: { organization: "Ours", url: "https://ours.example" } }
      const { url } = yield* serve({ routes: A2a.layer({ card }) })
      const found = yield* Effect.promise(async () => (await fetch(`${url}/.well-known/agent-card.json`)).text())
      assert.notInclude(found, "Secret instructions")
      const client = yield* clientOf(url)
      const read = yield* Effect.promise(() => client.getAgentCard())
      assert.deepInclude(read, { name: "clerk", description: "Pays people.", version: "2.0.0" })
      assert.strictEqual(read.provider?.organization, "Ours")
      assert.deepInclude(read.capabilities, { streaming: true, pushNotifications: false })
    }).pipe(Effect.scoped)
  )

  it.live("names its own address in the card, whatever host a request names", () =>
    Effect.gen(function* () {
      const addressesIn = (url: string) =>
        Effect.promise(
          () =>
            new Promise<ReadonlyArray<string>>((resolve, reject) => {
              const headers = { host: "evil.example", "x-forwarded-host": "evil.example" }
              const asked = request(`${url}/.well-known/agent-card.json`, { headers }, (response) => {
                Consumers.text(response).then((card) => resolve(card.match(/https?:[^"]+/g) ?? []), reject)
              })
              asked.on("error", reject)
              asked.end()
            })
        )
      const { url } = yield* serve({})
      assert.deepStrictEqual(new Set(yield* addressesIn(url)), new Set([`${url}/a2a`]))
      const address = "https://agents.example/a2a"
      const configured = yield* serve({ routes: A2a.layer({ url: address }) })
      assert.deepStrictEqual(new Set(yield* addressesIn(configured.url)), new Set([address]))
    }).pipe(Effect.scoped)
  )

  it.effect("does not start where neither an address nor a server is known", () =>
    Effect.gen(function* () {
      const failed = yield* A2a.layer().pipe(
        Layer.provide(app({ agent: clerk, skills: [pay] })),
        Layer.provide(HttpRouter.layer),
        Layer.build,
        Effect.flip,
        Effect.scoped
      )
      assert.deepInclude(failed, { _tag: "ConfigInvalid", path: "url" })
    })
  )

  it.live("answers a message with a task, and continues its context", () =>
    Effect.gen(function* () {
      const model = MockProvider.make("A dot.", "Red.")
      const { url } = yield* serve({ model })
      const client = yield* clientOf(url)
      const first = yield* send(client, text("What is it?"))
      assert.strictEqual(stateOf(first), "TASK_STATE_COMPLETED")
      assert.deepStrictEqual(answerOf(first), ["A dot."])
      const second = yield* send(client, text("Its colour?", { contextId: first.contextId }))
      assert.strictEqual(second.contextId, first.contextId)
      assert.notStrictEqual(second.id, first.id)
      const asked = model.lastCall?.messages ?? []
      assert.deepStrictEqual(
        asked.map(({ role }) => role),
        ["system", "user", "assistant", "user"]
      )
      const again = yield* Effect.promise(() => client.getTask(named(second.id)))
      assert.deepStrictEqual([stateOf(again), answerOf(again)], ["TASK_STATE_COMPLETED", ["Red."]])
    }).pipe(Effect.scoped)
  )

  it.live("streams the status of a task and its growing answer", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({
        replies: [{ text: "I pay Eva.", calls: [{ name: "pay", input: { to: "Eva" } }] }, { text: "Done." }]
      })
      const client = yield* clientOf(url)
      const texts: Array<string> = []
      const seen = yield* collect(client.sendMessageStream(text("Pay Eva.")), (answer) => texts.push(answer))
      assert.strictEqual(seen.answer, "Done.")
      assert.include(texts, "I pay Eva.")
      assert.deepStrictEqual(seen.states.slice(1), ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"])
    }).pipe(Effect.scoped)
  )

  it.live("requires input for an approval, and continues when it is given or refused", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ with: asks, model: payAndSay() })
      const client = yield* clientOf(url)
      for (const approved of [true, false]) {
        const waiting = yield* send(client, text("Pay Eva."))
        assert.strictEqual(stateOf(waiting), "TASK_STATE_INPUT_REQUIRED")
        const asked = waiting.status?.message?.parts.map(({ content }) => content?.value) ?? []
        assert.deepInclude(asked[1], { name: "pay", input: { to: "Eva" } })
        const words = yield* failureOf(() => client.sendMessage(text("Perhaps.", { taskId: waiting.id })))
        assert.include(words, "an answer is yes or no")
        const answer = message({ $case: "data", value: { approved } }, { taskId: waiting.id })
        const seen = yield* collect(client.sendMessageStream(answer))
        assert.strictEqual(seen.taskId, waiting.id)
        assert.strictEqual(seen.states.at(-1), "TASK_STATE_COMPLETED")
        assert.strictEqual(seen.answer, "Done.")
      }
    }).pipe(Effect.scoped)
  )

  it.live("gives a second client the task under way, and cancels it on request", () =>
    Effect.gen(function* () {
      const pieces = yield* Queue.unbounded<string>()
      const { url } = yield* serve({ model: spoken(pieces) })
      const client = yield* clientOf(url)
      const sent = { ...text("Speak."), configuration: immediately }
      const begun = yield* send(client, sent)
      let heard = ""
      const followed = collect(client.resubscribeTask({ tenant: "", id: begun.id }), (answer) => (heard = answer))
      const following = yield* Effect.forkChild(followed)
      yield* Queue.offer(pieces, "Hello")
      yield* Effect.retry(
        Effect.suspend(() => (heard === "Hello" ? Effect.void : Effect.fail("not yet"))),
        { schedule: Schedule.spaced("10 millis"), times: 1_000 }
      )
      yield* Effect.promise(() => client.cancelTask(named(begun.id)))
      const seen = yield* Fiber.join(following)
      assert.strictEqual(seen.states.at(-1), "TASK_STATE_CANCELED")
      assert.include(yield* failureOf(() => client.cancelTask(named(begun.id))), "The task is over")
      const subscribed = yield* failureOf(() => client.resubscribeTask({ tenant: "", id: begun.id }).next())
      assert.include(subscribed, "no message or subscriber")
    }).pipe(Effect.scoped)
  )

  it.live("knows in its next message the call for which the last one still waits", () =>
    Effect.gen(function* () {
      const mock = MockProvider.make().onCall((request) =>
        JSON.stringify(request.messages).includes("Never mind")
          ? "Not paid."
          : { calls: [{ name: "pay", input: { to: "Eva" } }] }
      )
      const { url } = yield* serve({ with: asks, model: mock })
      const client = yield* clientOf(url)
      const first = yield* send(client, text("Pay Eva."))
      assert.strictEqual(stateOf(first), "TASK_STATE_INPUT_REQUIRED")
      yield* send(client, text("Never mind.", { contextId: first.contextId }))
      assert.include(JSON.stringify(mock.messagesAt(1)), "This call was not run.")
    }).pipe(Effect.scoped)
  )

  it.live("reports a failed task without internals", () =>
    Effect.gen(function* () {
      const model = MockProvider.make().failOnStep(0, "invalid_request", "the key sk-secret is wrong")
      const { url } = yield* serve({ model })
      const failed = yield* send(yield* clientOf(url), text("Hello?"))
      assert.strictEqual(stateOf(failed), "TASK_STATE_FAILED")
      assert.include(JSON.stringify(failed), "The model is not available now.")
      assert.notInclude(JSON.stringify(failed), "sk-secret")
    }).pipe(Effect.scoped)
  )

  it.live("lists the tasks of a caller, those that changed last first, by context and state and page by page", () =>
    Effect.gen(function* () {
      const verify = (token: Redacted.Redacted<string>) =>
        Effect.succeed(Option.some({ id: Redacted.value(token) } satisfies Access.Caller))
      const { url } = yield* serve({ with: Layer.merge(asks, Access.bearer(verify)), model: payAndSay() })
      const [ada, bob] = [yield* clientOf(url, "ada"), yield* clientOf(url, "bob")]
      const first = yield* send(ada, text("Pay Eva."))
      const other = yield* send(ada, text("Pay Eva again."))
      yield* send(bob, text("Pay me."))
      yield* send(ada, message({ $case: "data", value: { approved: true } }, { taskId: first.id }))
      const list = (asked: Partial<Parameters<Client["listTasks"]>[0]> = {}) =>
        Effect.promise(() => ada.listTasks({ ...anyTask, ...asked }))
      const ids = (asked?: Parameters<typeof list>[0]) =>
        Effect.map(list(asked), ({ tasks }) => tasks.map(({ id }) => id))
      assert.deepStrictEqual(yield* ids(), [first.id, other.id])
      assert.deepStrictEqual(yield* ids({ contextId: other.contextId }), [other.id])
      assert.deepStrictEqual(yield* ids({ contextId: other.contextId.slice(0, -1) }), [])
      assert.deepStrictEqual(yield* ids({ status: TaskState.TASK_STATE_INPUT_REQUIRED }), [other.id])
      assert.deepStrictEqual(yield* ids({ status: TaskState.TASK_STATE_REJECTED }), [])
      assert.deepStrictEqual(yield* ids({ statusTimestampAfter: first.status?.timestamp }), [first.id, other.id])
      assert.deepStrictEqual(yield* ids({ statusTimestampAfter: "2999-01-01T00:00:00Z" }), [])
      const page = yield* list({ pageSize: 1 })
      assert.deepInclude(page, { totalSize: 2, pageSize: 1 })
      const next = yield* list({ pageSize: 1, pageToken: page.nextPageToken })
      assert.deepStrictEqual(
        [...page.tasks, ...next.tasks].map(({ id }) => id),
        [first.id, other.id]
      )
      assert.strictEqual(next.nextPageToken, "")
      const [bare] = page.tasks
      assert.deepStrictEqual([bare?.artifacts, bare?.history], [[], []])
      const [whole] = (yield* list({ includeArtifacts: true, historyLength: 1 })).tasks
      assert.deepStrictEqual(whole && answerOf(whole), ["Done."])
      assert.deepStrictEqual(whole && wordsOf(whole), ["Pay Eva."])
      const refused = yield* failureOf(() => ada.listTasks({ ...anyTask, pageToken: "nonsense" }))
      assert.include(refused, "'pageToken' is not a page token")
      assert.include(yield* failureOf(() => ada.listTasks({ ...anyTask, pageSize: 1_000 })), "100")
    }).pipe(Effect.scoped)
  )

  it.live("returns the messages of a task, as many as its client wants", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: ["Hello."] })
      const client = yield* clientOf(url)
      const sent = text("Good day.")
      const task = yield* send(client, sent)
      assert.deepStrictEqual(wordsOf(task), ["Good day."])
      assert.deepInclude(task.history[0], { messageId: sent.message.messageId, role: Role.ROLE_USER, taskId: task.id })
      const get = (historyLength?: number) => Effect.promise(() => client.getTask({ ...named(task.id), historyLength }))
      assert.deepStrictEqual(wordsOf(yield* get()), ["Good day."])
      assert.deepStrictEqual(wordsOf(yield* get(1)), ["Good day."])
      assert.deepStrictEqual(wordsOf(yield* get(0)), [])
    }).pipe(Effect.scoped)
  )

  it.live("speaks version 0.3 with clients that do", () =>
    Effect.gen(function* () {
      const pieces = yield* Queue.unbounded<string>()
      const paying = yield* serve({ with: asks, model: payAndSay() })
      const speaking = yield* serve({ model: spoken(pieces) })
      const card = yield* Effect.promise(async () => (await fetch(`${paying.url}/.well-known/agent-card.json`)).text())
      assert.deepInclude(JSON.parse(card), {
        protocolVersion: "0.3.0",
        url: `${paying.url}/a2a`,
        preferredTransport: "JSONRPC"
      })
      const client = new LegacyJsonRpcTransport({ endpoint: `${paying.url}/a2a` })
      const waiting = yield* send(client, text("Pay Eva."))
      assert.strictEqual(stateOf(waiting), "TASK_STATE_INPUT_REQUIRED")
      assert.deepStrictEqual(wordsOf(waiting), ["Pay Eva."])
      const asked = waiting.status?.message?.parts.map(({ content }) => content?.value) ?? []
      assert.deepInclude(asked[1], { name: "pay", input: { to: "Eva" } })
      const answer = message({ $case: "data", value: { approved: true } }, { taskId: waiting.id })
      const seen = yield* collect(client.sendMessageStream(answer))
      assert.deepStrictEqual([seen.answer, seen.states.at(-1)], ["Done.", "TASK_STATE_COMPLETED"])
      const task = yield* Effect.promise(() => client.getTask(named(waiting.id)))
      assert.deepStrictEqual(answerOf(task), ["Done."])
      assert.include(yield* failureOf(() => client.getTask(named("nix"))), "There is no such run.")
      const speaker = new LegacyJsonRpcTransport({ endpoint: `${speaking.url}/a2a` })
      const begun = yield* send(speaker, { ...text("Speak."), configuration: immediately })
      const following = yield* Effect.forkChild(collect(speaker.resubscribeTask({ tenant: "", id: begun.id })))
      const cancelled = yield* Effect.promise(() => speaker.cancelTask(named(begun.id)))
      assert.strictEqual(stateOf(cancelled), "TASK_STATE_CANCELED")
      yield* Effect.exit(Fiber.join(following))
      assert.strictEqual(yield* codeOf(paying.url, "tasks/pushNotificationConfig/set", {}), -32003)
      assert.strictEqual(yield* codeOf(paying.url, "tasks/get", { "a2a-version": "0.3" }), -32602)
      assert.strictEqual(yield* codeOf(paying.url, "tasks/get", { "a2a-version": "1.0" }), -32009)
    }).pipe(Effect.scoped)
  )

  it.live("hides tasks from other callers, and refuses push notifications and unknown methods", () =>
    Effect.gen(function* () {
      const verify = (token: Redacted.Redacted<string>) =>
        Effect.succeed(Option.some({ id: Redacted.value(token) } satisfies Access.Caller))
      const { url } = yield* serve({ with: Layer.merge(asks, Access.bearer(verify)), model: payAndSay() })
      const ada = yield* clientOf(url, "ada")
      const bob = yield* clientOf(url, "bob")
      const task = yield* send(ada, text("Pay Eva."))
      const answer = message({ $case: "data", value: { approved: true } }, { taskId: task.id })
      const attempts = [
        () => bob.getTask(named(task.id)),
        () => bob.cancelTask(named(task.id)),
        () => bob.sendMessage(answer),
        () => bob.resubscribeTask({ tenant: "", id: task.id }).next()
      ]
      for (const attempt of attempts) assert.include(yield* failureOf(attempt), "There is no such run.")
      assert.strictEqual(stateOf(yield* Effect.promise(() => ada.getTask(named(task.id)))), "TASK_STATE_INPUT_REQUIRED")
      const authorization = "Bearer ada"
      assert.strictEqual(yield* codeOf(url, "CreateTaskPushNotificationConfig", { authorization }), -32003)
      assert.strictEqual(yield* codeOf(url, "Surprise", { authorization }), -32601)
      assert.strictEqual(yield* codeOf(url, "GetTask", { authorization }), -32602)
      assert.strictEqual(yield* codeOf(url, "GetTask", { authorization, "a2a-version": "0.3" }), -32009)
      const nobody = yield* clientOf(url)
      assert.include(yield* failureOf(() => nobody.getTask(named(task.id))), "401")
    }).pipe(Effect.scoped)
  )
})

const immediately = { acceptedOutputModes: [], taskPushNotificationConfig: undefined, returnImmediately: true }
