/**
 * What the specification of A2A 1.0 asks of servers, by its sections, over both bindings: the cases of the compatibility
 * kit of the protocol, which is a program of another language.
 */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema, type Scope } from "effect"
import { Agent, Policy, Skill } from "kernai"
import { A2a } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { type Client, fails, type Fields, jsonRpc, rest } from "../support/a2aPeer.ts"
import { serve, type Setup } from "../support/http.ts"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed({ paid: to })
})

const clerk = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all", dialect: "tools" })

const asks = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))

/** A server whose agent pays, and asks first, when its input begins with `Pay`. */
const served = (options: A2a.Options = {}, setup: Setup = {}) =>
  serve({
    agent: clerk,
    model: MockProvider.make().onCall(({ messages }) =>
      messages.length === 1 && JSON.stringify(messages).includes("Pay")
        ? { calls: [{ name: "pay", input: { to: "Eva" } }] }
        : "Done."
    ),
    skills: [pay],
    with: asks,
    routes: A2a.layer(options),
    ...setup
  })

let count = 0

const message = (text: string, more: Fields = {}): Fields => ({
  message: { messageId: `m-${++count}`, role: "ROLE_USER", parts: [{ text }], ...more }
})

const stateOf = ({ status }: { readonly status: { readonly state: string } }): string => status.state

/** Starts a task that is over, or one that waits for an answer. */
const taskOf = (client: Client, text: "Hello." | "Pay Eva.") =>
  Effect.map(client.call("SendMessage", message(text)), ({ result }) => result.task)

interface Case {
  readonly section: string
  readonly title: string
  readonly options?: A2a.Options
  readonly run: (client: Client, url: string) => Effect.Effect<void, never, Scope.Scope>
}

const cases: ReadonlyArray<Case> = [
  {
    section: "3.1.1",
    title: "a message has a task with a new id and context",
    run: Effect.fnUntraced(function* (client) {
      const [one, other] = [yield* taskOf(client, "Hello."), yield* taskOf(client, "Hello.")]
      assert.strictEqual(stateOf(one), "TASK_STATE_COMPLETED")
      assert.strictEqual(new Set([one.id, other.id, one.contextId, other.contextId]).size, 4)
    })
  },
  {
    section: "3.1.1",
    title: "a task that is over takes no message",
    run: Effect.fnUntraced(function* (client) {
      const { id } = yield* taskOf(client, "Hello.")
      const sent = client.call("SendMessage", message("More.", { taskId: id }))
      yield* fails(client, "UNSUPPORTED_OPERATION", sent)
    })
  },
  {
    section: "3.1.1",
    title: "a file of a type that the card does not name is refused, and one that it names is not",
    options: { card: { defaultInputModes: ["text/plain", "image/*"] } },
    run: Effect.fnUntraced(function* (client) {
      const file = (mediaType: string) => message("", { parts: [{ raw: "dGNr", mediaType }] })
      yield* fails(client, "CONTENT_TYPE_NOT_SUPPORTED", client.call("SendMessage", file("application/x-unsupported")))
      yield* fails(client, "CONTENT_TYPE_NOT_SUPPORTED", client.call("SendStreamingMessage", file("text/csv")))
      assert.isUndefined((yield* client.call("SendMessage", file("image/png; a=b"))).error)
    })
  },
  {
    section: "3.1.2",
    title: "a stream begins with the task and ends with its last state",
    run: Effect.fnUntraced(function* (client) {
      const { events, type } = yield* client.call("SendStreamingMessage", message("Hello."))
      assert.match(type ?? "", /^text\/event-stream/)
      assert.isString(events[0]?.task.id)
      assert.strictEqual(events.at(-1)?.statusUpdate.status.state, "TASK_STATE_COMPLETED")
    })
  },
  {
    section: "3.1.3",
    title: "a task is read by its id, and an unknown one is not found",
    run: Effect.fnUntraced(function* (client) {
      const { id } = yield* taskOf(client, "Hello.")
      assert.strictEqual((yield* client.call("GetTask", { id })).result.id, id)
      yield* fails(client, "TASK_NOT_FOUND", client.call("GetTask", { id: "unknown" }))
    })
  },
  {
    section: "3.1.4",
    title: "tasks are listed by pages, the last one changed first, without artifacts",
    run: Effect.fnUntraced(function* (client) {
      const ids: Array<string> = []
      for (let n = 0; n < 3; n++) {
        const { result } = yield* client.call("SendMessage", message("Hello.", { contextId: "c" }))
        ids.unshift(result.task.id)
      }
      const first = yield* client.call("ListTasks", { contextId: "c", pageSize: 2 })
      const { nextPageToken, pageSize, tasks, totalSize } = first.result
      assert.deepStrictEqual(
        tasks.map(({ id }) => id),
        ids.slice(0, 2)
      )
      assert.deepStrictEqual([pageSize, totalSize], [2, 3])
      assert.notProperty(tasks[0] ?? {}, "artifacts")
      const second = yield* client.call("ListTasks", { contextId: "c", pageSize: 2, pageToken: nextPageToken })
      assert.strictEqual(second.result.tasks[0]?.id, ids[2])
      assert.strictEqual(second.result.nextPageToken, "")
      assert.strictEqual(second.result.pageSize, 2)
    })
  },
  ...(
    [
      { pageSize: 0 },
      { pageSize: 101 },
      { pageSize: -1 },
      { pageToken: "unknown" },
      { status: "TASK_STATE_UNKNOWN" },
      { historyLength: -1 },
      { statusTimestampAfter: "yesterday" }
    ] as const
  ).map((params): Case => ({
    section: "3.1.4",
    title: `a list by ${JSON.stringify(params)} is refused`,
    run: (client) => fails(client, "INVALID_PARAMS", client.call("ListTasks", params))
  })),
  {
    section: "3.1.5",
    title: "a task that waits is cancelled, one that is over is not, and an unknown one is not found",
    run: Effect.fnUntraced(function* (client) {
      const { id } = yield* taskOf(client, "Pay Eva.")
      const { result } = yield* client.call("CancelTask", { id })
      assert.deepStrictEqual([result.id, stateOf(result)], [id, "TASK_STATE_CANCELED"])
      yield* fails(client, "TASK_NOT_CANCELABLE", client.call("CancelTask", { id }))
      const over = yield* taskOf(client, "Hello.")
      yield* fails(client, "TASK_NOT_CANCELABLE", client.call("CancelTask", { id: over.id }))
      yield* fails(client, "TASK_NOT_FOUND", client.call("CancelTask", { id: "unknown" }))
    })
  },
  {
    section: "3.1.6",
    title: "subscribers of a task that waits receive the task, then the same updates until it is over",
    run: Effect.fnUntraced(function* (client) {
      const { id } = yield* taskOf(client, "Pay Eva.")
      const [first, second] = [
        yield* client.open("SubscribeToTask", { id }),
        yield* client.open("SubscribeToTask", { id })
      ]
      yield* client.call("SendMessage", message("yes", { taskId: id }))
      const [one, other] = yield* Effect.all([first, second])
      assert.strictEqual(one.events[0]?.task.status.state, "TASK_STATE_INPUT_REQUIRED")
      assert.strictEqual(one.events.at(-1)?.statusUpdate.status.state, "TASK_STATE_COMPLETED")
      assert.deepStrictEqual(one.events, other.events)
    })
  },
  {
    section: "3.1.6",
    title: "nobody subscribes to a task that is over or unknown",
    run: Effect.fnUntraced(function* (client) {
      const { id } = yield* taskOf(client, "Hello.")
      yield* fails(client, "UNSUPPORTED_OPERATION", client.call("SubscribeToTask", { id }))
      yield* fails(client, "TASK_NOT_FOUND", client.call("SubscribeToTask", { id: "unknown" }))
    })
  },
  {
    section: "3.1.7 to 3.1.10",
    title: "a config of a task that is over is kept, read, listed and deleted more than once",
    options: { pushNotifications: true },
    run: Effect.fnUntraced(function* (client) {
      const { id: taskId } = yield* taskOf(client, "Hello.")
      const config = { taskId, id: "c", url: "https://example.com/hook" }
      assert.deepEqual<unknown>((yield* client.call("CreateTaskPushNotificationConfig", config)).result, config)
      assert.deepEqual<unknown>(
        (yield* client.call("GetTaskPushNotificationConfig", { taskId, id: "c" })).result,
        config
      )
      const list = yield* client.call("ListTaskPushNotificationConfigs", { taskId })
      assert.deepEqual<unknown>(list.result, { configs: [config], nextPageToken: "" })
      for (const id of ["c", "c"]) {
        assert.deepEqual<unknown>((yield* client.call("DeleteTaskPushNotificationConfig", { taskId, id })).result, {})
      }
      yield* fails(client, "TASK_NOT_FOUND", client.call("GetTaskPushNotificationConfig", { taskId, id: "c" }))
      for (const method of ["Create", "Get", "Delete"]) {
        const unknown = { ...config, taskId: "unknown" }
        yield* fails(client, "TASK_NOT_FOUND", client.call(`${method}TaskPushNotificationConfig`, unknown))
      }
    })
  },
  {
    section: "3.1.11",
    title: "there is no extended card unless the card says so, and none is configured then",
    run: (client) => fails(client, "UNSUPPORTED_OPERATION", client.call("GetExtendedAgentCard"))
  },
  {
    section: "3.1.11",
    title: "an extended card that the card promises is not configured",
    options: { card: { capabilities: { extendedAgentCard: true } } },
    run: (client) => fails(client, "EXTENDED_AGENT_CARD_NOT_CONFIGURED", client.call("GetExtendedAgentCard"))
  },
  {
    section: "3.2.2",
    title: "a message is answered when its task rests, and at once if the client says so",
    run: Effect.fnUntraced(function* (client) {
      assert.strictEqual(stateOf(yield* taskOf(client, "Pay Eva.")), "TASK_STATE_INPUT_REQUIRED")
      const atOnce = { ...message("Hello."), configuration: { returnImmediately: true } }
      const { result } = yield* client.call("SendMessage", atOnce)
      assert.include(["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"], stateOf(result.task))
    })
  },
  {
    section: "3.2.4",
    title: "a task has at most as many messages as the client asks for",
    run: Effect.fnUntraced(function* (client) {
      const { history, id } = yield* taskOf(client, "Hello.")
      assert.strictEqual(history[0]?.parts[0]?.text, "Hello.")
      assert.notProperty((yield* client.call("GetTask", { id, historyLength: 0 })).result, "history")
      assert.lengthOf((yield* client.call("GetTask", { id, historyLength: 1 })).result.history, 1)
      const sent = { ...message("Hello."), configuration: { historyLength: 0 } }
      assert.notProperty((yield* client.call("SendMessage", sent)).result.task, "history")
      yield* fails(client, "INVALID_PARAMS", client.call("GetTask", { id, historyLength: -1 }))
    })
  },
  ...[
    {},
    { message: "Hello." },
    { message: { role: "ROLE_USER", parts: [{ text: "Hello." }] } },
    { message: { messageId: "m", parts: [{ text: "Hello." }] } },
    { message: { messageId: "m", role: "ROLE_AGENT", parts: [{ text: "Hello." }] } },
    { message: { messageId: "m", role: "ROLE_USER" } },
    { message: { messageId: "m", role: "ROLE_USER", parts: [] } },
    { message: { messageId: "m", role: "ROLE_USER", parts: [{}] } },
    { message: { messageId: "m", role: "ROLE_USER", parts: [{ text: 7 }] } }
  ].map((params): Case => ({
    section: "3.3.2",
    title: `a message without what it must have is refused: ${JSON.stringify(params)}`,
    run: (client) => fails(client, "INVALID_PARAMS", client.call("SendMessage", params))
  })),
  {
    section: "3.3.4",
    title: "push notifications are refused where the card does not promise them",
    run: Effect.fnUntraced(function* (client) {
      const config = { taskId: "t", id: "c", url: "https://example.com" }
      for (const method of ["CreateTask", "GetTask", "DeleteTask", "ListTask"]) {
        const name = `${method}PushNotificationConfig${method === "ListTask" ? "s" : ""}`
        yield* fails(client, "PUSH_NOTIFICATION_NOT_SUPPORTED", client.call(name, config))
      }
      const sent = { ...message("Hello."), configuration: { taskPushNotificationConfig: config } }
      yield* fails(client, "PUSH_NOTIFICATION_NOT_SUPPORTED", client.call("SendMessage", sent))
    })
  },
  {
    section: "3.3.4",
    title: "streams are refused where the card says that there are none",
    options: { card: { capabilities: { streaming: false } } },
    run: Effect.fnUntraced(function* (client) {
      yield* fails(client, "UNSUPPORTED_OPERATION", client.call("SendStreamingMessage", message("Hello.")))
      yield* fails(client, "UNSUPPORTED_OPERATION", client.call("SubscribeToTask", { id: "t" }))
    })
  },
  {
    section: "3.3.4",
    title: "a client names the extensions that the card requires",
    options: { card: { capabilities: { extensions: [{ uri: "urn:one", required: true }, { uri: "urn:two" }] } } },
    run: Effect.fnUntraced(function* (client) {
      yield* fails(client, "EXTENSION_SUPPORT_REQUIRED", client.call("SendMessage", message("Hello.")))
      const headers = { "a2a-extensions": "urn:three, urn:one" }
      assert.isUndefined((yield* client.call("SendMessage", message("Hello."), headers)).error)
    })
  },
  {
    section: "3.4.1",
    title: "the context of the client is kept",
    run: Effect.fnUntraced(function* (client) {
      const { result } = yield* client.call("SendMessage", message("Hello.", { contextId: "urn:our/context" }))
      assert.strictEqual(result.task.contextId, "urn:our/context")
    })
  },
  {
    section: "3.4.2",
    title: "the context of a message follows from its task, and another one is refused",
    run: Effect.fnUntraced(function* (client) {
      const { contextId, id } = yield* taskOf(client, "Pay Eva.")
      const other = message("yes", { taskId: id, contextId: "other" })
      yield* fails(client, "INVALID_PARAMS", client.call("SendMessage", other))
      const { result } = yield* client.call("SendMessage", message("yes", { taskId: id }))
      assert.deepStrictEqual([result.task.contextId, stateOf(result.task)], [contextId, "TASK_STATE_COMPLETED"])
      yield* fails(client, "TASK_NOT_FOUND", client.call("SendMessage", message("yes", { taskId: "unknown" })))
    })
  },
  {
    section: "3.6",
    title: "versions are compared without their patch, and others are refused",
    run: Effect.fnUntraced(function* (client) {
      for (const version of ["1.0", "1.0.7", ""]) {
        const reply = yield* client.call("SendMessage", message("Hello."), { "a2a-version": version })
        assert.isUndefined(reply.error)
      }
      for (const version of ["99.0", "0.35", "10.0", "one"]) {
        const reply = client.call("SendMessage", message("Hello."), { "a2a-version": version })
        yield* fails(client, "VERSION_NOT_SUPPORTED", reply)
      }
    })
  },
  {
    section: "4.1",
    title: "fields are in camel case, states and roles are words, times are in UTC, and unknown fields are ignored",
    run: Effect.fnUntraced(function* (client) {
      const sent = { ...message("Hello.", { unknownField: 1 }), unknownField: {} }
      const { result, type } = yield* client.call("SendMessage", sent)
      assert.strictEqual(type, client.binding === "JSONRPC" ? "application/json" : "application/a2a+json")
      assert.notMatch(JSON.stringify(result), /"[a-z]+_[a-z]+":/)
      assert.match(result.task.status.timestamp, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
      assert.strictEqual(result.task.history[0]?.role, "ROLE_USER")
    })
  },
  {
    section: "5.3",
    title: "a method or path that the protocol does not have is refused",
    run: (client) => fails(client, "METHOD_NOT_FOUND", client.call("NoSuchMethod"))
  },
  {
    section: "8",
    title: "the card has what a client needs, and may be kept for a while",
    options: { card: { capabilities: { extensions: [] } }, pushNotifications: true },
    run: Effect.fnUntraced(function* (client, url) {
      const response = yield* Effect.promise(() => fetch(`${url}/.well-known/agent-card.json`))
      const card = JSON.parse(yield* Effect.promise(() => response.text()))
      for (const field of ["name", "description", "version", "skills", "defaultInputModes", "defaultOutputModes"]) {
        assert.property(card, field)
      }
      assert.deepInclude(card.supportedInterfaces, {
        url: `${url}/a2a`,
        protocolBinding: client.binding,
        protocolVersion: "1.0"
      })
      assert.deepStrictEqual(card.capabilities, { streaming: true, extensions: [], pushNotifications: true })
      assert.match(response.headers.get("cache-control") ?? "", /max-age=\d+/)
      assert.match(response.headers.get("etag") ?? "", /^"\w+"$/)
    })
  }
]

for (const [binding, connect] of [
  ["JSON-RPC", jsonRpc],
  ["REST", rest]
] as const) {
  describe(`A2A 1.0 over ${binding}`, () => {
    for (const { options, run, section, title } of cases) {
      it.live(`${section}: ${title}`, () =>
        Effect.gen(function* () {
          const { url } = yield* served(options)
          yield* run(connect(url), url)
        }).pipe(Effect.scoped)
      )
    }
  })
}
