/**
 * Continues the event stream of a request after its server closed it.
 *
 * During a long call, a server may close the stream and expect the client to poll: the events after the last received
 * one are requested by its id. Only whole events are passed on, so a stream that broke inside an event continues with
 * that event. If the events of a server have no ids, its stream just ends.
 */

import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Sse from "effect/encoding/Sse"
import type { HttpClientError } from "effect/http/HttpClientError"
import type { HttpClientResponse } from "effect/http/HttpClientResponse"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as Bounds from "../../kit/bounds.ts"
import * as Http from "./http.ts"

/** Requests the events after the one with this id. */
type Ask = (lastEventId: string) => Effect.Effect<HttpClientResponse, HttpClientError, Scope.Scope>

/** Creates a response whose event stream is requested again as long as its reader wants more of it. */
export const resumable = (response: HttpClientResponse, ask: Ask): HttpClientResponse => {
  if (!Http.isEventStream(response)) return response
  const stream = resumed(response, { id: undefined, pause: defaultPause }, ask)
  return Object.create(response, { stream: { get: () => stream } })
}

/** The last received event, and the pause that the server requests. */
interface Position {
  id: string | undefined
  pause: number
}

const resumed = (
  response: HttpClientResponse,
  position: Position,
  ask: Ask
): Stream.Stream<Uint8Array, HttpClientError> =>
  wholeEvents(response.stream, follow(position)).pipe(
    Stream.catch((error) => (position.id === undefined ? Stream.fail(error) : Stream.empty)),
    Stream.concat(
      Stream.unwrap(
        Effect.map(
          Effect.suspend(() => reopen(position, ask)),
          (next) => (next === undefined ? Stream.empty : resumed(next, position, ask))
        )
      )
    )
  )

/** Returns the continued stream, or undefined if the server has none. Retries an unavailable server a few times. */
const reopen = Effect.fnUntraced(function* (position: Position, ask: Ask) {
  const { id } = position
  if (id === undefined) return undefined
  for (let attempt = 0; attempt < attempts; attempt++) {
    yield* Effect.sleep(position.pause * 2 ** attempt)
    const asked = yield* Effect.result(ask(id))
    if (Result.isFailure(asked)) continue
    const { status } = asked.success
    if (status === 200) return Http.isEventStream(asked.success) ? asked.success : undefined
    if (status < 500 && status !== 408 && status !== 429) return undefined
  }
  return undefined
})

const attempts = 5
const defaultPause = 1_000
const shortestPause = 100

/** Reads the ids of events and the reconnection pause from the text of whole events. */
const follow = (position: Position) => {
  const parser = Sse.makeParser(
    (event) => {
      const id = event._tag === "Event" ? event.id : event.lastEventId
      if (id !== undefined && id !== "") position.id = id
      if (event._tag === "Retry") position.pause = Math.max(Duration.toMillis(event.duration), shortestPause)
    },
    { maxEventSize: Infinity }
  )
  return (text: string) => void parser.feed(text)
}

/** Passes on whole events of a stream, and holds back the beginning of the next one. */
const wholeEvents = <E>(stream: Stream.Stream<Uint8Array, E>, onText: (text: string) => void) =>
  Stream.suspend(() => {
    let held: Array<string> = []
    let length = 0
    let before = ""
    return stream.pipe(
      Stream.decodeText(),
      Stream.map((chunk) => {
        const end = endOfEvents(before, chunk)
        before = `${before}${chunk}`.slice(-3)
        held.push(end === 0 ? chunk : chunk.slice(0, end))
        length += chunk.length
        // Passes on an event that is too long, so that the reader fails.
        if (end === 0 && length <= Bounds.frameLength) return ""
        const whole = held.join("")
        held = end === 0 || end === chunk.length ? [] : [chunk.slice(end)]
        length = held[0]?.length ?? 0
        onText(whole)
        return whole
      }),
      Stream.filter((text) => text !== ""),
      Stream.encodeText
    )
  })

/** Returns the end of the last event in a chunk, or 0 if none ends there. An empty line may begin before the chunk. */
const endOfEvents = (before: string, chunk: string): number => {
  const text = before + chunk
  let end = 0
  for (const blank of ["\n\n", "\r\n\r\n", "\r\r"]) {
    const at = text.lastIndexOf(blank)
    if (at !== -1) end = Math.max(end, at + blank.length - before.length)
  }
  return end
}
