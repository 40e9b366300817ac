/** The server of a studio that a browser visits, and its address. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Context, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import { Studio } from "../src/studio/index.ts"
import { createServer } from "node:http"

/** Serves a studio on a free port, without logs. */
export const serve = <A, E, R>(studio: Layer.Layer<A, E, R>) =>
  HttpRouter.serve(studio, {
    disableLogger: true,
    disableListenLog: true,
    routerConfig: { maxParamLength: 1_024 }
  }).pipe(
    Layer.provideMerge(NodeHttpServer.layer(createServer, { port: 0, host: "127.0.0.1", gracefulShutdownTimeout: 100 }))
  )

/** Returns the address of a studio with its token. */
export const urlIn = (context: Context.Context<HttpServer.HttpServer | Studio.Studio>): string => {
  const { address } = Context.get(context, HttpServer.HttpServer)
  return Studio.urlOf(Context.get(context, Studio.Studio), `http://127.0.0.1:${"port" in address ? address.port : 0}`)
}
