import { assert, describe, it } from "@effect/vitest"
import { type Duration, Effect, Fiber, Layer, Predicate, Queue, Schema, Sink, Stream } from "effect"
import * as Stdio from "effect/Stdio"
import { TestClock } from "effect/testing"
import { Agent, Kernel, MediaStore, ProtocolRegistry, Provider, RunStore, Skill, SkillRegistry } from "kernai"
import { AcpServe } from "kernai/acp"
import { MockProvider } from "kernai/testing"
import { command, final } from "../support/blocks.ts"

interface Message {
  readonly id?: unknown
  readonly method?: string
  readonly params?: { readonly update?: { readonly [key: string]: unknown } }
  readonly result?: { readonly [key: string]: unknown }
  readonly error?: { readonly code: number; readonly message: string }
}

const edit = Skill.make("edit", {
  description: "Edits a file",
  input: Schema.Struct({ file_path: Schema.String, old_string: Schema.String, new_string: Schema.String }),
  execute: () => Effect.succeed("edited")
})

const todo = Skill.make("todo", {
  description: "Keeps a list",
  input: Schema.Struct({ todos: Schema.Array(Schema.Struct({ content: Schema.String, status: Schema.String })) }),
  execute: () => Effect.succeed("kept")
})

const wait = Skill.make("wait", { description: "Never ends", input: Schema.Struct({}), execute: () => Effect.never })

const agent = Agent.make({ name: "helper", instructions: "Help.", model: "scripted", skills: [edit, todo, wait] })

/** Serves the agent to a client that writes lines and reads messages. */
const serve = (...replies: ReadonlyArray<string>) => serveAt(0, ...replies)

/** Serves a model that waits before each piece of its text. */
const serveAt = Effect.fnUntraced(function* (pace: Duration.Input, ...replies: ReadonlyArray<string>) {
  const input = yield* Queue.unbounded<string>()
  const output = yield* Queue.unbounded<Message>()
  const read = (line: string | Uint8Array) =>
    Queue.offer(output, JSON.parse(typeof line === "string" ? line : new TextDecoder().decode(line)))
  const stdio = Stdio.layerTest({
    stdin: Stream.encodeText(Stream.fromQueue(input)),
    stdout: () => Sink.forEach(read)
  })
  const model = MockProvider.make(...replies)
    .withChunking(6)
    .withDelay({ between: pace })
  const kernel = Kernel.layer.pipe(
    Layer.provide([Layer.succeed(Provider.Provider, model), SkillRegistry.layer(), ProtocolRegistry.layer()]),
    Layer.provide(MediaStore.layerMemory)
  )
  const shared = yield* Layer.build(RunStore.layerMemory)
  const modes = [
    { id: "plan", name: "Plan" },
    { id: "work", name: "Work" }
  ]
  const session = () => Layer.provide(kernel, Layer.succeedContext(shared))
  yield* AcpServe.stdio({ agent, modes, layer: session }).pipe(
    Effect.provide(stdio),
    Effect.provideContext(shared),
    Effect.forkScoped
  )
  const write = (line: string) => Queue.offer(input, `${line}\n`)
  const send = (message: object) => write(JSON.stringify({ jsonrpc: "2.0", ...message }))
  const seen: Array<Message> = []
  /** Reads messages up to the answer of a request. */
  const answerOf = Effect.fnUntraced(function* (id: unknown) {
    while (true) {
      const message = yield* Queue.take(output)
      if (message.method === undefined && message.id === id) return message
      seen.push(message)
    }
  })
  let last = 0
  const request = (method: string, params: unknown) =>
    Effect.suspend(() => {
      const id = ++last
      return Effect.andThen(send({ id, method, params }), answerOf(id))
    })
  const open = Effect.map(request("session/new", { cwd: "/project", mcpServers: [] }), ({ result }) => result)
  return { write, send, request, answerOf, open, seen }
})

const text = (text: string) => [{ type: "text", text }]

describe("AcpServe", () => {
  it.effect("answers malformed input with errors, and goes on", () =>
    Effect.gen(function* () {
      const client = yield* serve(final("Here I am."))
      const codeOf = (line: string) =>
        Effect.map(Effect.andThen(client.write(line), client.answerOf(null)), ({ error }) => error?.code)
      assert.strictEqual(yield* codeOf("{"), -32_700)
      assert.strictEqual(yield* codeOf(`${"[".repeat(200)}${"]".repeat(200)}`), -32_700)
      assert.strictEqual(yield* codeOf(`[{"jsonrpc":"2.0","id":1,"method":"initialize"}]`), -32_600)
      assert.strictEqual(yield* codeOf(`{"id":1,"method":7}`), -32_600)
      assert.strictEqual(yield* codeOf(`{"id":{},"method":"initialize"}`), -32_600)
      assert.strictEqual(yield* codeOf(`"${"a".repeat(11_000_000)}"`), -32_600)
      const refused = (method: string, params: unknown) =>
        Effect.map(client.request(method, params), ({ error }) => error?.code)
      assert.strictEqual(yield* refused("session/fly", {}), -32_601)
      assert.strictEqual(yield* refused("initialize", { protocolVersion: "one" }), -32_602)
      assert.strictEqual(yield* refused("session/new", { cwd: "work", mcpServers: [] }), -32_602)
      assert.strictEqual(yield* refused("session/new", { cwd: "/project\0", mcpServers: [] }), -32_602)
      assert.strictEqual(yield* refused("session/load", { sessionId: "../x", cwd: "/", mcpServers: [] }), -32_602)
      const sessionId = `acp-${"0".repeat(32)}`
      assert.strictEqual(yield* refused("session/load", { sessionId, cwd: "/", mcpServers: [] }), -32_002)
      assert.strictEqual(yield* refused("session/prompt", { sessionId, prompt: text("Hi") }), -32_002)
      const opened = yield* client.open
      const image = [{ type: "image", data: "%%%", mimeType: "image/png" }]
      assert.strictEqual(yield* refused("session/prompt", { ...opened, prompt: image }), -32_602)
      assert.strictEqual(yield* refused("session/prompt", { ...opened, prompt: [] }), -32_602)
      assert.strictEqual(yield* refused("session/set_mode", { ...opened, modeId: "fly" }), -32_602)
      yield* client.send({ method: "session/cancel", params: 7 })
      yield* client.send({ id: 99, result: { outcome: "selected" } })
      const { result } = yield* client.request("session/prompt", { ...opened, prompt: text("Are you there?") })
      assert.deepStrictEqual(result, { stopReason: "end_turn" })
    })
  )

  it.effect("shows the difference and the place of an edit, and a todo list as a plan", () =>
    Effect.gen(function* () {
      const change = { file_path: "src/a.ts", old_string: "one", new_string: "two" }
      const todos = [
        { content: "Change one", status: "completed" },
        { content: "Test it", status: "in_progress" }
      ]
      const client = yield* serve(command("edit", change), command("todo", { todos }), final("Done."))
      yield* client.request("session/prompt", { ...(yield* client.open), prompt: text("Change one to two.") })
      const updates = client.seen.map(({ params }) => params?.update).filter((update) => update !== undefined)
      const [call] = updates
      assert.deepInclude(call, {
        sessionUpdate: "tool_call",
        title: "edit src/a.ts",
        kind: "edit",
        status: "pending",
        locations: [{ path: "/project/src/a.ts" }],
        content: [{ type: "diff", path: "/project/src/a.ts", oldText: "one", newText: "two" }]
      })
      assert.deepStrictEqual(
        updates.find((update) => update["sessionUpdate"] === "plan"),
        {
          sessionUpdate: "plan",
          entries: todos.map((todo) => ({ ...todo, priority: "medium" }))
        }
      )
    })
  )

  it.effect("streams the text of a reply piece by piece, without its calls", () =>
    Effect.gen(function* () {
      const client = yield* serveAt(
        "1 second",
        `First I look.\n${command("todo", { todos: [] })}`,
        final("There was nothing to do.")
      )
      const prompting = yield* Effect.forkChild(
        client.request("session/prompt", { ...(yield* client.open), prompt: text("Look.") })
      )
      for (let second = 0; second < 60; second++) yield* TestClock.adjust("1 second")
      yield* Fiber.join(prompting)
      const updates = client.seen.map(({ params }) => params?.update).filter((update) => update !== undefined)
      const pieces = updates.flatMap(({ content, sessionUpdate }) =>
        sessionUpdate === "agent_message_chunk" ? [content] : []
      )
      const whole = pieces.map((piece) => (Predicate.hasProperty(piece, "text") ? piece.text : "")).join("")
      assert.strictEqual(whole.replace(/\n/g, ""), "First I look.There was nothing to do.")
      assert.isAbove(pieces.length, 4)
    })
  )

  it.effect("offers its modes, and keeps the chosen one", () =>
    Effect.gen(function* () {
      const client = yield* serve(final("Hello."))
      const { modes, sessionId } = (yield* client.open) ?? {}
      assert.deepStrictEqual(modes, {
        currentModeId: "plan",
        availableModes: [
          { id: "plan", name: "Plan" },
          { id: "work", name: "Work" }
        ]
      })
      assert.deepStrictEqual((yield* client.request("session/set_mode", { sessionId, modeId: "work" })).result, {})
    })
  )

  it.effect("cancels a prompt whose cancellation arrives together with it", () =>
    Effect.gen(function* () {
      const client = yield* serve(command("wait"))
      const opened = yield* client.open
      const params = { ...opened, prompt: text("Wait.") }
      yield* client.write(
        [
          { id: "first", method: "session/prompt", params },
          { method: "session/cancel", params: opened }
        ]
          .map((message) => JSON.stringify(message))
          .join("\n")
      )
      assert.deepStrictEqual((yield* client.answerOf("first")).result, { stopReason: "cancelled" })
    })
  )

  it.effect("refuses a second prompt while it answers one, until that request is cancelled", () =>
    Effect.gen(function* () {
      const client = yield* serve(command("wait"), final("Here I am."))
      const opened = yield* client.open
      yield* client.send({ id: "first", method: "session/prompt", params: { ...opened, prompt: text("Wait.") } })
      const second = yield* client.request("session/prompt", { ...opened, prompt: text("Now?") })
      assert.strictEqual(second.error?.code, -32_600)
      yield* client.send({ method: "$/cancel_request", params: { requestId: "first" } })
      assert.strictEqual((yield* client.answerOf("first")).error?.code, -32_800)
      const third = yield* client.request("session/prompt", { ...opened, prompt: text("Now?") })
      assert.deepStrictEqual(third.result, { stopReason: "end_turn" })
    })
  )
})
