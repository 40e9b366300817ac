/**
 * The routes of the page itself: its document, its files, and the exchange of the token for a cookie.
 */

import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { toResponse } from "effect/http/HttpServerRespondable"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as Access from "../../http/Access.ts"
import { type HttpProblem, Unauthorized } from "../../http/HttpProblem.ts"
import { text } from "./answerJson.ts"
import * as PageFiles from "./pageFiles.ts"
import type { Secrets } from "./studioAccess.ts"

/** Adds the routes of the page below a path. */
export const layer = (
  path: string,
  secrets: Secrets,
  names: Access.Options
): Layer.Layer<never, never, HttpRouter.HttpRouter> =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const router = yield* HttpRouter.HttpRouter
      const base = path === "/" ? "/" : `${path}/`
      const document = HttpServerResponse.html(PageFiles.documentOf(base))
      const add = (method: "GET" | "POST", route: string, respond: Respond) =>
        router.add(method, route as `/${string}`, admitted(names, respond))
      yield* add("GET", path, Effect.succeed(document))
      yield* add("GET", `${base}page.js`, file("page.js", "text/javascript; charset=utf-8"))
      yield* add("GET", `${base}charts.js`, file("charts.js", "text/javascript; charset=utf-8"))
      yield* add("GET", `${base}page.css`, file("page.css", "text/css; charset=utf-8"))
      yield* add("GET", `${base}icon.svg`, file("icon.svg", "image/svg+xml"))
      yield* add("POST", `${base}session`, session(base, secrets))
    })
  )

type Respond = Effect.Effect<HttpServerResponse.HttpServerResponse, HttpProblem, HttpServerRequest.HttpServerRequest>

/** Answers with a file of the page. */
export const file = (name: PageFiles.PageFile, contentType: string): Respond =>
  Effect.suspend(() => text(PageFiles.read(name), { contentType }))

/** Checks host and origin first, and adds the security headers of a page. */
export const admitted = (names: Access.Options, respond: Respond, policy = PageFiles.policy) =>
  Effect.andThen(Access.rejectForeign(names), respond).pipe(
    Effect.catch(toResponse),
    Effect.map(HttpServerResponse.setHeaders({ ...headers, "content-security-policy": policy }))
  )

const headers = {
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "cache-control": "no-cache"
}

const Token = Schema.fromJsonString(Schema.Struct({ token: Schema.String.check(Schema.isMaxLength(200)) }))

const session = (base: string, secrets: Secrets): Respond =>
  Effect.andThen(Access.rejectSimpleBody, exchanged(base, secrets))

const exchanged = (base: string, { cookie, cookieName, isToken }: Secrets): Respond =>
  HttpServerRequest.HttpServerRequest.use((request) =>
    Number(request.headers["content-length"] ?? Infinity) > 1_000
      ? Effect.fail(new Unauthorized())
      : Effect.orDie(request.text)
  ).pipe(
    Effect.flatMap(Schema.decodeUnknownEffect(Token)),
    Effect.flatMap(({ token }) => isToken(token)),
    Effect.filterOrFail((isKnown) => isKnown),
    Effect.mapError(() => new Unauthorized()),
    Effect.map(() =>
      HttpServerResponse.setCookieUnsafe(
        HttpServerResponse.empty({ status: 204 }),
        cookieName,
        Redacted.value(cookie),
        { httpOnly: true, sameSite: "strict", path: base }
      )
    )
  )
