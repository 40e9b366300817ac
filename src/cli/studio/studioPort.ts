/** A server on this machine, at the usual port of the studio or the next free one. */

import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpServer from "effect/http/HttpServer"
import * as Layer from "effect/Layer"
import { createServer } from "node:http"
import { errorCode } from "../../kit/failedRequest.ts"
import { usage } from "../exit.ts"
import { Screen } from "../screen.ts"

/** The port without a flag, so that an address stays the same over starts. */
export const usualPort = 4700

const host = "127.0.0.1"

// Requests are interrupted when the server ends, since a page that follows a run has one that does not end.
const listen = (port: number) =>
  Layer.build(NodeHttpServer.layer(createServer, { port, host, disablePreemptiveShutdown: true }))

/** Listens on a port, or on the usual one or the first free one of the 20 above. Says so if it is not the usual one. */
export const listening = Effect.fnUntraced(function* (port: number | undefined) {
  const screen = yield* Screen
  const refused = (at: number) => (error: unknown) =>
    usage(`cannot listen on port ${at} (${errorCode(error) ?? "refused"})`)
  if (port !== undefined) return yield* Effect.mapError(listen(port), refused(port))
  const server = yield* firstFree(usualPort).pipe(Effect.mapError(refused(usualPort)))
  const { address } = Context.get(server, HttpServer.HttpServer)
  if ("port" in address && address.port !== usualPort) {
    screen.progress(`port ${usualPort} is taken: this is port ${address.port}\n`)
  }
  return server
})

const firstFree = (port: number): ReturnType<typeof listen> =>
  Effect.catch(listen(port), (error) =>
    port < usualPort + 20 && errorCode(error) === "EADDRINUSE" ? firstFree(port + 1) : Effect.fail(error)
  )

/** Returns the origin of a server. */
export const originOf = (server: Context.Context<HttpServer.HttpServer>): string => {
  const { address } = Context.get(server, HttpServer.HttpServer)
  return `http://${host}:${"port" in address ? address.port : ""}`
}
