/** Follows a run over connections that may break: each new one continues where the last one ended. */

import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import * as HttpClientError from "effect/http/HttpClientError"
import * as HttpClientResponse from "effect/http/HttpClientResponse"
import type * as HttpApiError from "effect/http-api/HttpApiError"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { isRest } from "../../RunEvent.ts"
import type { RunEvent } from "../../RunEvent.ts"
import * as HttpProblem from "../HttpProblem.ts"
import * as Bodies from "../RunBodies.ts"

type Failure =
  | HttpProblem.HttpProblem
  | HttpApiError.BadRequestProblem
  | HttpApiError.InternalServerErrorProblem
  | HttpClientError.HttpClientError
  | Schema.SchemaError

/** Opens a connection that continues after an event. */
type Open = (lastId: string | undefined) => Effect.Effect<HttpClientResponse.HttpClientResponse, Failure>

/** Emits the events of a run, over as many connections as needed. */
export const follow = (
  open: Open,
  after: string | undefined,
  reconnect: Schedule.Schedule<unknown>
): Stream.Stream<RunEvent, Failure> =>
  Stream.suspend(() => {
    let lastId = after
    const once: Stream.Stream<RunEvent, Failure> = Stream.suspend(() => {
      let last: string | undefined
      const received = Stream.map(connection(open(lastId)), ({ event, id }) => {
        lastId = id ?? lastId
        last = event.type
        return event
      })
      // A proxy may end a stream like any other response, while the run continues.
      const rest = Stream.suspend(() => (last === undefined || isRest({ type: last }) ? Stream.empty : once))
      return Stream.concat(received, rest)
    })
    return Stream.retry(once, ($) => Schedule.while($(reconnect), ({ input }) => isBroken(input)))
  })

/** Returns true if another connection may help. */
const isBroken = (error: Failure): boolean =>
  error instanceof HttpClientError.HttpClientError
    ? error.response === undefined || error.response.status >= 500 || error.response.status === 200
    : error._tag === "Unavailable"

interface Received {
  readonly id: string | undefined
  readonly event: RunEvent
}

/** Emits the events of one connection. */
const connection = (
  opened: Effect.Effect<HttpClientResponse.HttpClientResponse, Failure>
): Stream.Stream<Received, Failure> =>
  Stream.unwrap(
    Effect.map(Effect.flatMap(opened, refused), (response) =>
      response.status === 204
        ? Stream.empty
        : response.stream.pipe(
            Stream.decodeText(),
            Stream.pipeThroughChannel(Sse.decode<HttpClientError.HttpClientError, unknown>()),
            Stream.catchTags({ Retry: () => Stream.empty, SseError: Stream.die }),
            Stream.mapEffect(received)
          )
    )
  )

const received = ({ data, event, id }: Sse.Event): Effect.Effect<Received, Failure> =>
  event === "problem"
    ? Effect.flatMap(readProblem(data), Effect.fail)
    : Effect.map(readEvent(data), (event) => ({ id, event }))

const readEvent = Schema.decodeUnknownEffect(Schema.fromJsonString(Bodies.Event))

const readProblem = Schema.decodeUnknownEffect(Schema.fromJsonString(Schema.Union(HttpProblem.all)))

/** Fails with the problem of a response without success. */
const refused = (
  response: HttpClientResponse.HttpClientResponse
): Effect.Effect<HttpClientResponse.HttpClientResponse, Failure> =>
  response.status < 300
    ? Effect.succeed(response)
    : Effect.flatMap(response.text, (text) =>
        Effect.matchEffect(readProblem(text), {
          onFailure: () => HttpClientResponse.filterStatusOk(response),
          onSuccess: Effect.fail
        })
      )
