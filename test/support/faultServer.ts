/** A model server on loopback that can do everything wrong (F4). */
import { Effect } from "effect"
import type { Scope } from "effect"
import * as http from "node:http"
import type { AddressInfo } from "node:net"

export interface Asked {
  readonly method: string
  readonly path: string
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
}

export interface FaultServer {
  readonly url: string
  /** Every request, in order. */
  readonly asked: ReadonlyArray<Asked>
  /** Connections accepted since the start. */
  readonly connections: () => number
  /** Requests whose connection the client gave up before the answer was complete. */
  readonly abandoned: () => number
}

export type Answer = (response: http.ServerResponse, asked: Asked, call: number) => void

/** Starts a server; it is gone, sockets included, when the scope closes. */
export const faultServer = (answer: Answer): Effect.Effect<FaultServer, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.callback<FaultServer & { readonly close: () => void }>((resume) => {
      const asked: Array<Asked> = []
      let connections = 0
      let abandoned = 0
      const server = http.createServer((request, response) => {
        const chunks: Array<Buffer> = []
        request.on("data", (chunk: Buffer) => chunks.push(chunk))
        request.on("end", () => {
          const one: Asked = {
            method: request.method ?? "",
            path: request.url ?? "",
            headers: request.headers,
            body: Buffer.concat(chunks).toString("utf8")
          }
          asked.push(one)
          response.on("close", () => {
            if (!response.writableFinished) abandoned += 1
          })
          answer(response, one, asked.length - 1)
        })
      })
      server.on("connection", () => {
        connections += 1
      })
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo
        resume(
          Effect.succeed({
            url: `http://127.0.0.1:${port}`,
            asked,
            connections: () => connections,
            abandoned: () => abandoned,
            close: () => {
              server.closeAllConnections()
              server.close()
            }
          })
        )
      })
    }),
    (server) => Effect.sync(server.close)
  )

/** One event of a Chat Completions stream. */
export const chunk = (delta: object, more: object = {}): string =>
  `data: ${JSON.stringify({ id: "c1", model: "m", choices: [{ index: 0, delta, finish_reason: null }], ...more })}\n\n`

/** The last events of a Chat Completions stream. */
export const ending =
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: "stop" }] })}\n\n` + "data: [DONE]\n\n"
