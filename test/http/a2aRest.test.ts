/** The REST binding of A2A and files as parts, with the client of the protocol as it comes. */
import { Role, type Task, TaskState } from "@a2a-js/sdk"
import { type Client, ClientFactory, JsonRpcTransportFactory, RestTransportFactory } from "@a2a-js/sdk/client"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { Agent, Media, Model, Policy, Program, Skill } from "kernai"
import { A2a } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { serve as serveHttp, type Setup } from "../support/http.ts"

const dot = Uint8Array.from(
  atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
  (char) => char.charCodeAt(0)
)

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed({ paid: to })
})

const draw = Skill.make("draw", {
  description: "Draws",
  input: Schema.Struct({}),
  execute: () => Effect.succeed(Media.fromBytes(dot, "image/png"))
})

const clerk = Agent.make({
  name: "clerk",
  instructions: "",
  model: Model.make("scripted", { capabilities: ["vision"] }),
  skills: "all",
  dialect: "tools"
})

const asks = Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))

const serve = (setup: Setup) => serveHttp({ agent: clerk, routes: A2a.layer(), skills: [pay, draw], ...setup })

/** Creates the client of one binding. Its requests are recorded. */
const clientOf = (url: string, binding: "REST" | "JSONRPC" = "REST") =>
  Effect.promise(async () => {
    const requests: Array<string> = []
    const fetchImpl: typeof fetch = (input, init) => {
      requests.push(`${init?.method ?? "GET"} ${String(input).slice(url.length)}`)
      return fetch(input, init)
    }
    const transport =
      binding === "REST" ? new RestTransportFactory({ fetchImpl }) : new JsonRpcTransportFactory({ fetchImpl })
    return { client: await new ClientFactory({ transports: [transport] }).createFromUrl(url), requests }
  })

let count = 0

type Part = Parameters<Client["sendMessage"]>[0]["message"] extends (infer M) | undefined
  ? M extends { readonly parts: ReadonlyArray<infer P> }
    ? P
    : never
  : never

const part = (content: Part["content"], mediaType = ""): Part => ({
  content,
  metadata: undefined,
  filename: "",
  mediaType
})

const message = (parts: Array<Part>, taskId = "") => ({
  tenant: "",
  metadata: undefined,
  configuration: undefined,
  message: {
    messageId: `message-${++count}`,
    contextId: "",
    taskId,
    role: Role.ROLE_USER,
    parts,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: []
  }
})

const text = (value: string, taskId = "") => message([part({ $case: "text", value })], taskId)

const send = (client: Client, sent: Parameters<Client["sendMessage"]>[0]) =>
  Effect.promise(async (): Promise<Task> => {
    const result = await client.sendMessage(sent)
    if ("messageId" in result) throw new Error("a message is no task")
    return result
  })

const named = (id: string) => ({ tenant: "", id, metadata: undefined })

const stateOf = ({ status }: Task) => TaskState[status?.state ?? 0]

const failureOf = (attempt: () => Promise<unknown>) =>
  Effect.promise(() =>
    attempt().then(
      () => "no failure",
      (error: Error) => error.name
    )
  )

/** The parts of the artifacts of a task. */
const partsOf = ({ artifacts }: Task) =>
  artifacts.flatMap(({ parts }) =>
    parts.map(({ content, mediaType }) => ({ type: content?.$case, value: content?.value, mediaType }))
  )

describe("the REST binding of A2A", () => {
  it.live("sends, reads, lists and streams tasks", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ model: MockProvider.make().onCall(() => "Done.") })
      const { client, requests } = yield* clientOf(url)
      const task = yield* send(client, text("Hello."))
      assert.strictEqual(stateOf(task), "TASK_STATE_COMPLETED")
      const again = yield* Effect.promise(() => client.getTask({ ...named(task.id), historyLength: 1 }))
      assert.deepStrictEqual([again.id, again.history.length], [task.id, 1])
      const listed = yield* Effect.promise(() =>
        client.listTasks({
          tenant: "",
          contextId: task.contextId,
          status: TaskState.TASK_STATE_UNSPECIFIED,
          pageSize: 5,
          pageToken: "",
          statusTimestampAfter: undefined
        })
      )
      assert.deepStrictEqual(
        listed.tasks.map(({ id }) => id),
        [task.id]
      )
      const states = yield* Effect.promise(async () => {
        const seen: Array<string | undefined> = []
        for await (const { payload } of client.sendMessageStream(text("Hello again."))) seen.push(payload?.$case)
        return seen
      })
      assert.deepStrictEqual([states[0], states.at(-1)], ["task", "statusUpdate"])
      assert.deepStrictEqual(
        requests.map((request) => request.replace(/tasks\/[^?]*/, "tasks/id").replace(/\?.*/, "")),
        ["POST /a2a/message:send", "GET /a2a/tasks/id", "GET /a2a/tasks", "POST /a2a/message:stream"]
      )
    }).pipe(Effect.scoped)
  )

  it.live("is asked for input, and answers with plain text", () =>
    Effect.gen(function* () {
      const replies = [{ calls: [{ name: "pay", input: { to: "Eva" } }] }, "Paid."]
      const { url } = yield* serve({ replies, with: asks })
      const { client } = yield* clientOf(url)
      const asked = yield* send(client, text("Pay Eva."))
      assert.strictEqual(stateOf(asked), "TASK_STATE_INPUT_REQUIRED")
      const answered = yield* send(client, text("yes", asked.id))
      assert.deepStrictEqual(partsOf(answered), [{ type: "text", value: "Paid.", mediaType: "" }])
    }).pipe(Effect.scoped)
  )

  it.live("is told that a task is at work while it waits for a time alone", () =>
    Effect.gen(function* () {
      const later = Program.make("later", { run: () => Effect.as(Program.sleep("1 hour"), "Done.") })
      const { url } = yield* serve({ agent: later })
      const { client } = yield* clientOf(url)
      const task = yield* send(client, text("Wait."))
      assert.strictEqual(stateOf(task), "TASK_STATE_WORKING")
    }).pipe(Effect.scoped)
  )

  it.live("reports errors with the classes of the client", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: ["Done."] })
      const { client } = yield* clientOf(url)
      const task = yield* send(client, text("Hello."))
      assert.deepStrictEqual(
        [
          yield* failureOf(() => client.getTask(named("none"))),
          yield* failureOf(() => client.cancelTask(named("none"))),
          yield* failureOf(() => client.cancelTask(named(task.id)))
        ],
        ["TaskNotFoundError", "TaskNotFoundError", "TaskNotCancelableError"]
      )
      const responses = yield* Effect.promise(() =>
        Promise.all(
          [
            ["GET", "tasks/none"],
            ["GET", "tasks?pageSize=many"],
            ["POST", "message:send"],
            ["GET", "extendedAgentCard"]
          ].map(async ([method = "", path = ""]) => {
            const headers = { "content-type": "application/json" }
            const response = await fetch(`${url}/a2a/${path}`, {
              method,
              headers,
              ...(method === "POST" ? { body: "[]" } : {})
            })
            const { error } = JSON.parse(await response.text())
            return [response.status, error?.code, error?.status, error?.details?.[0]?.reason]
          })
        )
      )
      assert.deepStrictEqual(responses, [
        [404, 404, "NOT_FOUND", "TASK_NOT_FOUND"],
        [400, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"],
        [400, 400, "INVALID_ARGUMENT", "INVALID_PARAMS"],
        [400, 400, "UNIMPLEMENTED", "UNSUPPORTED_OPERATION"]
      ])
    }).pipe(Effect.scoped)
  )
})

describe("files over A2A", () => {
  for (const binding of ["JSONRPC", "REST"] as const) {
    it.live(`are parts of artifacts and of the history, by addresses that the client can read (${binding})`, () =>
      Effect.gen(function* () {
        const replies = [{ calls: [{ name: "draw", input: {} }] }, "A dot."]
        const { url } = yield* serve({ replies })
        const { client } = yield* clientOf(url, binding)
        const file = part({ $case: "raw", value: Buffer.from(dot) }, "image/png")
        const task = yield* send(client, message([part({ $case: "text", value: "Draw this." }), file]))
        const [answer, drawn] = partsOf(task)
        assert.deepInclude(answer, { type: "text", value: "A dot." })
        assert.deepInclude(drawn, { type: "url", mediaType: "image/png" })
        const sent = task.history[0]?.parts[1]
        assert.deepInclude(sent, { mediaType: "image/png" })
        for (const address of [drawn?.value, sent?.content?.value]) {
          const response = yield* Effect.promise(() => fetch(String(address)))
          assert.deepStrictEqual(new Uint8Array(yield* Effect.promise(() => response.arrayBuffer())), dot)
        }
        const streamed: Array<string | undefined> = []
        yield* Effect.promise(async () => {
          for await (const { payload } of client.sendMessageStream(text("Draw again."))) {
            if (payload?.$case !== "artifactUpdate") continue
            streamed.push(...(payload.value.artifact?.parts.map(({ content }) => content?.$case) ?? []))
          }
        })
        assert.include(streamed, "text")
      }).pipe(Effect.scoped)
    )
  }

  it.live("are artifacts of a stream, too", () =>
    Effect.gen(function* () {
      const { url } = yield* serve({ replies: [{ calls: [{ name: "draw", input: {} }] }, "A dot."] })
      const { client } = yield* clientOf(url)
      const names = yield* Effect.promise(async () => {
        const seen: Array<string | undefined> = []
        for await (const { payload } of client.sendMessageStream(text("Draw."))) {
          if (payload?.$case === "artifactUpdate") seen.push(payload.value.artifact?.artifactId)
        }
        return seen
      })
      assert.deepStrictEqual(new Set(names), new Set(["file-1", "answer"]))
    }).pipe(Effect.scoped)
  )
})
