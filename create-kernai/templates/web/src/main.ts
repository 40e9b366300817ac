import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Layer } from "effect"
import { HttpRouter } from "effect/http"
import { createServer } from "node:http"
import { app } from "./app.ts"

const port = Number(process.env["PORT"] ?? 3000)

const server = HttpRouter.serve(app("runs.db"), { disableLogger: true }).pipe(
  Layer.provide(NodeHttpServer.layer(createServer, { port, host: "127.0.0.1" }))
)

NodeRuntime.runMain(Layer.launch(server))
