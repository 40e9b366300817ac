/**
 * The HTTP door beside a route written by hand: CPU time of a streamed token, time to the first byte of a reply, and the
 * memory of a follower that waits.
 *
 * Both routes are of one server in this process and send the same events as server-sent events. The one by hand runs the
 * agent in its handler, as an application would that needs no second page, no restart and no callers. The client, whose
 * time is part of both sides, is `fetch`.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer, ManagedRuntime, Stream } from "effect"
import { HttpRouter, HttpServer, HttpServerResponse } from "effect/http"
import { createServer } from "node:http"
import * as Agent from "../dist/Agent.js"
import * as HttpKernel from "../dist/http/HttpKernel.js"
import * as Kernel from "../dist/Kernel.js"
import * as MediaStore from "../dist/MediaStore.js"
import * as ProtocolRegistry from "../dist/ProtocolRegistry.js"
import * as Provider from "../dist/Provider.js"
import * as RunEvent from "../dist/RunEvent.js"
import * as RunStore from "../dist/RunStore.js"
import * as SkillRegistry from "../dist/SkillRegistry.js"
import * as StreamPart from "../dist/StreamPart.js"
import { compare, cpu, heapUsed, ratioRow, row, type Row, sleep } from "./support.ts"

const pieces = 4_000
const followers = 1_000

const agent = Agent.make({ name: "bench", instructions: "", model: "paced", dialect: "tools" })

/** Opens the reply under way: a follower that comes later would receive its beginning in one piece. */
let open = () => {}

/** A reply of many pieces, each of which arrives alone: at once, when it is opened, or never. */
const model: Provider.ProviderShape = {
  name: "paced",
  stream: ({ messages }) => {
    const asked = JSON.stringify(messages)
    const gate = asked.includes("gated") ? new Promise<void>((resolve) => (open = resolve)) : Promise.resolve()
    if (asked.includes("wait")) return Stream.never
    return Stream.range(1, pieces).pipe(
      Stream.mapEffect((piece) => Effect.as(Effect.yieldNow, StreamPart.text(`word ${piece} `))),
      Stream.concat(Stream.make(StreamPart.finish())),
      Stream.onStart(Effect.promise(() => gate))
    )
  }
}

const KernelLive = Kernel.layer.pipe(
  Layer.provide([Layer.succeed(Provider.Provider, model), SkillRegistry.layer(), ProtocolRegistry.layer()]),
  Layer.provideMerge([RunStore.layerMemory, MediaStore.layerMemory])
)

/** What an application writes that streams a run from its handler. */
const byHand = HttpRouter.use((router) =>
  Effect.flatMap(Kernel.Kernel, (kernel) =>
    router.add("POST", "/by-hand", ({ text }) =>
      Effect.map(text, (input) =>
        HttpServerResponse.stream(
          kernel.stream(agent, input).pipe(
            Stream.map((event) => `data: ${JSON.stringify(RunEvent.toJson(event))}\n\n`),
            Stream.encodeText
          ),
          { contentType: "text/event-stream" }
        )
      )
    )
  )
)

const app = Layer.merge(byHand, HttpKernel.layer({ agents: [agent], limits: { followers: followers + 10 } })).pipe(
  Layer.provide(KernelLive)
)

const server = HttpRouter.serve(app, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
)

/** Reads a stream to its end, or to a word. The reply is opened when its first event is here. */
const read = async (response: Response, to = `"run_completed"`): Promise<void> => {
  const decoder = new TextDecoder()
  let end = ""
  for await (const chunk of response.body ?? []) {
    end = (end + decoder.decode(chunk)).slice(-100_000)
    if (end.includes(`"model_started"`)) open()
    if (end.includes(to)) return
  }
  throw new Error("the stream ended too early")
}

const wall = async (body: () => Promise<unknown>): Promise<number> => {
  const from = performance.now()
  await body()
  return performance.now() - from
}

/** The bytes of heap of one follower that waits, without its socket: the handler is called directly. */
const waiting = async (): Promise<number> => {
  const { dispose, handler } = HttpKernel.toWebHandler(app)
  const body = JSON.stringify({ input: "wait" })
  const headers = { "content-type": "application/json" }
  const started = await handler(new Request("http://localhost/runs", { method: "POST", headers, body }))
  const runId = /"runId":"([^"]+)"/.exec(await started.text())?.[1] ?? ""
  const follow = async () => {
    const response = await handler(new Request(`http://localhost/runs/${runId}/events`))
    const reader = response.body?.getReader()
    await reader?.read()
    return reader
  }
  await follow()
  await sleep(200)
  const before = heapUsed()
  const readers = await Promise.all(Array.from({ length: followers }, follow))
  // Each of them waits for an event.
  for (const reader of readers) void reader?.read().catch(() => {})
  await sleep(500)
  const bytes = (heapUsed() - before) / followers
  await dispose()
  return bytes
}

export default async (): Promise<ReadonlyArray<Row>> => {
  const runtime = ManagedRuntime.make(server)
  const context = await runtime.context()
  const { address } = Context.get(context, HttpServer.HttpServer)
  const url = `http://127.0.0.1:${"port" in address ? address.port : 0}`
  const hand = (input: string) => fetch(`${url}/by-hand`, { method: "POST", body: input })
  const door = (input: string) => {
    const headers = { "content-type": "application/json" }
    return fetch(`${url}/runs/stream`, { method: "POST", headers, body: JSON.stringify({ input }) })
  }
  const rounds = { warm: 2, counted: 9 }
  const tokens = await compare(
    () => cpu(async () => read(await door("gated"))),
    () => cpu(async () => read(await hand("gated"))),
    rounds
  )
  const until = (word: string) =>
    compare(
      () => wall(async () => read(await door("go"), word)),
      () => wall(async () => read(await hand("go"), word)),
      { warm: 5, counted: 31 }
    )
  const byte = await until("data: ")
  const token = await until(`"text_chunk"`)
  await runtime.dispose()
  const bytes = await waiting()
  return [
    ratioRow("http.token", `${pieces} tokens through the door, against a route by hand, CPU`, tokens, "µs", 1.5),
    ratioRow("http.byte", "the first byte through the door, against a route by hand", byte, "ms", 1.2),
    ratioRow("http.first", "the first token, from a worker against the handler by hand", token, "ms", null),
    row("http.follower", `KB of heap of one of ${followers} followers that wait`, bytes / 1024, 20)
  ]
}
