/** The chat for end users: what its server sends, and to whom. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { Context, Effect, Layer, Schema, type Scope, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import { join } from "node:path"
import {
  Agent,
  Kernel,
  Media,
  MediaStore,
  Policy,
  ProtocolRegistry,
  Provider,
  RunStore,
  Skill,
  SkillRegistry,
  type StreamPart
} from "kernai"
import { ChatPage } from "kernai/studio"
import { MockProvider } from "kernai/testing"
import { guestEvents } from "../../src/studio/internal/guestRun.ts"
import { command, final } from "../support/blocks.ts"
import { folder } from "../support/folder.ts"

const picture = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a)

const find = Skill.make("find_order", {
  description: "Finds an order",
  effects: "read",
  input: Schema.Struct({ secret: Schema.String }),
  execute: () => Effect.succeed({ margin: "margin-of-the-shop" })
})
const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed(`paid ${to}`)
})

const label = Skill.make("print_label", {
  description: "Prints a label",
  input: Schema.Struct({}),
  effects: "read",
  execute: () =>
    Effect.succeed([
      "code-of-the-label",
      Media.fromBytes(picture, "image/png"),
      Media.fromBytes(new TextEncoder().encode("%PDF-1.7"), "application/pdf")
    ])
})

const desk = Agent.make({
  name: "desk-of-developers",
  instructions: "instructions-of-the-shop",
  model: "scripted",
  skills: "all"
})

const painted: ReadonlyArray<StreamPart.StreamPart> = [
  { type: "file", mediaType: "image/png", data: Buffer.from(picture).toString("base64") },
  { type: "finish", reason: "stop", usage: { inputTokens: {}, outputTokens: {} } }
]

const provider = MockProvider.make().onCall(({ messages }) => {
  const said = JSON.stringify(messages)
  if (said.includes("Pay Eva")) return said.includes("paid Eva") ? final("Paid.") : command("pay", { to: "Eva" })
  if (said.includes("Paint")) return painted
  if (said.includes("Print")) return said.includes("code-of") ? final("Here it is.") : command("print_label", {})
  return said.includes("margin")
    ? final("It comes **today**.")
    : `I look.\n${command("find_order", { secret: "input-of-the-call" })}`
})

const kernel = Kernel.layer.pipe(
  Layer.provide([
    Layer.succeed(Provider.Provider, provider),
    SkillRegistry.layer(find, label, pay),
    ProtocolRegistry.layer(),
    Layer.orDie(Policy.layerRules({ confirm: [{ name: "pay" }] }))
  ]),
  Layer.provideMerge(Layer.merge(RunStore.layerMemory, MediaStore.layerMemory))
)

interface Visitor {
  readonly get: (path: string) => Effect.Effect<Response>
  readonly post: (path: string, body: unknown) => Effect.Effect<Response>
  readonly delete: (path: string) => Effect.Effect<Response>
}

const serve = (
  options: Partial<ChatPage.PageOptions> = {}
): Effect.Effect<{ readonly visitor: Effect.Effect<Visitor>; readonly origin: string }, never, Scope.Scope> =>
  Effect.gen(function* () {
    const page = ChatPage.layer({ agents: [desk], ...options })
    const context = yield* Layer.build(
      HttpRouter.serve(page, { disableLogger: true, disableListenLog: true }).pipe(
        Layer.provide(kernel),
        Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" })),
        Layer.orDie
      )
    )
    const { address } = Context.get(context, HttpServer.HttpServer)
    const origin = `http://127.0.0.1:${"port" in address ? address.port : 0}`
    const visitor = Effect.promise(async (): Promise<Visitor> => {
      const first = await fetch(`${origin}/chat`)
      const cookie = first.headers.get("set-cookie")?.split(";")[0] ?? ""
      const headers = { cookie, "content-type": "application/json" }
      return {
        get: (path) => Effect.promise(() => fetch(`${origin}/chat/data${path}`, { headers })),
        post: (path, body) =>
          Effect.promise(() =>
            fetch(`${origin}/chat/data${path}`, { method: "POST", headers, body: JSON.stringify(body) })
          ),
        delete: (path) => Effect.promise(() => fetch(`${origin}/chat/data${path}`, { method: "DELETE", headers }))
      }
    })
    return { visitor, origin }
  })

const textOf = (response: Response) => Effect.promise(() => response.text())

const ask = (visitor: Visitor, runId: string, text: string, before: ReadonlyArray<string> = []) =>
  visitor.post("/runs", { runId, text, before, files: [] })

/** The state of a run as the page reads it. */
const State = Schema.Struct({ status: Schema.Struct({ type: Schema.String }), questions: Schema.Array(Schema.Unknown) })

/** Asks with a file: a store in memory keeps the media of a run that received one. */
const askWithFile = (visitor: Visitor, runId: string, text: string) =>
  visitor.post("/runs", { runId, text, before: [], files: [{ type: "text/plain", base64: "aGk=" }] })

const idsIn = (state: string): ReadonlyArray<string> =>
  Array.from(state.matchAll(/"fileId":"([^"]+)"/g), ([, id = ""]) => id)

/** Waits until a run rests. */
const rest = (visitor: Visitor, runId: string): Effect.Effect<string> =>
  Effect.gen(function* () {
    const text = yield* Effect.flatMap(visitor.get(`/runs/${runId}`), textOf)
    const { status } = Schema.decodeUnknownSync(Schema.fromJsonString(State))(text)
    return status.type === "running" ? yield* Effect.delay(rest(visitor, runId), 20) : text
  })

describe("the chat for end users", () => {
  it.live("sends what people say, and no tools, instructions or names of developers", () =>
    Effect.gen(function* () {
      const { visitor } = yield* serve()
      const eva = yield* visitor
      assert.strictEqual((yield* ask(eva, "chat.a.1", "Where is my parcel?")).status, 200)
      const state = yield* rest(eva, "chat.a.1")
      const events = yield* Effect.flatMap(eva.get("/runs/chat.a.1/events"), textOf)
      assert.include(state, "It comes **today**.")
      assert.include(state, "I look.")
      assert.include(events, '"type":"changed"')
      for (const text of [state, events]) {
        for (const hidden of ["find_order", "input-of", "margin-of", "instructions-of", "desk-of", "scripted"]) {
          assert.notInclude(text, hidden)
        }
      }
      assert.strictEqual((yield* ask(eva, "chat.a.2", "Thanks.", ["chat.a.1"])).status, 200)
      assert.include(yield* rest(eva, "chat.a.2"), "today")
    })
  )

  it.effect("streams the words of a reply, and nothing of its calls", () =>
    Effect.gen(function* () {
      const shown = guestEvents("chat.a.1", "run")
      const events = yield* Stream.runCollect(Kernel.stream(desk, "Where is my parcel?", { runId: "run" }))
      const sent = events.flatMap((event) => shown(event) ?? [])
      const text = JSON.stringify(sent)
      assert.include(text, "I look.")
      assert.include(text, "today")
      for (const hidden of ["find_order", "input-of", "margin-of", "instructions-of", "desk-of"]) {
        assert.notInclude(text, hidden)
      }
    }).pipe(Effect.provide(kernel))
  )

  it.live("keeps the conversations of its visitors apart", () =>
    Effect.gen(function* () {
      const { origin, visitor } = yield* serve()
      const eva = yield* visitor
      const bob = yield* visitor
      yield* ask(eva, "chat.a.1", "Where is my parcel?")
      yield* rest(eva, "chat.a.1")
      for (const path of ["/runs/chat.a.1", "/runs/chat.a.1/events", "/runs/chat.a.1/media/x"]) {
        assert.strictEqual((yield* bob.get(path)).status, 404, path)
      }
      assert.strictEqual((yield* bob.post("/runs/chat.a.1/cancel", {})).status, 404)
      assert.strictEqual((yield* bob.delete("/conversations/a")).status, 404)
      assert.strictEqual(yield* Effect.flatMap(bob.get("/conversations"), textOf), '{"lines":[]}')
      assert.include(yield* Effect.flatMap(eva.get("/conversations"), textOf), "Where is my parcel?")
      const without = yield* Effect.promise(() => fetch(`${origin}/chat/data/conversations`))
      assert.strictEqual(without.status, 401)
    })
  )

  it.live("shows the media of results to their own visitor, and nothing else of them", () =>
    Effect.gen(function* () {
      const { visitor } = yield* serve()
      const eva = yield* visitor
      const bob = yield* visitor
      yield* askWithFile(eva, "chat.a.1", "Print my label")
      const state = yield* rest(eva, "chat.a.1")
      for (const hidden of ["print_label", "code-of-the-label"]) assert.notInclude(state, hidden)
      const [, image = "", document = ""] = idsIn(state)

      const drawn = yield* eva.get(`/runs/chat.a.1/media/${image}`)
      assert.strictEqual(drawn.headers.get("content-type"), "image/png")
      assert.strictEqual(drawn.headers.get("content-security-policy"), "default-src 'none'; sandbox")
      assert.isNull(drawn.headers.get("content-disposition"))
      assert.deepStrictEqual(new Uint8Array(yield* Effect.promise(() => drawn.arrayBuffer())), picture)
      const saved = yield* eva.get(`/runs/chat.a.1/media/${document}`)
      assert.strictEqual(saved.headers.get("content-disposition"), "attachment")
      assert.strictEqual((yield* bob.get(`/runs/chat.a.1/media/${image}`)).status, 404)
    })
  )

  it.live("sends no media of results if the page leaves them out", () =>
    Effect.gen(function* () {
      const shown = yield* serve()
      const hidden = yield* serve({ media: false })
      const [eva, bob] = [yield* shown.visitor, yield* hidden.visitor]
      yield* askWithFile(eva, "chat.a.1", "Print my label")
      const [file = "", image = ""] = idsIn(yield* rest(eva, "chat.a.1"))
      yield* askWithFile(bob, "chat.a.1", "Print my label")
      assert.deepStrictEqual(idsIn(yield* rest(bob, "chat.a.1")), [file])
      // The id is made from the content, so both runs have this medium.
      assert.strictEqual((yield* eva.get(`/runs/chat.a.1/media/${image}`)).status, 200)
      assert.strictEqual((yield* bob.get(`/runs/chat.a.1/media/${image}`)).status, 404)
    })
  )

  it.live("shows a picture that the model replies with", () =>
    Effect.gen(function* () {
      const { visitor } = yield* serve({ media: false })
      const eva = yield* visitor
      yield* askWithFile(eva, "chat.a.1", "Paint a dot")
      const [, image = ""] = idsIn(yield* rest(eva, "chat.a.1"))
      const drawn = yield* eva.get(`/runs/chat.a.1/media/${image}`)
      assert.deepStrictEqual(new Uint8Array(yield* Effect.promise(() => drawn.arrayBuffer())), picture)
    })
  )

  it.live("lets a visitor decide about a call of the own run, as it was shown", () =>
    Effect.gen(function* () {
      const { visitor } = yield* serve()
      const eva = yield* visitor
      yield* ask(eva, "chat.a.1", "Pay Eva")
      const { questions } = Schema.decodeUnknownSync(Schema.fromJsonString(State))(yield* rest(eva, "chat.a.1"))
      const { callId } = Schema.decodeUnknownSync(Schema.Struct({ callId: Schema.String }))(questions[0])
      const answered = yield* eva.post("/runs/chat.a.1/answers", {
        answers: [{ callId, approved: true, input: { to: "Mallory" } }]
      })
      assert.strictEqual(answered.status, 200)
      assert.include(yield* rest(eva, "chat.a.1"), "Paid.")
    })
  )

  it.live("may be framed by the named pages alone, and a thumb is a score of the run", () =>
    Effect.gen(function* () {
      const evaluations = yield* folder
      const { origin, visitor } = yield* serve({ embedIn: ["https://shop.example"], evaluations, name: 'A "<b>' })
      const page = yield* Effect.promise(() => fetch(`${origin}/chat`))
      const policy = page.headers.get("content-security-policy") ?? ""
      assert.include(policy, "frame-ancestors https://shop.example;")
      assert.include(policy, "script-src 'self';")
      assert.match(page.headers.get("set-cookie") ?? "", /HttpOnly.*Secure.*Partitioned.*SameSite=None/)
      assert.include(yield* textOf(page), "<title>A &quot;&lt;b&gt;</title>")
      const eva = yield* visitor
      yield* ask(eva, "chat.a.1", "Where is my parcel?")
      yield* rest(eva, "chat.a.1")
      assert.strictEqual((yield* eva.post("/runs/chat.a.1/score", { good: false })).status, 200)
      assert.match(readFileSync(join(evaluations, "scores.ndjson"), "utf8"), /guest-[0-9a-f]{32}.*"good":false/)
    })
  )
})
