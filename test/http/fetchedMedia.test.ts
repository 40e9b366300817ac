/** Files that the message of a page names by their URL, fetched by the server. */
import { Chat } from "@ai-sdk/react"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { assert, describe, it } from "@effect/vitest"
import { DefaultChatTransport, type UIMessage } from "ai"
import { Context, Effect, Layer } from "effect"
import { HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { createServer } from "node:http"
import { Agent, Model } from "kernai"
import { AiSdkUi } from "kernai/http"
import { MockProvider } from "kernai/testing"
import { Lookup } from "../../src/http/internal/guardedHttp.ts"
import { serve } from "../support/http.ts"

const dot = Uint8Array.from(
  atob("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="),
  (char) => char.charCodeAt(0)
)

const agent = Agent.make({
  name: "clerk",
  instructions: "",
  model: Model.make("scripted", { capabilities: ["vision"] }),
  dialect: "tools"
})

/** A server of files on this machine, and how often it was asked. */
const files = Effect.gen(function* () {
  const asked: Array<string> = []
  const respond = (name: string, response: HttpServerResponse.HttpServerResponse) =>
    HttpRouter.add("GET", `/${name}`, () =>
      Effect.as(
        Effect.sync(() => asked.push(name)),
        response
      )
    )
  const routes = Layer.mergeAll(
    respond("dot.png", HttpServerResponse.uint8Array(dot, { contentType: "image/png" })),
    respond("large.png", HttpServerResponse.uint8Array(new Uint8Array(21 * 1024 * 1024), { contentType: "image/png" })),
    respond("moved.png", HttpServerResponse.redirect("/dot.png")),
    respond("private.png", HttpServerResponse.redirect("http://169.254.169.254/latest/"))
  )
  const server = HttpRouter.serve(routes, { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provideMerge(
      NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: 100 })
    ),
    Layer.orDie
  )
  const { address } = Context.get(yield* Layer.build(server), HttpServer.HttpServer)
  return { asked, origin: `http://127.0.0.1:${"port" in address ? address.port : 0}` }
})

const chatOf = (url: string, id: string) =>
  new Chat<UIMessage>({ id, transport: new DefaultChatTransport({ api: `${url}/api/chat` }) })

const sendFile = (chat: Chat<UIMessage>, url: string) =>
  Effect.promise(() =>
    chat.sendMessage({ text: "What is it?", files: [{ type: "file", mediaType: "image/png", url }] })
  )

const start = (fetchMedia: boolean | { readonly origins: ReadonlyArray<string> } | undefined) =>
  Effect.gen(function* () {
    const model = MockProvider.make().onCall(() => ({ text: "A dot." }))
    const { url } = yield* serve({ agent, model, routes: AiSdkUi.layer(), options: { fetchMedia } })
    return { model, url }
  })

/** The pictures that the model received. */
const seen = (model: MockProvider.Mock) =>
  (model.lastCall?.messages ?? []).flatMap(({ content }) =>
    content.flatMap((part) => (part.type === "image" ? [part] : []))
  )

describe("a file that a page names by its URL", () => {
  it.live("is fetched and stored with the run, also where its server moved it", () =>
    Effect.gen(function* () {
      const { asked, origin } = yield* files
      const { model, url } = yield* start({ origins: [origin] })
      for (const name of ["dot.png", "moved.png"]) {
        const chat = chatOf(url, name)
        yield* sendFile(chat, `${origin}/${name}`)
        assert.isUndefined(chat.error)
        const [image] = seen(model)
        assert.isUndefined(image?.url)
        assert.strictEqual(image?.mediaType, "image/png")
      }
      assert.deepStrictEqual(asked, ["dot.png", "moved.png", "dot.png"])
    }).pipe(Effect.scoped)
  )

  it.live("goes to the vendor of the model unless the server fetches it", () =>
    Effect.gen(function* () {
      const { asked, origin } = yield* files
      const { model, url } = yield* start(undefined)
      yield* sendFile(chatOf(url, "c"), `${origin}/dot.png`)
      assert.strictEqual(seen(model)[0]?.url, `${origin}/dot.png`)
      assert.deepStrictEqual(asked, [])
    }).pipe(Effect.scoped)
  )

  it.live("is refused, and no run starts, at an address that is not public, however it is written", () =>
    Effect.gen(function* () {
      const { asked, origin } = yield* files
      const port = URL.parse(origin)?.port ?? ""
      const { model, url } = yield* start(true)
      for (const [index, address] of [
        `${origin}/dot.png`,
        `http://localhost:${port}/dot.png`,
        `http://127.1:${port}/dot.png`,
        `http://2130706433:${port}/dot.png`,
        `http://0x7f.1:${port}/dot.png`,
        `http://localhost.:${port}/dot.png`,
        `http://[::ffff:7f00:1]:${port}/dot.png`,
        `http://[64:ff9b::7f00:1]:${port}/dot.png`,
        "http://169.254.169.254/latest/",
        `http://u:p@files.example:${port}/dot.png`
      ].entries()) {
        const chat = chatOf(url, `c${index}`)
        yield* sendFile(chat, address)
        assert.include(chat.error?.message ?? "", "cannot be fetched", address)
      }
      assert.deepStrictEqual([asked, model.callCount], [[], 0])
    }).pipe(Effect.scoped)
  )

  it.live("is refused when its name resolves to an address that is not public, or its server sends it to one", () =>
    Effect.gen(function* () {
      const { asked, origin } = yield* files
      const port = URL.parse(origin)?.port ?? ""
      const { url } = yield* start({ origins: [origin] })
      for (const [index, address] of [`http://files.example:${port}/dot.png`, `${origin}/private.png`].entries()) {
        const chat = chatOf(url, `c${index}`)
        yield* sendFile(chat, address)
        assert.include(chat.error?.message ?? "", "cannot be fetched", address)
      }
      assert.deepStrictEqual(asked, ["private.png"])
    }).pipe(
      Effect.provideService(Lookup, (_name, options, callback) => {
        const address = { address: "127.0.0.1", family: 4 }
        if (options.all === true) callback(null, [address])
        else callback(null, address.address, address.family)
      }),
      Effect.scoped
    )
  )

  it.live("is refused when it is too large", () =>
    Effect.gen(function* () {
      const { origin } = yield* files
      const { url } = yield* start({ origins: [origin] })
      const chat = chatOf(url, "c")
      yield* sendFile(chat, `${origin}/large.png`)
      assert.include(chat.error?.message ?? "", "too large")
    }).pipe(Effect.scoped)
  )
})
