/** The handlers of the HTTP interface. Each decodes a request into an operation on the caller's runs. */

import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import { Limits } from "../../Limits.ts"
import * as Media from "../../Media.ts"
import type { KernelError } from "../../KernelError.ts"
import type { MediaStore } from "../../MediaStore.ts"
import { isEnded, type RunStore } from "../../RunStore.ts"
import * as Schedules from "../../Schedules.ts"
import { CurrentCaller } from "../Access.ts"
import { type HttpProblem, Invalid } from "../HttpProblem.ts"
import type { CallerRuns, ServedRuns } from "../ServedRuns.ts"
import type * as Bodies from "../RunBodies.ts"
import { bodyOf } from "./ownList.ts"
import * as Positions from "./position.ts"
import { lengthOf, receiveBody } from "./receiveBody.ts"
import * as Sse from "./sse.ts"

/** Runs an operation on the runs of the caller of the request. */
interface Own {
  <A, R = never>(
    verb: (runs: CallerRuns) => Effect.Effect<A, HttpProblem, R>
  ): Effect.Effect<A, HttpProblem, CurrentCaller | R>
}

/** Creates operations on served runs. */
export const ownOf =
  ({ of }: ServedRuns["Service"]): Own =>
  (verb) =>
    Effect.flatMap(CurrentCaller, (caller) => verb(of(caller)))

/** Returns the position at which a client stopped. */
const positionOf = (id: string | undefined): Effect.Effect<Positions.Position, HttpProblem> => {
  const position = id === undefined || id === "" ? Positions.start : Positions.parse(id)
  return position === undefined
    ? Effect.fail(new Invalid({ detail: "the last event id was not issued by this server" }))
    : Effect.succeed(position)
}

/** Starts a run and sends its events. */
export const stream = (own: Own, request: Bodies.Start) =>
  own((runs) =>
    Effect.gen(function* () {
      yield* runs.place
      const runId = yield* runs.start(request)
      return Sse.response(Sse.frames(runs.follow(runId), Positions.start), { "x-run-id": runId })
    })
  )

/** Sends the events of a run after the last one that a client received. */
export const follow = (own: Own, name: string, lastId: string | undefined, until: "rest" | "end" | undefined) =>
  own((runs) =>
    Effect.gen(function* () {
      const position = yield* positionOf(lastId)
      const { revision, status } = yield* runs.head(name)
      // A browser reconnects whenever a stream ends, unless the status is 204.
      if (isEnded(status) && revision <= position.after) return HttpServerResponse.empty({ status: 204 })
      yield* runs.place
      return Sse.response(Sse.frames(runs.follow(name, { position, until }), position))
    })
  )

/** Stores the body of a request. */
export const putMedia = (own: Own, name: string, request: HttpServerRequest) =>
  own((runs) =>
    Effect.gen(function* () {
      const type = request.headers["content-type"]?.split(";", 1)[0]?.trim() ?? ""
      if (!/^[\w.+-]+\/[\w.+-]+$/.test(type))
        return yield* new Invalid({ detail: "the content type of the request is missing or malformed" })
      const { fetchedBytes } = yield* Limits
      const media = Effect.map(receiveBody(request, fetchedBytes), (bytes) => Media.fromBytes(bytes, type))
      const { id, kind, mimeType } = yield* runs.putMedia(name, lengthOf(request), media)
      return { id, kind, mimeType }
    })
  )

/** Sends the bytes of a medium. Its headers prevent scripts in a page that a model or a skill made. */
export const getMedia = (own: Own, name: string, id: string) =>
  own((runs) =>
    Effect.map(runs.getMedia(name, id), ({ bytes, media }) =>
      HttpServerResponse.uint8Array(bytes, {
        contentType: media.mimeType,
        headers: {
          "x-content-type-options": "nosniff",
          "content-security-policy": "default-src 'none'; sandbox",
          "cache-control": "private, max-age=31536000, immutable"
        }
      })
    )
  )

/** Returns the agents of a server for its callers. */
export const agentsOf = ({ agents }: ServedRuns["Service"]): ReadonlyArray<Bodies.AgentInfo> =>
  agents.map(({ description, name }) => ({ name, ...(description === undefined ? {} : { description }) }))

/** Runs an operation that changes runs, for an operator. */
export const changed = <E extends KernelError>(
  own: Own,
  operation: Effect.Effect<ReadonlyArray<string>, E, RunStore | MediaStore>
) => own((runs) => Effect.map(runs.operate(operation), (runIds) => ({ runIds })))

/** Returns schedules with the heads of their last runs, for an operator. */
export const schedules = (own: Own, filter: Schedules.Filter) =>
  own((runs) =>
    Effect.map(runs.operate(Schedules.list(filter)), (all) =>
      all.map(({ last, ...schedule }) => ({
        ...schedule,
        ...(last === undefined ? {} : { last: bodyOf(runs.caller, last) })
      }))
    )
  )
