/**
 * HTTP servers on this computer. Web pages can send requests here, too, by a host name of their own or from their own
 * origin. The headers reveal it, so such requests are rejected before their body is read.
 */

import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Headers from "effect/http/Headers"
import * as HttpEffect from "effect/http/HttpEffect"
import { ServeError } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Redacted from "effect/Redacted"
import * as RequestGuard from "../../kit/requestGuard.ts"
import * as Secrets from "../../kit/secrets.ts"

/**
 * Listens until the scope closes, and leaves neither a port nor an idle connection open. Fails in a browser, whose
 * bundles contain neither `node:http` nor `NodeHttpServer` (the field `browser` of `package.json`).
 */
export const listening = (options: Parameters<typeof NodeHttpServer.make>[1]) =>
  // If interrupted while it starts, the server would listen forever.
  Effect.uninterruptible(
    Effect.suspend(() => {
      const http = globalThis.process?.getBuiltinModule?.("node:http")
      if (http === undefined) return Effect.fail(new ServeError({ cause: "no server can listen in a browser" }))
      const server = http.createServer()
      // A closing server waits for the rest of every request, so connections are closed. Requests with a response are
      // complete by now.
      const letGo = Effect.addFinalizer(() => Effect.sync(() => server.closeAllConnections()))
      return Effect.tap(
        NodeHttpServer.make(() => server, options),
        letGo
      )
    })
  )

interface Admission extends RequestGuard.Names {
  /** The server's own values of the `Host` header in lower case, such as `127.0.0.1:3000`. */
  readonly own: ReadonlyArray<string>
  /** The bearer token. Undefined admits requests without a token, unless they came through a proxy. */
  readonly token: Redacted.Redacted | undefined
}

/**
 * Rejects requests that are not admitted: with status 401 if the token is missing or wrong, 400 for a repeated header or
 * an absolute target, 415 for a foreign charset, otherwise 403. Removes the `Origin` header, which was checked here.
 */
export const admitted = <E, R>(
  app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  admission: Admission
): Effect.Effect<HttpServerResponse.HttpServerResponse, E, R | HttpServerRequest.HttpServerRequest> =>
  Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const refused = yield* refusal(request, admission)
    if (refused === undefined) {
      const judged = request.modify({ headers: Headers.remove(request.headers, "origin") })
      return yield* Effect.provideService(app, HttpServerRequest.HttpServerRequest, judged)
    }
    const { reason, status } = refused
    const headers = { connection: "close", ...(status === 401 ? { "www-authenticate": "Bearer" } : {}) }
    return HttpServerResponse.text(reason, { status, headers })
  })

interface Refusal {
  readonly status: RequestGuard.Refusal["status"] | 401
  readonly reason: string
}

const refusal = (
  request: HttpServerRequest.HttpServerRequest,
  { hosts, origins, own, token }: Admission
): Effect.Effect<Refusal | undefined> => {
  const refused =
    RequestGuard.refusal(request, { hosts, origins, own, hostsOption: "'hosts' (--allow-host)" }) ??
    RequestGuard.unfitBody(request)
  if (refused !== undefined) return Effect.succeed(refused)
  if (token === undefined) return Effect.succeed(RequestGuard.isProxied(request) ? proxied : undefined)
  const expected = Redacted.make(`Bearer ${Redacted.value(token)}`)
  return Effect.map(Secrets.isSame(request.headers["authorization"] ?? "", expected), (isSame) =>
    isSame ? undefined : noToken
  )
}

const proxied: Refusal = {
  status: 403,
  reason: "the request came through a proxy, and the server asks for no token; set a token"
}

const noToken: Refusal = {
  status: 401,
  reason: "the token is missing or wrong; send 'Authorization: Bearer TOKEN'"
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
