/**
 * Admits the requests of callers, and bounds their bodies.
 */

import * as ByteSize from "effect/ByteSize"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpEffect from "effect/http/HttpEffect"
import { MaxBodySize } from "effect/http/HttpIncomingMessage"
import { HttpServerError } from "effect/http/HttpServerError"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Tracer from "effect/Tracer"
import { spanOf } from "../../kit/traceparent.ts"
import { Access, type Caller, CurrentCaller, rejectSimpleBody } from "../Access.ts"
import { type HttpProblem, TooLarge, TooMany } from "../HttpProblem.ts"

/**
 * Runs a handler for the caller of the request. Fails for a body of more than `bodyBytes`, and for one of a type that a
 * foreign page may send, unless the route takes media of any type.
 */
export const admit = <A, E, R>(
  handler: Effect.Effect<A, E, R>,
  bodyBytes: number,
  takes: "json" | "media" = "json"
): Effect.Effect<A, E | HttpProblem, Exclude<R, CurrentCaller> | HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(takes === "json" ? Effect.tap(callerOf, () => rejectSimpleBody) : callerOf, (caller) =>
    Effect.tapError(bounded(Effect.provideService(inTrace(handler), CurrentCaller, caller), bodyBytes), told)
  )

/** Runs a handler in the trace of its request, which a server without a tracer does not do itself. */
const inTrace = <A, E, R>(handler: Effect.Effect<A, E, R>) =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
    Effect.withFiber(({ context }): Effect.Effect<A, E, R> => {
      const span = spanOf(headers["traceparent"] ?? "")
      return span === undefined || Context.getOrUndefined(context, Tracer.ParentSpan)?.traceId === span.traceId
        ? handler
        : Effect.provideService(handler, Tracer.ParentSpan, span)
    })
  )

/** Adds the `retry-after` header to the response for a problem that names a time. */
const told = (problem: unknown): Effect.Effect<void, never, HttpServerRequest.HttpServerRequest> =>
  problem instanceof TooMany && problem.retryAfter !== undefined
    ? setHeader("retry-after", String(problem.retryAfter))
    : Effect.void

/** The caller of the current request. */
const callerOf: Effect.Effect<Caller, HttpProblem, HttpServerRequest.HttpServerRequest> = Effect.tapError(
  Effect.flatten(Access),
  ({ _tag }) => (_tag === "Unauthorized" ? challenged : Effect.void)
)

const setHeader = (name: string, value: string) =>
  HttpEffect.appendPreResponseHandler((_, response) =>
    Effect.succeed(HttpServerResponse.setHeader(response, name, value))
  )

/** Adds the `www-authenticate` header to a response of status 401. */
const challenged = setHeader("www-authenticate", "Bearer")

const bounded = <A, E, R>(
  handler: Effect.Effect<A, E, R>,
  bytes: number
): Effect.Effect<A, E | HttpProblem, R | HttpServerRequest.HttpServerRequest> =>
  Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ headers }) =>
    Number(headers["content-length"] ?? 0) > bytes
      ? Effect.fail(tooLarge(bytes))
      : Effect.catchDefect(Effect.provideService(handler, MaxBodySize, ByteSize.bytes(bytes)), (defect) =>
          isTooLarge(defect) ? Effect.fail(tooLarge(bytes)) : Effect.die(defect)
        )
  )

const tooLarge = (bytes: number) => new TooLarge({ detail: `a body may have at most ${bytes} bytes` })

const isTooLarge = (defect: unknown): boolean =>
  defect instanceof HttpServerError &&
  defect.reason._tag === "RequestParseError" &&
  defect.reason.reason === "BodyTooLarge"
