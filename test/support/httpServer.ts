/**
 * A server of agents as a process of its own, on a SQLite file: `httpServer.ts FILE PORT [rest of the reply]`.
 *
 * Without the rest, its model stops in the middle of a reply and says no more.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Console, Context, Effect, Layer, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import { Agent, Kernel, MediaStore, ProtocolRegistry, Provider, SkillRegistry, StreamPart } from "kernai"
import { AiSdkUi, HttpKernel } from "kernai/http"
import { SqlRunStore } from "kernai/sql"

const [file = "", port = "0", rest] = process.argv.slice(2)

const said = (delta: string): StreamPart.StreamPart => ({ type: "text-delta", id: "0", delta })

const model: Provider.ProviderShape = {
  name: "spoken",
  stream: () =>
    Stream.concat(
      Stream.make<ReadonlyArray<StreamPart.StreamPart>>({ type: "text-start", id: "0" }, said("Hello, ")),
      rest === undefined
        ? Stream.never
        : Stream.make(said(rest), { type: "text-end", id: "0" } as const, StreamPart.finish())
    )
}

const agent = Agent.make({ name: "clerk", instructions: "", model: "spoken" })

const KernelLive = Kernel.layer.pipe(
  Layer.provide([Layer.succeed(Provider.Provider, model), SkillRegistry.layer(), ProtocolRegistry.layer()]),
  Layer.provideMerge([SqlRunStore.layerSqlite(file), MediaStore.layerMemory])
)

const App = AiSdkUi.layer().pipe(
  // A lease is short here, so that another process soon takes up what this one leaves.
  Layer.provideMerge(HttpKernel.layer({ agents: [agent], worker: { lease: "1 second", pollInterval: "100 millis" } })),
  Layer.provide(KernelLive)
)

const Server = HttpRouter.serve(App, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provideMerge(NodeHttpServer.layer(createServer, { port: Number(port), host: "127.0.0.1" }))
)

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const { address } = Context.get(yield* Layer.build(Server), HttpServer.HttpServer)
      yield* Console.log(`listening on ${"port" in address ? address.port : 0}`)
      return yield* Effect.never
    })
  )
)
