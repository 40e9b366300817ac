/**
 * The page a browser comes back to after a sign-in, on loopback only.
 *
 * It answers one address on one port, to requests that name exactly that host
 * and carry the state of this sign-in; anything else is refused and changes
 * nothing (S-13).
 */

import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { ServeError } from "effect/http/HttpServerError"
import type * as Scope from "effect/Scope"
import { listening } from "./listening.ts"

/** A page that waits. */
export interface Loopback {
  readonly redirectUri: string
  /** What the authorization server sent along. */
  readonly answer: Effect.Effect<URLSearchParams>
}

/** Opens the page for the time of the scope. Port 0 takes any free one. */
export const listen = Effect.fnUntraced(function* (
  port: number,
  state: string
): Effect.fn.Return<Loopback, ServeError, Scope.Scope> {
  const server = yield* listening({
    host: "127.0.0.1",
    port,
    gracefulShutdownTimeout: "100 millis"
  })
  const host = `127.0.0.1:${"port" in server.address ? server.address.port : port}`
  const answer = yield* Deferred.make<URLSearchParams>()
  yield* server.serve(
    Effect.gen(function* () {
      const request = yield* HttpServerRequest
      if (request.headers["host"] !== host) return page(403, "This address is not for you.")
      const url = URL.parse(request.url, `http://${host}`)
      if (request.method !== "GET" || url?.pathname !== path) return page(404, "There is nothing here.")
      if (url.searchParams.get("state") !== state) return page(400, "This sign-in was not asked for.")
      yield* Deferred.succeed(answer, url.searchParams)
      return page(200, "You can close this window and go back.")
    })
  )
  return { redirectUri: `http://${host}${path}`, answer: Deferred.await(answer) }
})

const path = "/callback"

const page = (status: number, text: string) =>
  HttpServerResponse.text(`${text}\n`, {
    status,
    headers: { connection: "close", "cache-control": "no-store", "content-security-policy": "default-src 'none'" }
  })
