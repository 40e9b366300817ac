/** Push notifications of A2A, with the client of the protocol as it comes. */
import { Role, type Task, TaskState } from "@a2a-js/sdk"
import { type Client, ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from "@a2a-js/sdk/client"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Queue, Schema, type Scope } from "effect"
import { HttpRouter, HttpServer, HttpServerRequest, HttpServerResponse } from "effect/http"
import { createServer } from "node:http"
import { Agent, Policy, RunStore, Skill } from "kernai"
import { FileMediaStore } from "kernai/file"
import { A2a } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { folder } from "../support/folder.ts"
import { serve as serveHttp, type Setup } from "../support/http.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed({ paid: to })
})

const clerk = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all", dialect: "tools" })

const asks = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))

const paying = [{ calls: [{ name: "pay", input: { to: "Eva" } }] }, "Paid."]

interface Received {
  readonly headers: Record<string, string | undefined>
  readonly body: {
    readonly kind?: string
    readonly status?: { readonly state: string }
    readonly statusUpdate?: { readonly taskId: string; readonly status: { readonly state: string } }
    readonly artifactUpdate?: { readonly artifact: { readonly parts: ReadonlyArray<{ readonly text: string }> } }
  }
}

/** A receiver of notifications on this machine, which responds with these statuses first. */
const receiver = (
  statuses: Array<number> = []
): Effect.Effect<
  { readonly origin: string; readonly url: string; readonly received: Queue.Queue<Received> },
  never,
  Scope.Scope
> =>
  Effect.gen(function* () {
    const received = yield* Queue.unbounded<Received>()
    const route = HttpRouter.add("POST", "/hook", (request: HttpServerRequest.HttpServerRequest) =>
      Effect.gen(function* () {
        const body = yield* Effect.orDie(request.text)
        const status = statuses.shift() ?? 200
        if (status === 200) yield* Queue.offer(received, { headers: request.headers, body: JSON.parse(body) })
        return HttpServerResponse.empty({ status })
      })
    )
    const server = HttpRouter.serve(route, { disableLogger: true, disableListenLog: true }).pipe(
      Layer.provideMerge(
        NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: 100 })
      ),
      Layer.orDie
    )
    const { address } = Context.get(yield* Layer.build(server), HttpServer.HttpServer)
    const origin = `http://127.0.0.1:${"port" in address ? address.port : 0}`
    return { origin, url: `${origin}/hook`, received }
  })

const serve = (origins: ReadonlyArray<string>, setup: Setup) =>
  serveHttp({ agent: clerk, routes: A2a.layer({ pushNotifications: { origins } }), skills: [pay], ...setup })

const clientOf = (url: string, binding: "REST" | "JSONRPC" = "JSONRPC") =>
  Effect.promise(() => {
    const transport = binding === "REST" ? new RestTransportFactory() : new JsonRpcTransportFactory()
    return new ClientFactory({ transports: [transport] }).createFromUrl(url)
  })

let count = 0

type Sent = Parameters<Client["sendMessage"]>[0]

type Config = Parameters<Client["createTaskPushNotificationConfig"]>[0]

const configOf = (url: string, given: Partial<Config> = {}): Config => ({
  tenant: "",
  id: "",
  taskId: "",
  url,
  token: "",
  authentication: undefined,
  ...given
})

const text = (value: string, taskPushNotificationConfig?: Config, taskId = ""): Sent => ({
  tenant: "",
  metadata: undefined,
  configuration:
    taskPushNotificationConfig === undefined
      ? undefined
      : { acceptedOutputModes: [], taskPushNotificationConfig, historyLength: undefined, returnImmediately: false },
  message: {
    messageId: `message-${++count}`,
    contextId: "",
    taskId,
    role: Role.ROLE_USER,
    parts: [{ content: { $case: "text", value }, metadata: undefined, filename: "", mediaType: "" }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: []
  }
})

const send = (client: Client, sent: Sent) =>
  Effect.promise(async (): Promise<Task> => {
    const result = await client.sendMessage(sent)
    if ("messageId" in result) throw new Error("a message is no task")
    return result
  })

const failureOf = (attempt: () => Promise<unknown>) =>
  Effect.promise(() =>
    attempt().then(
      () => "no failure",
      (error: Error) => error.name
    )
  )

const cardOf = (url: string) =>
  Effect.promise(async () => {
    const response = await fetch(`${url}/.well-known/agent-card.json`)
    return JSON.parse(await response.text())
  })

const post = (url: string, body: object) =>
  Effect.promise(async () => {
    const headers = { "content-type": "application/json" }
    const response = await fetch(`${url}/a2a`, { method: "POST", headers, body: JSON.stringify(body) })
    return JSON.parse(await response.text())
  })

/** What a notification is about: a state, or the text of an artifact. */
const gist = ({ body }: Received) =>
  body.statusUpdate?.status.state ??
  body.status?.state ??
  body.artifactUpdate?.artifact.parts.map(({ text }) => text).join("")

const gists = (received: Queue.Dequeue<Received>, length: number) =>
  Effect.map(Effect.all(Array.from({ length }, () => Queue.take(received))), (all) => all.map(gist))

describe("push notifications of A2A", () => {
  for (const binding of ["JSONRPC", "REST"] as const) {
    it.live(`tell a receiver named in a message of every change, with its token and credentials (${binding})`, () =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        const { url } = yield* serve([hook.origin], { replies: paying, with: asks })
        const client = yield* clientOf(url, binding)
        const authentication = { scheme: "Bearer", credentials: "secret" }
        const asked = yield* send(client, text("Pay Eva.", configOf(hook.url, { token: "token-1", authentication })))
        assert.strictEqual(TaskState[asked.status?.state ?? 0], "TASK_STATE_INPUT_REQUIRED")
        const first = yield* Queue.take(hook.received)
        assert.deepInclude(first.headers, {
          "x-a2a-notification-token": "token-1",
          authorization: "Bearer secret",
          "content-type": "application/a2a+json"
        })
        assert.strictEqual(first.body.statusUpdate?.taskId, asked.id)
        assert.strictEqual(gist(first), "TASK_STATE_WORKING")
        assert.deepStrictEqual(yield* gists(hook.received, 1), ["TASK_STATE_INPUT_REQUIRED"])
        yield* send(client, text("yes", undefined, asked.id))
        assert.deepStrictEqual(yield* gists(hook.received, 2), ["Paid.", "TASK_STATE_COMPLETED"])
      }).pipe(Effect.scoped)
    )

    it.live(`have configs that a client creates, reads, lists and deletes (${binding})`, () =>
      Effect.gen(function* () {
        const hook = yield* receiver()
        const { url } = yield* serve([hook.origin], { replies: paying, with: asks })
        const client = yield* clientOf(url, binding)
        const { id: taskId } = yield* send(client, text("Pay Eva."))
        const made = yield* Effect.promise(() =>
          client.createTaskPushNotificationConfig(configOf(hook.url, { taskId, token: "token-1" }))
        )
        const named = { tenant: "", taskId, id: made.id }
        const other = { ...named, id: "other" }
        assert.deepInclude(made, { taskId, url: hook.url, token: "token-1" })
        assert.deepStrictEqual(yield* Effect.promise(() => client.getTaskPushNotificationConfig(named)), made)
        yield* Effect.promise(() =>
          client.createTaskPushNotificationConfig(configOf(`${hook.url}?other`, { taskId, id: "other" }))
        )
        const list = Effect.promise(() =>
          client.listTaskPushNotificationConfig({ tenant: "", taskId, pageSize: 0, pageToken: "" })
        )
        assert.deepStrictEqual(
          (yield* list).configs.map(({ id }) => id),
          [made.id, "other"]
        )
        for (const one of [other, other]) yield* Effect.promise(() => client.deleteTaskPushNotificationConfig(one))
        assert.deepStrictEqual((yield* list).configs, [made])
        assert.strictEqual(yield* failureOf(() => client.getTaskPushNotificationConfig(other)), "TaskNotFoundError")
        yield* send(client, text("yes", undefined, taskId))
        assert.deepStrictEqual(yield* gists(hook.received, 2), ["Paid.", "TASK_STATE_COMPLETED"])
      }).pipe(Effect.scoped)
    )
  }

  it.live("are off unless an option opens them, and a message that asks for them starts nothing", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      const model = MockProvider.make("Done.")
      const { url } = yield* serveHttp({ agent: clerk, model, routes: A2a.layer() })
      const card = yield* cardOf(url)
      assert.strictEqual(card.capabilities.pushNotifications, false)
      const body = {
        jsonrpc: "2.0",
        id: 1,
        method: "SendMessage",
        params: {
          message: { messageId: "m", role: "ROLE_USER", parts: [{ text: "Hello." }] },
          configuration: { taskPushNotificationConfig: { url: hook.url } }
        }
      }
      const { error } = yield* post(url, body)
      assert.strictEqual(error.code, -32003)
      assert.strictEqual(model.calls.length, 0)
    }).pipe(Effect.scoped)
  )

  it.live("are not sent inside of the network of the server, nor with headers that a secret would break", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      const model = MockProvider.make().onCall(() => "Done.")
      const { url } = yield* serve([], { model })
      const client = yield* clientOf(url)
      const card = yield* cardOf(url)
      assert.strictEqual(card.capabilities.pushNotifications, true)
      for (const config of [
        configOf(hook.url),
        configOf("https://169.254.169.254/latest/"),
        configOf("https://10.0.0.1.nip.io/hook"),
        configOf("http://example.com/hook"),
        configOf("file:///etc/passwd"),
        configOf("https://user:password@example.com/hook"),
        configOf("https://example.com/hook", { token: "a\r\nhost: b" }),
        configOf("https://example.com/hook", { authentication: { scheme: "Bearer x", credentials: "y" } })
      ]) {
        assert.strictEqual(
          yield* failureOf(() => client.sendMessage(text("Hello.", config))),
          "RequestMalformedError",
          config.url
        )
      }
      assert.strictEqual(model.calls.length, 0)
    }).pipe(Effect.scoped)
  )

  it.live("are bounded for each task, and what was set can be removed however often it was changed", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      const { url } = yield* serve([hook.origin], { replies: paying, with: asks })
      const client = yield* clientOf(url)
      const { id: taskId } = yield* send(client, text("Pay Eva."))
      const create = (id: string, query: number) =>
        failureOf(() => client.createTaskPushNotificationConfig(configOf(`${hook.url}?${query}`, { taskId, id })))
      for (let n = 0; n < 16; n++) assert.strictEqual(yield* create(`c${n}`, n), "no failure")
      assert.notStrictEqual(yield* create("c16", 16), "no failure")
      for (let n = 16; n < 128; n++) assert.strictEqual(yield* create("c0", n), "no failure")
      assert.notStrictEqual(yield* create("c0", 128), "no failure")
      for (let n = 0; n < 16; n++) {
        const named = { tenant: "", taskId, id: `c${n}` }
        assert.strictEqual(yield* failureOf(() => client.deleteTaskPushNotificationConfig(named)), "no failure")
      }
      yield* send(client, text("yes", undefined, taskId))
      assert.strictEqual(yield* Queue.size(hook.received), 0)
    }).pipe(Effect.scoped)
  )

  it.live("are repeated while the receiver is away, and given up when it refuses", () =>
    Effect.gen(function* () {
      const hook = yield* receiver([503, 200, 403])
      const { url } = yield* serve([hook.origin], { replies: ["Done."] })
      const client = yield* clientOf(url)
      yield* send(client, text("Hello.", configOf(hook.url)))
      assert.deepStrictEqual(yield* gists(hook.received, 2), ["TASK_STATE_WORKING", "TASK_STATE_COMPLETED"])
    }).pipe(Effect.scoped)
  )

  it.live("continue in the server that is started next, also about a task that ended meanwhile", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      const store = yield* RunStore.makeMemory
      const media = FileMediaStore.layer(yield* folder).pipe(Layer.provide(NodeServices.layer), Layer.orDie)
      const task = yield* Effect.scoped(
        Effect.gen(function* () {
          const { url } = yield* serve([hook.origin], { replies: paying, with: asks, store, media })
          return yield* send(yield* clientOf(url), text("Pay Eva.", configOf(hook.url)))
        })
      )
      yield* Effect.scoped(
        Effect.gen(function* () {
          const { url } = yield* serve([], { replies: paying.slice(1), store, media, routes: A2a.layer() })
          yield* send(yield* clientOf(url), text("yes", undefined, task.id))
        })
      )
      yield* serve([hook.origin], { store, media })
      const told: Array<string | undefined> = []
      while (told.at(-1) !== "TASK_STATE_COMPLETED") told.push(...(yield* gists(hook.received, 1)))
      assert.deepStrictEqual(told.slice(-2), ["Paid.", "TASK_STATE_COMPLETED"])
    }).pipe(Effect.scoped)
  )

  it.live("reach a client of version 0.3 as tasks", () =>
    Effect.gen(function* () {
      const hook = yield* receiver()
      const { url } = yield* serve([hook.origin], { replies: paying, with: asks })
      const call = (method: string, params: object) =>
        Effect.map(post(url, { jsonrpc: "2.0", id: 1, method, params }), ({ result }) => result)
      const message = { kind: "message", messageId: "m", role: "user", parts: [{ kind: "text", text: "Pay Eva." }] }
      const config = { id: "c", url: hook.url, authentication: { schemes: ["Bearer"], credentials: "secret" } }
      const { id } = yield* call("message/send", { message, configuration: { pushNotificationConfig: config } })
      const told = yield* Queue.take(hook.received)
      assert.strictEqual(told.body.kind, "task")
      assert.strictEqual(told.headers["authorization"], "Bearer secret")
      const stored = { taskId: id, pushNotificationConfig: config }
      assert.deepStrictEqual(yield* call("tasks/pushNotificationConfig/get", { id }), stored)
      assert.deepStrictEqual(yield* call("tasks/pushNotificationConfig/list", { id }), [stored])
      const other = { id: "d", url: hook.url }
      const set = yield* call("tasks/pushNotificationConfig/set", { taskId: id, pushNotificationConfig: other })
      assert.deepStrictEqual(set, { taskId: id, pushNotificationConfig: other })
      const named = { id, pushNotificationConfigId: "d" }
      assert.strictEqual(yield* call("tasks/pushNotificationConfig/delete", named), null)
      assert.deepStrictEqual(yield* call("tasks/pushNotificationConfig/list", { id }), [stored])
    }).pipe(Effect.scoped)
  )
})
