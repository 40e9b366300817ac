/**
 * Events of a run as server-sent events.
 */

import * as Effect from "effect/Effect"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Stream from "effect/Stream"
import * as RunEvent from "../../RunEvent.ts"
import type { HttpProblem } from "../HttpProblem.ts"
import { Ids, type Position } from "./position.ts"

/** A response that sends text as it comes. What fails on the way is sent by `failed`, since the status is sent by then. */
export const response = <E>(
  frames: Stream.Stream<string, E>,
  headers: Readonly<Record<string, string>> = {}
): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.stream(Stream.encodeText(frames), {
    contentType: "text/event-stream",
    headers: { "cache-control": "no-cache, no-transform", "x-accel-buffering": "no", ...headers }
  })

/** One server-sent event for each event of a run, with the id by which a client continues after it. */
export const frames = (
  events: Stream.Stream<RunEvent.RunEvent, HttpProblem>,
  position: Position
): Stream.Stream<string> =>
  Stream.suspend(() => {
    const ids = new Ids(position)
    return events.pipe(
      Stream.mapArray((batch) => [
        batch.reduce((text, event) => `${text}id: ${ids.next(event)}\ndata: ${jsonOf(event)}\n\n`, "")
      ]),
      Stream.catch(failed)
    )
  })

/** Pieces of text, of which there are many, hold nothing that JSON lacks. */
const jsonOf = (event: RunEvent.RunEvent): string =>
  JSON.stringify(RunEvent.isStreamed(event) && event.type !== "stream_part" ? event : RunEvent.toJson(event))

/** The problem that ended a stream, as its last server-sent event: it is named `problem`. */
const failed = (problem: HttpProblem): Stream.Stream<string> =>
  Stream.fromEffect(Effect.succeed(`event: problem\ndata: ${JSON.stringify(problem)}\n\n`))
