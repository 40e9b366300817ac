/**
 * The errors of the HTTP door, as problem details (RFC 9457).
 *
 * A problem holds what a client can act on, and nothing about the internals of the server. Servers fail with these
 * errors, responses carry them as `application/problem+json`, and `HttpKernelClient` fails with the same ones.
 *
 * @since 0.1.0
 */

import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as HttpApiError from "effect/http-api/HttpApiError"
import * as Schema from "effect/Schema"
import { flat, logText } from "../kit/text.ts"
import type { KernelError, QueueFull } from "../KernelError.ts"

/**
 * Fails a request without valid credentials.
 *
 * @category errors
 * @since 0.1.0
 */
export class Unauthorized extends HttpApiError.Problem<Unauthorized>()("Unauthorized", {
  type: "urn:kernai:problem:unauthorized",
  status: 401,
  title: "Credentials are missing or wrong"
}) {}

/**
 * Fails a request whose host name, origin or caller is not admitted, and an answer of a caller who may not answer.
 *
 * @category errors
 * @since 0.1.0
 */
export class Forbidden extends HttpApiError.Problem<Forbidden>()("Forbidden", {
  type: "urn:kernai:problem:forbidden",
  status: 403,
  title: "The request is not admitted"
}) {}

/**
 * Fails if the caller has no such run, medium or question, or if there is no such agent or schedule. Runs of other callers do not
 * exist for a caller.
 *
 * @category errors
 * @since 0.1.0
 */
export class NotFound extends HttpApiError.Problem<NotFound>()(
  "NotFound",
  { type: "urn:kernai:problem:not-found", status: 404, title: "Not found" },
  { what: Schema.Literals(["run", "agent", "medium", "question", "schedule", "process"]), id: Schema.String }
) {}

/**
 * Fails if the current state of the run does not allow the request:
 *
 * - `exists`: a run with this id exists already.
 * - `moved`: the run is at another revision than the given one, or another caller was faster.
 * - `busy`: a worker holds the run.
 * - `not_completed`, `completed`, `cancelled`: its status. `not_at_rest`: it did not fail, and no hook paused it.
 * - `not_root`: it is part of the tree of another run; send the request to that one.
 * - `medium`: another medium has the same id.
 * - `never_ran`: the schedule has no run yet from which another one could begin.
 *
 * @category errors
 * @since 0.1.0
 */
export class Conflict extends HttpApiError.Problem<Conflict>()(
  "Conflict",
  { type: "urn:kernai:problem:conflict", status: 409, title: "The run does not allow this now" },
  {
    reason: Schema.Literals([
      "exists",
      "moved",
      "busy",
      "not_completed",
      "completed",
      "cancelled",
      "not_at_rest",
      "not_root",
      "medium",
      "never_ran"
    ]),
    id: Schema.String
  }
) {}

/**
 * Fails a request that cannot be understood, or that its agent does not allow. `detail` gives the reason.
 *
 * @category errors
 * @since 0.1.0
 */
export class Invalid extends HttpApiError.Problem<Invalid>()("Invalid", {
  type: "urn:kernai:problem:invalid",
  status: 400,
  title: "The request is not valid"
}) {}

/**
 * Fails if the body of the request, or the data the run would store, is larger than the server allows.
 *
 * @category errors
 * @since 0.1.0
 */
export class TooLarge extends HttpApiError.Problem<TooLarge>()("TooLarge", {
  type: "urn:kernai:problem:too-large",
  status: 413,
  title: "The request is too large"
}) {}

/**
 * Fails if the caller already follows as many runs, holds as many uploads, or has as many runs that wait, as the server
 * allows. Try again later: after `retryAfter` seconds, which the header `retry-after` repeats, if it is known.
 *
 * @category errors
 * @since 0.1.0
 */
export class TooMany extends HttpApiError.Problem<TooMany>()(
  "TooMany",
  { type: "urn:kernai:problem:too-many", status: 429, title: "Too many at once" },
  { retryAfter: Schema.optionalKey(Schema.Int) }
) {}

/**
 * Fails if a part of the server, such as its store or its model, is not available now. Try again later.
 *
 * @category errors
 * @since 0.1.0
 */
export class Unavailable extends HttpApiError.Problem<Unavailable>()("Unavailable", {
  type: "urn:kernai:problem:unavailable",
  status: 503,
  title: "Not available now"
}) {}

/**
 * The schemas of all problems.
 *
 * @category schemas
 * @since 0.1.0
 */
export const all = [Unauthorized, Forbidden, NotFound, Conflict, Invalid, TooLarge, TooMany, Unavailable] as const

/**
 * An error of the HTTP door.
 *
 * @category errors
 * @since 0.1.0
 */
export type HttpProblem = Unauthorized | Forbidden | NotFound | Conflict | Invalid | TooLarge | TooMany | Unavailable

/**
 * Fails with the problem of an error about a run, and logs the details that the problem omits.
 *
 * @category converting
 * @since 0.1.0
 */
export const asProblem =
  (id: string) =>
  <A, E extends KernelError, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, HttpProblem, R> =>
    Effect.catch(effect, (error): Effect.Effect<never, HttpProblem> => {
      if (error._tag === "QueueFull") return tooManyWait(error)
      const problem = problemOf(error, id)
      return problem._tag === "Unavailable"
        ? Effect.andThen(Effect.logWarning(`run ${flat(id)}`, logText(error.message)), Effect.fail(problem))
        : Effect.fail(problem)
    })

/** Fails with the seconds until the runs that wait are counted again. */
const tooManyWait = ({ message, retryAt }: QueueFull): Effect.Effect<never, TooMany> =>
  Effect.flatMap(Clock.currentTimeMillis, (now) =>
    Effect.fail(new TooMany({ detail: message, retryAfter: Math.max(1, Math.ceil((retryAt - now) / 1_000)) }))
  )

/** Returns the problem for an error about a run. */
const problemOf = (error: KernelError, id: string): HttpProblem => {
  switch (error._tag) {
    case "RunNotFound":
      return new NotFound({ what: "run", id })
    case "ScheduleNotFound":
      return error.reason === "never_ran"
        ? new Conflict({ reason: "never_ran", id })
        : new NotFound({ what: "schedule", id })
    case "ProcessNotFound":
      return new NotFound({ what: "process", id: error.name })
    case "AgentNotFoundError":
      return new NotFound({ what: "agent", id })
    case "QuestionNotFound":
      return new NotFound({ what: "question", id: error.callId })
    case "MediaNotFound":
    case "MediaUnreadable":
      return new NotFound({ what: "medium", id })
    case "AnswerRefused":
      return error.reason === "invalid"
        ? new Invalid({ detail: error.detail })
        : new Forbidden({ detail: error.detail })
    case "RunExists":
      return new Conflict({ reason: "exists", id })
    case "ConcurrentAppendError":
      return new Conflict({ reason: "moved", id })
    case "RunBusy":
      return new Conflict({ reason: "busy", id })
    case "RunAlreadyCompleted":
      return new Conflict({ reason: "completed", id })
    case "RunCancelled":
      return new Conflict({ reason: "cancelled", id })
    case "NotRootRun":
      return new Conflict({ reason: "not_root", id })
    case "MediaConflict":
      return new Conflict({ reason: "medium", id: error.id })
    case "LimitExceeded":
      return new TooLarge()
    case "AgentConfigInvalid":
      return new Invalid({ detail: error.message })
    default:
      return new Unavailable()
  }
}
