/**
 * Events of a run as server-sent events.
 */

import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import * as RunEvent from "../../RunEvent.ts"
import type { HttpProblem } from "../HttpProblem.ts"
import { Ids, type Position } from "./position.ts"

/** A response that sends text as it comes. What fails on the way is sent by `failed`, since the status is sent by then. */
export const response = <E>(
  frames: Stream.Stream<Uint8Array, E>,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(frames, {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no", ...headers }
  })

/** A value as a server-sent event. */
export const dataOf = (value: object): string => `data: ${JSON.stringify(value)}\n\n`

/** One server-sent event for each event of a run, with the id by which a client continues after it. Read once. */
export const frames = (
  events: Stream.Stream<RunEvent.RunEvent, HttpProblem>,
  position: Position
): Stream.Stream<Uint8Array> => {
  const ids = new Ids(position)
  const framed = (text: string, event: RunEvent.RunEvent) => `${text}id: ${ids.next(event)}\ndata: ${jsonOf(event)}\n\n`
  return events.pipe(
    Stream.mapArray((batch) => [encode(batch.reduce(framed, ""))]),
    Stream.catch(failed)
  )
}

/** Pieces of text, of which there are many, hold nothing that JSON lacks. */
const jsonOf = (event: RunEvent.RunEvent): string =>
  JSON.stringify(RunEvent.isStreamed(event) && event.type !== "stream_part" ? event : RunEvent.toJson(event))

/** The problem that ended a stream, as its last server-sent event: it is named `problem`. */
const failed = (problem: HttpProblem): Stream.Stream<Uint8Array> =>
  Stream.make(encode(`event: problem\ndata: ${JSON.stringify(problem)}\n\n`))

/**
 * Sends a comment whenever nothing else was due for a while, so that a proxy keeps the connection. A page that cannot
 * open its stream again by itself needs it.
 */
export const alive = <E>(frames: Stream.Stream<Uint8Array, E>): Stream.Stream<Uint8Array, E> =>
  Stream.merge(
    frames,
    Stream.map(Stream.drop(Stream.tick("15 seconds"), 1), () => comment),
    { haltStrategy: "left" }
  )

const comment = new TextEncoder().encode(": waiting\n\n")

/** A text as bytes. */
export const encode = (text: string): Uint8Array => encoder.encode(text)

const encoder = new TextEncoder()
