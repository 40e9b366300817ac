/**
 * Adds routes of further protocols. Each is a function of the runs of its caller.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import { toResponse } from "effect/http/HttpServerRespondable"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { Access, CurrentCaller } from "./Access.ts"
import { type HttpProblem, Invalid } from "./HttpProblem.ts"
import { type CallerRuns, ServedRuns } from "./ServedRuns.ts"
import { admit } from "./internal/admission.ts"

/**
 * The services of a handler: the request, its caller, its route and its scope, which closes with the response.
 *
 * @category models
 * @since 0.1.0
 */
export type Provided = CurrentCaller | HttpRouter.RouteContext | HttpServerRequest.HttpServerRequest | Scope.Scope

/**
 * Responds for a caller.
 *
 * @category models
 * @since 0.1.0
 */
export type Respond = (runs: CallerRuns) => Effect.Effect<HttpServerResponse, HttpProblem, Provided>

/**
 * Adds a route. Requests that are not admitted, and problems of the handler, become problem responses.
 *
 * @category layers
 * @since 0.1.0
 */
export const add = Effect.fnUntraced(function* (
  method: "GET" | "POST" | "DELETE",
  path: `/${string}`,
  respond: Respond
): Effect.fn.Return<void, never, HttpRouter.HttpRouter | ServedRuns> {
  const router = yield* HttpRouter.HttpRouter
  const { limits, of } = yield* ServedRuns
  const access = yield* Access
  const handler = Effect.flatMap(CurrentCaller, (caller) => respond(of(caller)))
  yield* router.add(
    method,
    path,
    admit(handler, limits.bodyBytes).pipe(Effect.provideService(Access, access), Effect.catch(toResponse))
  )
})

/**
 * Decodes the body of the request with a Schema.
 *
 * @category getters
 * @since 0.1.0
 */
export const body = <A>(
  schema: Schema.ConstraintDecoder<A>
): Effect.Effect<A, HttpProblem, HttpServerRequest.HttpServerRequest> => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))
  return Effect.flatMap(bodyText, (text) =>
    Effect.mapError(decode(text), ({ message }) => new Invalid({ detail: message.slice(0, 1_000) }))
  )
}

/**
 * Returns the body of a JSON request as text, for a protocol with its own reply to a body that is not JSON. Its type is
 * `application/json` or ends with `+json`. Other content types are rejected, since a foreign page may send them without a CORS preflight.
 *
 * @category getters
 * @since 0.1.0
 */
export const bodyText: Effect.Effect<string, HttpProblem, HttpServerRequest.HttpServerRequest> = Effect.flatMap(
  HttpServerRequest.HttpServerRequest,
  ({ headers, text }) =>
    /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(headers["content-type"] ?? "")
      ? Effect.orDie(text)
      : Effect.fail(new Invalid({ detail: "the body must be application/json" }))
)

/**
 * Returns a parameter of the path.
 *
 * @category getters
 * @since 0.1.0
 */
export const param = (name: string): Effect.Effect<string, never, HttpRouter.RouteContext> =>
  Effect.map(HttpRouter.RouteContext, ({ params }) => params[name] ?? "")
