/**
 * HTTP servers on this computer. Web pages can send requests here, too, by a host name of their own or from their own
 * origin. The headers reveal it, so such requests are rejected before their body is read.
 */

import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpEffect from "effect/http/HttpEffect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { timingSafeEqual } from "node:crypto"
import { createServer } from "node:http"

/** Listens until the scope closes, and leaves neither a port nor an idle connection open. */
export const listening = (options: Parameters<typeof NodeHttpServer.make>[1]) =>
  // If interrupted while it starts, the server would listen forever.
  Effect.uninterruptible(
    Effect.suspend(() => {
      const server = createServer()
      // A closing server waits for the rest of every request, so connections are closed. Requests with a response are
      // complete by now.
      const letGo = Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
      return Effect.tap(
        NodeHttpServer.make(() => server, options),
        letGo
      )
    })
  )

interface Admission {
  /** Values of the `Host` header in lower case, such as `127.0.0.1:3000`. */
  readonly hosts: ReadonlySet<string>
  /** Values of the `Origin` header in lower case. A request without the header does not come from a web page. */
  readonly origins: ReadonlySet<string>
  /** The bearer token. Undefined admits requests without a token. */
  readonly token: string | undefined
}

/**
 * Rejects requests that are not admitted: with status 401 if the token is missing or wrong, 400 for a repeated `Host`
 * header, 415 for a foreign charset, otherwise 403. Removes the `Origin` header, which was checked here.
 */
export const admitted = <E, R>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  admission: Admission
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    const refused = refusal(request, admission)
    if (refused === undefined) {
      const judged = request.modify({ headers: Headers.remove(request.headers, "origin") })
      return Effect.provideService(app, HttpServerRequest.HttpServerRequest, judged)
    }
    const { reason, status } = refused
    const headers = { connection: "close", ...(status === 401 ? { "www-authenticate": "Bearer" } : {}) }
    return Effect.succeed(HttpServerResponse.text(reason, { status, headers }))
  })

interface Refusal {
  readonly status: 400 | 401 | 403 | 415
  readonly reason: string
}

const refusal = (
  request: HttpServerRequest.HttpServerRequest,
  { hosts, origins, token }: Admission
): Refusal | undefined => {
  const { authorization = "", "content-type": contentType = "", host, origin } = request.headers
  if (hostsIn(request) > 1) return { status: 400, reason: "the Host header is repeated" }
  if (host === undefined || !hosts.has(host.toLowerCase())) {
    return forbidden("the Host header does not name this server; 'hosts' (--allow-host) adds names")
  }
  if (origin !== undefined && !origins.has(origin.toLowerCase())) {
    return forbidden("pages of this origin are not admitted; 'origins' adds origins")
  }
  if (request.method === "OPTIONS" && origin === undefined) {
    return forbidden("a preflight request needs an Origin header")
  }
  // A foreign page may send these types without a CORS preflight.
  if (/^\s*(?:text\/plain|application\/x-www-form-urlencoded|multipart\/form-data)/i.test(contentType)) {
    return forbidden("the body must be application/json")
  }
  const charset = /;\s*charset\s*=\s*"?([^\s";,]*)/i.exec(contentType)?.[1]
  if (charset !== undefined && !/^utf-?8$/i.test(charset)) return { status: 415, reason: "the body must be UTF-8" }
  return token === undefined || isSame(authorization, `Bearer ${token}`) ? undefined : noToken
}

const forbidden = (reason: string): Refusal => ({ status: 403, reason })

const noToken: Refusal = {
  status: 401,
  reason: "the token is missing or wrong; send 'Authorization: Bearer TOKEN'"
}

/** Returns the number of `Host` headers. Node keeps the first of several, and a proxy may have used another. */
const hostsIn = (request: HttpServerRequest.HttpServerRequest): number =>
  NodeHttpServerRequest.toIncomingMessage(request).rawHeaders.filter(
    (name, index) => index % 2 === 0 && name.toLowerCase() === "host"
  ).length

const isSame = (given: string, expected: string): boolean => {
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/**
 * Ends sessions beyond a limit: the least recently used first, and none in use.
 *
 * effect's server keeps a session until its client ends it, which most clients never do. A client that returns to an
 * ended session starts a new one. `url` is the address at which sessions are ended.
 */
export const bounded = <E, R>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  url: string,
  limit: number
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> => {
  /** The number of requests in progress in each session, in the order of last use. */
  const sessions = new Map<string, number>()
  const use = (id: string, change: number) =>
    Effect.sync(() => {
      const requests = sessions.get(id)
      sessions.delete(id)
      if (requests !== undefined) sessions.set(id, requests + change)
    })
  // The id of a new session is known when the response is sent.
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
 * Opens the page to which a browser returns after a sign-in: one address on loopback, for requests with the state of
 * this sign-in. `answer` waits for the parameters of the authorization server. Port 0 means any free port.
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
