/**
 * HTTP servers on this computer. Web pages can send requests here too, by a host name of their own or from their own
 * origin: the headers show it, so such requests are refused before their body is read.
 */

import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { timingSafeEqual } from "node:crypto"
import { createServer } from "node:http"

/** Listens until the scope closes, and leaves neither a port nor an idle connection open. */
export const listening = (options: Parameters<typeof NodeHttpServer.make>[1]) =>
  // Interrupted as it begins to listen, it would do so for ever.
  Effect.uninterruptible(
    Effect.suspend(() => {
      const server = createServer()
      // A server that closes waits for the rest of every request. Those that were answered are gone by now.
      const letGo = Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
      return Effect.tap(
        NodeHttpServer.make(() => server, options),
        letGo
      )
    })
  )

export interface Admission {
  /** Values of the `Host` header in lower case, such as `127.0.0.1:3000`. */
  readonly hosts: ReadonlySet<string>
  /** Values of the `Origin` header. A request without one comes from no web page. */
  readonly origins: ReadonlySet<string>
  /** The bearer token; undefined admits requests without one. */
  readonly token: string | undefined
}

/** Refuses what is not admitted: with status 401 when the token is missing or wrong, else 403. */
export const admitted = <E, R>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  admission: Admission
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    const reason = refusal(request, admission)
    if (reason === undefined) return app
    const denied = reason === noToken
    const headers = { connection: "close", ...(denied ? { "www-authenticate": "Bearer" } : {}) }
    return Effect.succeed(HttpServerResponse.text(reason, { status: denied ? 401 : 403, headers }))
  })

const refusal = (
  { headers, method }: HttpServerRequest.HttpServerRequest,
  { hosts, origins, token }: Admission
): string | undefined => {
  const { authorization = "", host, origin } = headers
  if (host === undefined || !hosts.has(host.toLowerCase())) {
    return "the Host header does not name this server; 'hosts' (--allow-host) adds names"
  }
  if (origin !== undefined && !origins.has(origin))
    return "pages of this origin are not admitted; 'origins' adds origins"
  if (method === "OPTIONS" && origin === undefined) return "a preflight request needs an Origin header"
  // A page may send these types anywhere without asking beforehand.
  if (
    /^\s*(?:text\/plain|application\/x-www-form-urlencoded|multipart\/form-data)/i.test(headers["content-type"] ?? "")
  ) {
    return "the body has to be application/json"
  }
  return token === undefined || isSame(authorization, `Bearer ${token}`) ? undefined : noToken
}

const noToken = "the token is missing or wrong; send 'Authorization: Bearer TOKEN'"

const isSame = (given: string, expected: string): boolean => {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/**
 * Ends sessions beyond a limit: the one that was used longest ago first, and none in use.
 *
 * effect's server keeps a session until its client ends it, and most clients leave without a word. A client that
 * returns to an ended session begins another one. `url` is where sessions are ended.
 */
export const bounded = <E, R>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  url: string,
  limit: number
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> => {
  /** The number of requests under way in each session, in the order of last use. */
  const sessions = new Map<string, number>()
  const use = (id: string, change: number) =>
    Effect.sync(() => {
      const requests = sessions.get(id)
      sessions.delete(id)
      if (requests !== undefined) sessions.set(id, requests + change)
    })
  // The id of a new session is known as the answer leaves.
  const note = HttpEffect.appendPreResponseHandler((_, response) => {
    const id = response.headers[header]
    if (id !== undefined) sessions.set(id, sessions.get(id) ?? 0)
    return Effect.succeed(response)
  })
  const endOldest = Effect.suspend(() => {
    const oldest = sessions.size > limit ? [...sessions].find(([, requests]) => requests === 0)?.[0] : undefined
    if (oldest === undefined) return Effect.void
    sessions.delete(oldest)
    const request = HttpServerRequest.fromWeb(new Request(url, { method: "DELETE", headers: { [header]: oldest } }))
    return Effect.ignoreCause(Effect.provideService(app, HttpServerRequest.HttpServerRequest, request))
  })
  const answer = Effect.tap(app, note)
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers: { [header]: id } }) =>
    id === undefined
      ? Effect.andThen(endOldest, answer)
      : Effect.acquireUseRelease(
          use(id, 1),
          () => answer,
          () => use(id, -1)
        )
  )
}

const header = "mcp-session-id"

/**
 * Opens the page that a browser returns to after a sign-in: one address on loopback, for requests with the state of this
 * sign-in. `answer` waits for the parameters of the authorization server. Port 0 is any free port.
 */
export const openRedirectPage = Effect.fnUntraced(function* (port: number, state: string) {
  const server = yield* listening({ host: "127.0.0.1", port, gracefulShutdownTimeout: "100 millis" })
  const host = `127.0.0.1:${"port" in server.address ? server.address.port : port}`
  const answer = yield* Deferred.make<URLSearchParams>()
  yield* server.serve(
    Effect.gen(function* () {
      const request = yield* HttpServerRequest.HttpServerRequest
      if (request.headers["host"] !== host) return page(403, "This host is not served here.")
      const url = URL.parse(request.url, `http://${host}`)
      if (request.method !== "GET" || url?.pathname !== path) return page(404, "Not found.")
      if (url.searchParams.get("state") !== state) return page(400, "This sign-in was not requested.")
      yield* Deferred.succeed(answer, url.searchParams)
      return page(200, "You can close this window and return to the program.")
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
