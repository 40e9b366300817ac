/**
 * The studio over long runs, and beside it a page that has every row in its document.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Effect, Layer, ManagedRuntime, Schema, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { readFileSync } from "node:fs"
import { createServer } from "node:http"
import * as Agent from "../dist/Agent.js"
import * as Kernel from "../dist/Kernel.js"
import * as MediaStore from "../dist/MediaStore.js"
import * as ProtocolRegistry from "../dist/ProtocolRegistry.js"
import * as Provider from "../dist/Provider.js"
import * as RunStore from "../dist/RunStore.js"
import * as Skill from "../dist/Skill.js"
import * as SkillRegistry from "../dist/SkillRegistry.js"
import * as StreamPart from "../dist/StreamPart.js"
import * as Studio from "../dist/studio/Studio.js"

/** A studio on this machine. */
export interface Site {
  /** The address with the token, to open once. */
  readonly entry: string
  /** The address of the page. */
  readonly origin: string
  /** The page with every row of a run. */
  readonly allRows: (runId: string) => string
  readonly close: () => Promise<void>
}

/** Stored runs by their events: a turn with one call has ten. */
export const runs = { short: "events-10k", long: "events-100k" } as const
const turns = { [runs.short]: 1_000, [runs.long]: 10_000 }

const look = Skill.make("look", {
  description: "Looks at a row",
  effects: "read",
  input: Schema.Struct({ row: Schema.Finite }),
  execute: ({ row }) =>
    row % 50 === 7
      ? Effect.fail("this row is closed")
      : Effect.succeed(`row ${row} has 14 free seats, 3 of them at a window; the price is ${100 + (row % 40)}`)
})

/** A model that looks at one row in each turn. */
const reader = (count: number): Provider.ProviderShape => {
  let row = 0
  const reply = () =>
    ++row > count
      ? `<block type="final">Row ${row - 1} is the best.</block>`
      : `Let me look at row ${row}.\n<block type="command" name="look">{"row":${row}}</block>`
  return { name: "scripted", stream: () => Stream.make(StreamPart.text(reply()), StreamPart.finish()) }
}

const agent = Agent.make({
  name: "clerk",
  instructions: "You look for a seat.",
  model: "scripted",
  skills: "all",
  maxSteps: 20_000
})

const KernelLive = Kernel.layerNoProvider.pipe(
  Layer.provide([SkillRegistry.layer(look), ProtocolRegistry.layer()]),
  Layer.provideMerge([RunStore.layerMemory, MediaStore.layerMemory])
)

const server = HttpRouter.serve(Studio.layer({ agents: [], readOnly: true }), {
  disableLogger: true,
  disableListenLog: true
}).pipe(
  Layer.provideMerge(KernelLive),
  Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: 100 }))
)

/** Stores the runs and serves them. */
export const open = async (): Promise<Site> => {
  const runtime = ManagedRuntime.make(server)
  const context = await runtime.context()
  for (const runId of Object.values(runs)) {
    await runtime.runPromise(
      Kernel.run(agent, "Find a seat, please.", { runId, provider: reader(turns[runId]), maxSteps: 20_000 })
    )
  }
  const { address } = Context.get(context, HttpServer.HttpServer)
  const origin = `http://127.0.0.1:${"port" in address ? address.port : 0}`
  const store = Context.get(context, RunStore.RunStore)
  const recordsOf = (runId: string) => runtime.runPromise(Stream.runCollect(store.read(runId)))
  const peer = await servePeer(recordsOf)
  return {
    entry: Studio.urlOf(Context.get(context, Studio.Studio), origin),
    origin,
    allRows: (runId) => `${peer.origin}/${runId}`,
    close: async () => {
      peer.close()
      await runtime.dispose()
    }
  }
}

// ---------------------------------------------------------------- the page beside

const style = readFileSync(new URL("../src/studio/assets/page.css", import.meta.url), "utf8")

/** What a page would do that draws all events: the same records, the same columns, the same style. */
const allRowsPage = `<!doctype html><meta charset="utf-8"><style>${style}</style>
<div class="columns" style="height:600px"><section class="body"><div class="rows" id="rows"></div></section></div>
<script type="module">
const records = await (await fetch(location.pathname + "/records")).json()
const rows = document.getElementById("rows")
for (const record of records) for (const event of record.events) {
  const row = document.createElement("div")
  row.className = "virtual"
  const line = row.appendChild(document.createElement("span"))
  line.className = "event"
  for (const text of [record.revision, event.type, JSON.stringify(event).slice(0, 80), event.at]) {
    line.appendChild(document.createElement("span")).textContent = text
  }
  rows.append(row)
}
</script>`

const servePeer = (recordsOf: (runId: string) => Promise<Iterable<unknown>>) =>
  new Promise<{ readonly origin: string; readonly close: () => void }>((resolve) => {
    const listening = createServer(async ({ url = "/" }, response) => {
      const [, runId = "", part] = url.split("/")
      if (part === "records") {
        response.setHeader("content-type", "application/json").end(JSON.stringify([...(await recordsOf(runId))]))
      } else response.setHeader("content-type", "text/html").end(allRowsPage)
    })
    listening.listen(0, "127.0.0.1", () => {
      const address = listening.address()
      const port = typeof address === "object" && address !== null ? address.port : 0
      const close = () => {
        listening.closeAllConnections()
        listening.close()
      }
      resolve({ origin: `http://127.0.0.1:${port}`, close })
    })
  })
