/**
 * A server that keeps media in a SQLite file, as a process of its own: `uploadServer.ts FOLDER`. Prints its port, and at
 * the end of its input the most memory that it had beyond what it had at first, in MiB: on the heap and in buffers.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Console, Context, Effect, Layer, Option, Redacted } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import { Agent, Kernel, ProtocolRegistry, SkillRegistry } from "kernai"
import { Access, HttpKernel } from "kernai/http"
import { SqlMediaStore, SqlRunStore } from "kernai/sql"
import { MockProvider } from "kernai/testing"

const [folder = ""] = process.argv.slice(2)

const KernelLive = Kernel.layer.pipe(
  Layer.provide([MockProvider.layer("<final>Read.</final>"), SkillRegistry.layer(), ProtocolRegistry.layer()]),
  Layer.provideMerge([SqlRunStore.layerSqlite(`${folder}/runs.db`), SqlMediaStore.layerSqlite(`${folder}/media.db`)])
)

const App = HttpKernel.layer({ agents: [Agent.make({ name: "clerk", instructions: "", model: "scripted" })] }).pipe(
  Layer.provide([KernelLive, Access.bearer((token) => Effect.succeed(Option.some({ id: Redacted.value(token) })))])
)

const Server = HttpRouter.serve(App, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1" }))
)

const used = () => {
  const { arrayBuffers, heapUsed } = process.memoryUsage()
  return { heap: heapUsed / 2 ** 20, buffers: arrayBuffers / 2 ** 20 }
}

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const { address } = Context.get(yield* Layer.build(Server), HttpServer.HttpServer)
      const first = used()
      const most = { heap: 0, buffers: 0 }
      const timer = setInterval(() => {
        const { buffers, heap } = used()
        most.heap = Math.max(most.heap, heap - first.heap)
        most.buffers = Math.max(most.buffers, buffers - first.buffers)
      }, 5)
      yield* Console.log("port" in address ? address.port : 0)
      yield* Effect.callback<void>((resume) => {
        process.stdin.resume().once("end", () => resume(Effect.void))
      })
      clearInterval(timer)
      yield* Console.log(JSON.stringify(most))
    })
  )
)
