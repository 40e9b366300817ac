import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Layer } from "effect"
import { HttpRouter } from "effect/http"
import { createServer } from "node:http"
import { app, kernel } from "./app.ts"

const port = Number(process.env["PORT"] ?? 3000)

// The kernel is provided last and so built first: the port opens once the store is open.
const server = HttpRouter.serve(app, { disableLogger: true }).pipe(
  Layer.provide(NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" })),
  Layer.provide(kernel("runs.db"))
)

NodeRuntime.runMain(Layer.launch(server))
