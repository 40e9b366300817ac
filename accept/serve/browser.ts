/**
 * `useChat` in a real browser against a server of this process: a tool call with an approval, a reload in the middle of a
 * reply, a second tab, and stop. Prints one line for each, or why there is no browser.
 *
 * node --conditions=kernai-source accept/serve/browser.ts
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer, Queue, Schema, Stream } from "effect"
import { HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { buildSync } from "esbuild"
import { existsSync } from "node:fs"
import { createServer } from "node:http"
import { type BrowserContext, chromium, type Page } from "playwright-core"
import {
  Agent,
  Kernel,
  MediaStore,
  Policy,
  ProtocolRegistry,
  Provider,
  RunStore,
  Skill,
  SkillRegistry,
  StreamPart
} from "../../src/index.ts"
import { AiSdkUi, HttpKernel } from "../../src/http/index.ts"

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium"

const pay = Skill.make("pay", {
  description: "Pays",
  input: Schema.Struct({ to: Schema.String }),
  execute: ({ to }) => Effect.succeed({ paid: to })
})

const agent = Agent.make({ name: "clerk", instructions: "", model: "scripted", skills: "all", dialect: "tools" })

/** Pays when it is asked to, and otherwise says what the queue holds until it holds an empty piece. */
const modelOf = (pieces: Queue.Dequeue<string>): Provider.ProviderShape => ({
  name: "scripted",
  stream: ({ messages }) => {
    const last = messages.at(-1)
    if (last?.role === "tool" || JSON.stringify(last).includes("paid")) return Stream.make(...text("Done."))
    if (!JSON.stringify(last).includes("Pay Eva.")) {
      return Stream.concat(
        Stream.map(
          Stream.takeWhile(Stream.fromQueue(pieces), (piece) => piece !== ""),
          (delta): StreamPart.StreamPart => ({ type: "text-delta", id: "0", delta })
        ),
        Stream.make(StreamPart.finish())
      )
    }
    const call = { type: "tool-call", id: "call-1", name: "pay", params: { to: "Eva" } } as const
    return Stream.make<ReadonlyArray<StreamPart.StreamPart>>(call, StreamPart.finish("tool-calls"))
  }
})

const text = (delta: string): ReadonlyArray<StreamPart.StreamPart> => [
  { type: "text-delta", id: "0", delta },
  StreamPart.finish()
]

const bundle = (): string =>
  buildSync({
    entryPoints: ["accept/serve/page.mjs"],
    bundle: true,
    write: false,
    format: "iife",
    define: { "process.env.NODE_ENV": '"production"' },
    logLevel: "error"
  }).outputFiles[0]?.text ?? ""

const served = (pieces: Queue.Dequeue<string>) => {
  const kernel = Kernel.layer.pipe(
    Layer.provide([
      Layer.succeed(Provider.Provider, modelOf(pieces)),
      SkillRegistry.layer(pay),
      ProtocolRegistry.layer(),
      Policy.layerRules({ confirm: [{ name: "pay" }] })
    ]),
    Layer.provideMerge([RunStore.layerMemory, MediaStore.layerMemory])
  )
  const page = Layer.mergeAll(
    HttpRouter.add("GET", "/", HttpServerResponse.html("<!doctype html><body></body><script src=/page.js></script>")),
    HttpRouter.add("GET", "/page.js", HttpServerResponse.text(bundle(), { contentType: "text/javascript" }))
  )
  const app = Layer.merge(AiSdkUi.layer(), page).pipe(
    Layer.provideMerge(HttpKernel.layer({ agents: [agent] })),
    Layer.provide(kernel)
  )
  return HttpRouter.serve(app, { disableLogger: true, disableListenLog: true }).pipe(
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
  )
}

/** Waits until a page shows a text. */
const shows = (page: Page, words: string) => page.getByText(words, { exact: true }).first().waitFor({ timeout: 30_000 })

const converse = async (context: BrowserContext, url: string, say: (...pieces: ReadonlyArray<string>) => void) => {
  const page = await context.newPage()
  await page.goto(`${url}/?chat=one`)
  await page.click("#pay")
  await page.click("#approve")
  await shows(page, "Done.")
  await page.getByText("tool-pay output-available").waitFor()
  console.log("ok a tool call is approved in the page, and the same message continues")

  await page.click("#speak")
  say("Hello, ")
  await shows(page, "Hello, ")
  await page.reload()
  await shows(page, "Hello, ")
  const other = await context.newPage()
  await other.goto(`${url}/?chat=one`)
  await shows(other, "Hello, ")
  say("world.", "")
  await Promise.all([shows(page, "Hello, world."), shows(other, "Hello, world.")])
  console.log("ok a reload in the middle of a reply and a second tab show all of it")

  await page.goto(`${url}/?chat=two`)
  await page.click("#speak")
  say("Endless ")
  await shows(page, "Endless ")
  await page.click("#stop")
  await page.locator('main[data-status="ready"]').waitFor()
  const listed = await (await fetch(`${url}/runs?status=cancelled`)).text()
  if (!listed.includes(`"runId":"two.`)) throw new Error("the run was not cancelled")
  console.log("ok stop cancels the run")
}

const program = Effect.gen(function* () {
  const pieces = yield* Queue.unbounded<string>()
  const { address } = Context.get(yield* Layer.build(served(pieces)), HttpServer.HttpServer)
  const url = `http://127.0.0.1:${"port" in address ? address.port : 0}`
  const browser = yield* Effect.acquireRelease(
    Effect.promise(() => chromium.launch({ executablePath, args: ["--no-sandbox"] })),
    (browser) => Effect.promise(() => browser.close())
  )
  const context = yield* Effect.promise(() => browser.newContext())
  yield* Effect.promise(() => converse(context, url, (...said) => void Queue.offerAllUnsafe(pieces, said)))
})

if (existsSync(executablePath)) await Effect.runPromise(Effect.scoped(program))
else console.log(`no browser at ${executablePath}; set CHROMIUM`)
process.exit(0)
