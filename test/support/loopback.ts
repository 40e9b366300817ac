/** HTTP servers on loopback that tests script themselves. */
import { Effect, Schedule } from "effect"
import type { Scope } from "effect"
import { randomInt } from "node:crypto"
import * as http from "node:http"
import type { AddressInfo } from "node:net"

/** What reached a server. */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

/** Answers a request that has come in whole. */
export type Handle = (request: Seen, response: http.ServerResponse) => void

/** A running server. */
export interface Running {
  readonly port: number
  readonly url: (path?: string) => string
  /** Every request, in order. */
  readonly seen: ReadonlyArray<Seen>
  /** Connections accepted since the start. */
  readonly connections: () => number
  /** Those that are open now. */
  readonly openSockets: () => number
  /** Requests whose connection the client gave up before the answer was complete. */
  readonly abandoned: () => number
  /** Ends it at once, connections too. */
  readonly stop: Effect.Effect<void>
}

/** Somebody's connection may hold a port for a moment that a server had and wants again. */
const untilFree = {
  while: (error: NodeJS.ErrnoException) => error.code === "EADDRINUSE",
  schedule: Schedule.spaced("20 millis"),
  times: 250
}

/** Starts a server for the time of the scope. */
export const serve = (handle: Handle, port = 0): Effect.Effect<Running, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<Running, NodeJS.ErrnoException>((resume) => {
      const seen: Array<Seen> = []
      const count = { connections: 0, closed: 0, abandoned: 0 }
      const server = http.createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk) => chunks.push(chunk))
        request.on("end", () => {
          const { headers, method = "", url = "" } = request
          const one = { method, path: url, headers, body: Buffer.concat(chunks).toString() }
          seen.push(one)
          response.on("close", () => {
            if (!response.writableFinished) count.abandoned++
          })
          handle(one, response)
        })
      })
      server.on("connection", (socket) => {
        count.connections++
        socket.on("close", () => count.closed++)
      })
      server.once("error", (error) => resume(Effect.fail(error)))
      server.listen(port, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        const stop = Effect.callback<void>((resume) => {
          server.close(() => resume(Effect.void))
          server.closeAllConnections()
        })
        resume(
          Effect.succeed({
            port,
            url: (path = "") => `http://127.0.0.1:${port}${path}`,
            seen,
            connections: () => count.connections,
            openSockets: () => count.connections - count.closed,
            abandoned: () => count.abandoned,
            stop
          })
        )
      })
    }).pipe(Effect.retry(untilFree), Effect.orDie),
    (server) => server.stop
  )

/**
 * A server that is gone, and whose port no other gets: the system draws from higher ones for those that name none,
 * so nothing that runs beside the test answers in its place.
 */
export const gone: Effect.Effect<Running> = Effect.suspend(() =>
  Effect.scoped(serve(() => {}, randomInt(20_000, 30_000)))
)
