/**
 * A server whose runs never end, as a process of its own. Prints its port, and for each line of its input the longest
 * turn of its event loop since the line before, in milliseconds of its processor. The end of its input closes it.
 */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Console, Context, Effect, Layer, Stream } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { createServer } from "node:http"
import { createInterface } from "node:readline"
import { Agent, Kernel, MediaStore, ProtocolRegistry, Provider, RunStore, SkillRegistry } from "kernai"
import { HttpKernel } from "kernai/http"

const model: Provider.ProviderShape = { name: "endless", stream: () => Stream.never }

const KernelLive = Kernel.layer.pipe(
  Layer.provide([Layer.succeed(Provider.Provider, model), SkillRegistry.layer(), ProtocolRegistry.layer()]),
  Layer.provideMerge([RunStore.layerMemory, MediaStore.layerMemory])
)

const agents = [Agent.make({ name: "clerk", instructions: "", model: "endless" })]

const App = HttpKernel.layer({ agents, limits: { followers: 10_000 } }).pipe(Layer.provide(KernelLive))

const Server = HttpRouter.serve(App, { disableLogger: true, disableListenLog: true }).pipe(
  HttpKernel.drainStreams,
  Layer.provideMerge(
    NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: "5 seconds" })
  )
)

let [longest, last] = [0, 0]
const watch = () => {
  const { system, user } = process.threadCpuUsage()
  longest = Math.max(longest, user + system - last)
  last = user + system
  setImmediate(watch)
}

await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const { address } = Context.get(yield* Layer.build(Server), HttpServer.HttpServer)
      watch()
      yield* Console.log("port" in address ? address.port : 0)
      yield* Effect.callback<void>((resume) => {
        const lines = createInterface(process.stdin)
        lines.on("line", () => {
          console.log(longest / 1_000)
          longest = 0
        })
        lines.once("close", () => resume(Effect.void))
      })
    })
  )
)
process.exit()
