/** Encodes events of a run as server-sent events. */

import * as Arr from "effect/Array"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import type * as Pull from "effect/Pull"
import * as Stream from "effect/Stream"
import * as RunEvent from "../../RunEvent.ts"
import type { HttpProblem } from "../HttpProblem.ts"
import { Ids, type Position } from "./position.ts"

/** Creates a response that streams text. `failed` encodes a later failure, since the status has been sent by then. */
export const response = <E>(
  frames: Stream.Stream<Uint8Array, E>,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(frames, {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no", ...headers }
  })

/** Encodes a value as a server-sent event. */
export const dataOf = (value: object): string => `data: ${JSON.stringify(value)}\n\n`

/**
 * Encodes each event of a run as a server-sent event, with the id by which a client continues after it. Can be run only
 * once.
 */
export const frames = (
  events: Stream.Stream<RunEvent.RunEvent, HttpProblem>,
  position: Position
): Stream.Stream<Uint8Array> => {
  const ids = new Ids(position)
  const framed = (text: string, event: RunEvent.RunEvent) => `${text}id: ${ids.next(event)}\ndata: ${jsonOf(event)}\n\n`
  // One step for both, since each step of a stream is memory that every follower holds.
  return Stream.transformPull(events, (pull) => {
    let isOver = false
    const next = Effect.matchEffect(pull, {
      onSuccess: (batch) => Effect.succeed(Arr.of(encode(batch.reduce(framed, "")))),
      onFailure: (problem): Pull.Pull<Arr.NonEmptyReadonlyArray<Uint8Array>> => {
        if (Cause.isDone(problem)) return Effect.fail(problem)
        isOver = true
        return Effect.succeed(Arr.of(failed(problem)))
      }
    })
    return Effect.succeed(Effect.suspend(() => (isOver ? Cause.done() : next)))
  })
}

/** Encodes an event. Pieces of text, which are frequent, are plain JSON already. */
const jsonOf = (event: RunEvent.RunEvent): string =>
  JSON.stringify(RunEvent.isStreamed(event) && event.type !== "stream_part" ? event : RunEvent.toJson(event))

/** Encodes the problem that ended a stream as its last server-sent event, named `problem`. */
const failed = (problem: HttpProblem): Uint8Array => encode(`event: problem\ndata: ${JSON.stringify(problem)}\n\n`)

/**
 * Sends a comment every 15 seconds, so that a proxy keeps the connection open. For pages that cannot reopen a stream by
 * themselves.
 */
export const alive = <E>(frames: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E> =>
  Stream.merge(
    frames,
    Stream.map(Stream.drop(Stream.tick("15 seconds"), 1), () => comment),
    { haltStrategy: "left" }
  )

const comment = new TextEncoder().encode(": waiting\n\n")

const encode = (text: string): Uint8Array => encoder.encode(text)

const encoder = new TextEncoder()
